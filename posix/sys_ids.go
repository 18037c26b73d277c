package posix

import (
	"slices"
	"syscall"
)

// Calls by which a process becomes somebody else. On Loam it stays who it is, so they succeed
// where they ask for what is so already, and fail otherwise as they do for a process of Linux
// that has no right to.

// unchanged is the argument of setreuid(2) and its like that leaves an ID as it is.
const unchanged = ^uint32(0)

// stays answers a call that sets IDs of which all are own.
func stays(own int32, ids ...uint32) Errno {
	if slices.ContainsFunc(ids, func(id uint32) bool { return id != unchanged && id != uint32(own) }) {
		return syscall.EPERM
	}
	return 0
}

// SetUserIDs is setreuid(2) and setresuid(2). Errors: EPERM.
func (p *Process) SetUserIDs(ids ...uint32) Errno { return stays(p.options.Credentials.UID, ids...) }

// SetGroupIDs is setregid(2) and setresgid(2). Errors: EPERM.
func (p *Process) SetGroupIDs(ids ...uint32) Errno { return stays(p.options.Credentials.GID, ids...) }

// SetUserID is setuid(2). Errors: EPERM, EINVAL.
func (p *Process) SetUserID(id uint32) Errno { return setID(p.options.Credentials.UID, id) }

// SetGroupID is setgid(2). Errors: EPERM, EINVAL.
func (p *Process) SetGroupID(id uint32) Errno { return setID(p.options.Credentials.GID, id) }

func setID(own int32, id uint32) Errno {
	if id == unchanged {
		return syscall.EINVAL
	}
	return stays(own, id)
}

// SetFileUserID is setfsuid(2), and SetFileGroupID setfsgid(2): they return the ID before,
// and no error.
func (p *Process) SetFileUserID() int  { return int(p.options.Credentials.UID) }
func (p *Process) SetFileGroupID() int { return int(p.options.Credentials.GID) }

// SetGroup is setpgid(2), where the process is in a group that is told. Errors: EPERM for
// another, ESRCH for another process, EINVAL.
func (p *Process) SetGroup(pid, to, group int32) Errno {
	own := p.options.Credentials.PID
	if to == 0 {
		to = own
	}
	switch {
	case to < 0:
		return syscall.EINVAL
	case pid != 0 && pid != own:
		return syscall.ESRCH
	case to != group:
		return syscall.EPERM
	}
	return 0
}

// SetPriority is setpriority(2), where the process has a nice value that is told. A higher one
// is heard and changes nothing. Errors: EACCES for a lower one; EINVAL; ESRCH for others.
func (p *Process) SetPriority(which int, who int32, to, nice int) Errno {
	const process, user, highest = 0, 2, 19
	switch {
	case which < process || which > user:
		return syscall.EINVAL
	case which != process || who != 0 && who != p.options.Credentials.PID:
		return syscall.ESRCH
	case min(to, highest) < nice:
		return syscall.EACCES
	}
	return 0
}

// Capabilities that a process has, whoever it is, and those that user 0 has beside
// (capabilities(7)), as bits: what Loam lets it do.
const (
	capBind, capRaw = 1 << 10, 1 << 13

	capChown, capOverride, capSearch, capOwner, capSetID, capRoot = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 18

	lastCapability = 40
)

// Capabilities are what the process may do beyond others, permitted and effective; it can
// hand on none.
func (p *Process) Capabilities() uint64 {
	c := uint64(capBind | capRaw)
	if p.options.Credentials.UID == 0 {
		c |= capChown | capOverride | capSearch | capOwner | capSetID | capRoot
	}
	return c
}

// SetCapabilities is capset(2). Errors: EPERM for others than there are.
func (p *Process) SetCapabilities(effective, permitted, inheritable uint64) Errno {
	if own := p.Capabilities(); effective != own || permitted != own || inheritable != 0 {
		return syscall.EPERM
	}
	return 0
}

// Operations of prctl(2).
const (
	prSetDeathSignal = 1
	prGetDumpable    = 3
	prSetDumpable    = 4
	prGetKeepCaps    = 7
	prSetKeepCaps    = 8
	prCapbsetRead    = 23
	prSetNoNewPrivs  = 38
	prGetNoNewPrivs  = 39

	lastSignal = 64
)

// Prctl is prctl(2), as far as it is about rights and about the end of the parent, of which a
// process hears nothing. Errors: EINVAL.
func (p *Process) Prctl(option int, arg uint64) (int, Errno) {
	switch {
	case option == prGetDumpable, option == prGetNoNewPrivs:
		return 1, 0
	case option == prSetDumpable && arg <= 1, option == prSetNoNewPrivs && arg == 1, option == prSetDeathSignal && arg <= lastSignal:
		return 0, 0
	case option == prSetKeepCaps && arg <= 1:
		p.keepCaps.Store(int32(arg))
		return 0, 0
	case option == prGetKeepCaps:
		return int(p.keepCaps.Load()), 0
	case option == prCapbsetRead && arg <= lastCapability:
		return int(p.Capabilities() >> arg & 1), 0
	}
	return -1, syscall.EINVAL
}
