package posix

import (
	"slices"

	"loam/abi/linux"
)

// System calls that change user and group IDs. IDs are fixed on Loam: a call succeeds if it asks for
// the current IDs, and fails with EPERM otherwise, as for an unprivileged process on Linux.

// unchanged is the argument of setreuid(2) and its variants that leaves an ID unchanged.
const unchanged = ^uint32(0)

// stays returns 0 if every ID in ids equals the process's own ID or the constant
// unchanged, and EPERM otherwise.
func stays(own int32, ids ...uint32) Errno {
	if slices.ContainsFunc(ids, func(id uint32) bool { return id != unchanged && id != uint32(own) }) {
		return linux.EPERM
	}
	return 0
}

// SetUserIDs implements setreuid(2) and setresuid(2). Errors: EPERM.
func (p *Process) SetUserIDs(ids ...uint32) Errno { return stays(p.credentials.UID, ids...) }

// SetGroupIDs implements setregid(2) and setresgid(2). Errors: EPERM.
func (p *Process) SetGroupIDs(ids ...uint32) Errno { return stays(p.credentials.GID, ids...) }

// SetUserID implements setuid(2). Errors: EPERM, EINVAL.
func (p *Process) SetUserID(id uint32) Errno { return setID(p.credentials.UID, id) }

// SetGroupID implements setgid(2). Errors: EPERM, EINVAL.
func (p *Process) SetGroupID(id uint32) Errno { return setID(p.credentials.GID, id) }

func setID(own int32, id uint32) Errno {
	if id == unchanged {
		return linux.EINVAL
	}
	return stays(own, id)
}

// SetFileUserID implements setfsuid(2), and SetFileGroupID setfsgid(2). They return the current ID and
// change nothing.
func (p *Process) SetFileUserID() int  { return int(p.credentials.UID) }
func (p *Process) SetFileGroupID() int { return int(p.credentials.GID) }

// SetGroup implements setpgid(2) for a process whose current process group is group.
// Errors: EPERM if another group is requested, ESRCH if pid is another process, EINVAL.
func (p *Process) SetGroup(pid, to, group int32) Errno {
	own := p.credentials.PID
	if to == 0 {
		to = own
	}
	switch {
	case to < 0:
		return linux.EINVAL
	case pid != 0 && pid != own:
		return linux.ESRCH
	case to != group:
		return linux.EPERM
	}
	return 0
}

// SetPriority implements setpriority(2) for a process with the given nice value. A higher value is
// accepted and has no effect. Errors: EACCES for a lower value; EINVAL; ESRCH for another process.
func (p *Process) SetPriority(which int, who int32, to, nice int) Errno {
	const process, user, highest = 0, 2, 19
	switch {
	case which < process || which > user:
		return linux.EINVAL
	case which != process || who != 0 && who != p.credentials.PID:
		return linux.ESRCH
	case min(to, highest) < nice:
		return linux.EACCES
	}
	return 0
}

// Capabilities (capabilities(7)) as bit sets: the capabilities that every process has, and those that only user 0 has.
const (
	capBind, capRaw = 1 << 10, 1 << 13

	capChown, capOverride, capSearch, capOwner, capSetID, capRoot = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 18

	lastCapability = 40
)

// Capabilities returns the permitted and effective capabilities, as bits. No capability is inheritable.
func (p *Process) Capabilities() uint64 {
	c := uint64(capBind | capRaw)
	if p.credentials.UID == 0 {
		c |= capChown | capOverride | capSearch | capOwner | capSetID | capRoot
	}
	return c
}

// SetCapabilities implements capset(2). Errors: EPERM unless the sets are the current ones.
func (p *Process) SetCapabilities(effective, permitted, inheritable uint64) Errno {
	if own := p.Capabilities(); effective != own || permitted != own || inheritable != 0 {
		return linux.EPERM
	}
	return 0
}

// Limits of prctl(2).
const (
	lastSignal = 64
)

// Prctl implements the operations of prctl(2) that concern privileges and PR_SET_PDEATHSIG. A process
// is never notified of its parent's death. Errors: EINVAL.
func (p *Process) Prctl(option int, arg uint64) (int, Errno) {
	switch {
	case option == linux.PR_GET_DUMPABLE, option == linux.PR_GET_NO_NEW_PRIVS:
		return 1, 0
	case option == linux.PR_SET_DUMPABLE && arg <= 1, option == linux.PR_SET_NO_NEW_PRIVS && arg == 1, option == linux.PR_SET_PDEATHSIG && arg <= lastSignal:
		return 0, 0
	case option == linux.PR_SET_KEEPCAPS && arg <= 1:
		p.keepCaps.Store(int32(arg))
		return 0, 0
	case option == linux.PR_GET_KEEPCAPS:
		return int(p.keepCaps.Load()), 0
	case option == linux.PR_SET_CHILD_SUBREAPER:
		p.wishes.reaper.Store(int32(min(arg, 1)))
		return 0, 0
	case option == linux.PR_GET_CHILD_SUBREAPER:
		return int(p.wishes.reaper.Load()), 0
	case option == linux.PR_SET_TIMERSLACK:
		if arg == 0 {
			arg = standardSlack
		}
		p.wishes.slack.Store(int64(arg) - standardSlack)
		return 0, 0
	case option == linux.PR_GET_TIMERSLACK:
		return int(p.wishes.slack.Load() + standardSlack), 0
	case option == linux.PR_SET_THP_DISABLE:
		p.wishes.noHuge.Store(int32(min(arg, 1)))
		return 0, 0
	case option == linux.PR_GET_THP_DISABLE:
		return int(p.wishes.noHuge.Load()), 0
	case option == linux.PR_GET_SECUREBITS:
		return 0, 0
	case option == linux.PR_GET_TSC:
		return linux.PR_TSC_ENABLE, 0
	case option == linux.PR_CAPBSET_READ && arg <= lastCapability:
		return int(p.Capabilities() >> arg & 1), 0
	}
	return -1, linux.EINVAL
}
