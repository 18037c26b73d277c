package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/family"
)

// credentialCalls read and change the credentials of a thread (credentials(7)). Package credential has the rules.
//
// As on Linux each thread has its own. The C library changes those of all threads.
var credentialCalls = map[int]serveFunc{
	linux.SYS_GETUID:  ofSet(func(c *credential.Set) uint32 { return c.UID }),
	linux.SYS_GETEUID: ofSet(func(c *credential.Set) uint32 { return c.EUID }),
	linux.SYS_GETGID:  ofSet(func(c *credential.Set) uint32 { return c.GID }),
	linux.SYS_GETEGID: ofSet(func(c *credential.Set) uint32 { return c.EGID }),
	linux.SYS_GETRESUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		c := t.creds()
		return t.three(a, c.UID, c.EUID, c.SUID)
	},
	linux.SYS_GETRESGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		c := t.creds()
		return t.three(a, c.GID, c.EGID, c.SGID)
	},
	linux.SYS_GETGROUPS: getgroups,
	linux.SYS_SETGROUPS: setgroups,
	linux.SYS_SETUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetUID(uint32(a.A1)))
	},
	linux.SYS_SETGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetGID(uint32(a.A1)))
	},
	linux.SYS_SETREUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetReUID(uint32(a.A1), uint32(a.A2)))
	},
	linux.SYS_SETREGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetReGID(uint32(a.A1), uint32(a.A2)))
	},
	linux.SYS_SETRESUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetResUID(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	},
	linux.SYS_SETRESGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.adopt(t.creds().SetResGID(uint32(a.A1), uint32(a.A2), uint32(a.A3)))
	},
	linux.SYS_SETFSUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		old := t.creds().FSUID
		t.adopt(t.creds().SetFSUID(uint32(a.A1)), 0)
		return uint64(old), 0
	},
	linux.SYS_SETFSGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		old := t.creds().FSGID
		t.adopt(t.creds().SetFSGID(uint32(a.A1)), 0)
		return uint64(old), 0
	},
	linux.SYS_CAPGET: capget,
	linux.SYS_CAPSET: capset,
}

// creds returns the credentials of the task, which are not modified. Any goroutine may call it.
func (t *Task) creds() *credential.Set { return t.caller.Process.Identity() }

// creds returns the credentials of the first thread of the process. The caller holds System.mu.
func (p *Process) creds() *credential.Set {
	if len(p.tasks) > 0 {
		p.lastCreds = p.tasks[0].creds()
	}
	return p.lastCreds
}

// ofSet returns a call that returns an ID.
func ofSet(id func(*credential.Set) uint32) serveFunc {
	return func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(id(t.creds())), 0 }
}

// adopt makes c the credentials of the task, unless there is an error. A process that may have secrets of another user is
// not dumpable any more, and forgets its parent death signal (prctl(2)).
func (t *Task) adopt(c credential.Set, errno linux.Errno) (uint64, linux.Errno) {
	if errno != 0 {
		return 0, errno
	}
	old := t.creds()
	if c.UID != old.UID {
		p, s := t.process, t.process.system
		s.mu.Lock()
		p.exceeded = s.processesOf(c.UID) >= p.limits[linux.RLIMIT_NPROC].Cur && c.UID != 0
		s.mu.Unlock()
	}
	if c.MorePrivileged(old) {
		t.process.dumpable.Store(false)
		t.process.deathSignal.Store(0)
	}
	t.caller.Process.ChangeIdentity(c)
	if c.Has(linux.CAP_IPC_LOCK) != old.Has(linux.CAP_IPC_LOCK) {
		t.process.system.mu.Lock()
		if a := t.memory(); a != nil {
			a.SetLimits(t.process.memoryLimits())
		}
		t.process.system.mu.Unlock()
	}
	return 0, 0
}

// three writes three IDs (getresuid(2)).
func (t *Task) three(a call.Args, ids ...uint32) (uint64, linux.Errno) {
	for i, at := range [...]uint64{a.A1, a.A2, a.A3} {
		if errno := (memory{t}).setWord(at, ids[i]); errno != 0 {
			return 0, errno
		}
	}
	return 0, 0
}

// getgroups implements getgroups(2). Errors: EINVAL, EFAULT.
func getgroups(t *Task, a call.Args) (uint64, linux.Errno) {
	groups := t.creds().Groups
	n := number(a.A1)
	switch {
	case n == 0:
		return uint64(len(groups)), 0
	case n < len(groups):
		return 0, linux.EINVAL
	}
	var b []byte
	for _, g := range groups {
		b = binary.LittleEndian.AppendUint32(b, g)
	}
	return uint64(len(groups)), t.caller.Memory.Write(a.A2, b)
}

// setgroups implements setgroups(2). Errors: EPERM, EINVAL, EFAULT.
func setgroups(t *Task, a call.Args) (uint64, linux.Errno) {
	const most = 65536
	if _, errno := t.creds().SetGroups(nil); errno != 0 {
		return 0, errno
	}
	if a.A1 > most {
		return 0, linux.EINVAL
	}
	b := make([]byte, 4*a.A1)
	if errno := t.caller.Memory.Read(b, a.A2); errno != 0 {
		return 0, errno
	}
	groups := make([]uint32, a.A1)
	for i := range groups {
		groups[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return t.adopt(t.creds().SetGroups(groups))
}

// capabilityHeader reads the header of capget(2) and capset(2), and returns the size of the data, which depends on the
// version. An unknown version is replaced by the newest one. Errors: EINVAL, EFAULT.
func (t *Task) capabilityHeader(addr uint64) (h linux.CapHeader, size int, errno linux.Errno) {
	const version1, version2 = 0x19980330, 0x20071026
	if h, errno = read(t, addr, linux.SizeofCapHeader, linux.ParseCapHeader); errno != 0 {
		return h, 0, errno
	}
	switch h.Version {
	case version1:
		return h, linux.SizeofCapData / 2, 0
	case version2, linux.CAPABILITY_VERSION_3:
		return h, linux.SizeofCapData, 0
	}
	h.Version = linux.CAPABILITY_VERSION_3
	if errno := t.put(addr, linux.SizeofCapHeader, h.Put); errno != 0 {
		return h, 0, errno
	}
	return h, 0, linux.EINVAL
}

// capget implements capget(2). Errors: EINVAL, ESRCH, EFAULT.
func capget(t *Task, a call.Args) (uint64, linux.Errno) {
	h, size, errno := t.capabilityHeader(a.A1)
	switch {
	case errno == linux.EINVAL && a.A2 == 0:
		return 0, 0
	case errno != 0:
		return 0, errno
	case h.PID < 0:
		return 0, linux.EINVAL
	}
	c := t.creds()
	if h.PID != 0 {
		s := t.process.system
		s.mu.Lock()
		of := s.tasks[family.PID(h.PID)]
		if of != nil {
			c = of.creds()
		}
		s.mu.Unlock()
		if of == nil {
			return 0, linux.ESRCH
		}
	}
	var b [linux.SizeofCapData]byte
	linux.CapData{Effective: uint64(c.Effective), Permitted: uint64(c.Permitted), Inheritable: uint64(c.Inheritable)}.Put(b[:])
	return 0, t.put(a.A2, size, func(to []byte) { copy(to, b[:]) })
}

// capset implements capset(2). Errors: EINVAL, EPERM, EFAULT.
func capset(t *Task, a call.Args) (uint64, linux.Errno) {
	h, size, errno := t.capabilityHeader(a.A1)
	switch {
	case errno != 0:
		return 0, errno
	case h.PID != 0 && h.PID != int32(t.id):
		return 0, linux.EPERM
	}
	var b [linux.SizeofCapData]byte
	if errno := t.caller.Memory.Read(b[:size], a.A2); errno != 0 {
		return 0, errno
	}
	d := linux.ParseCapData(b[:])
	return t.adopt(t.creds().SetCapabilities(credential.Capabilities(d.Effective), credential.Capabilities(d.Permitted), credential.Capabilities(d.Inheritable)))
}

// maySignal reports whether the task may send a signal to a process (kill(2)). The caller holds System.mu.
func (t *Task) maySignal(to *Process, n int) bool {
	return to == t.process || t.creds().MaySignal(to.creds()) || n == linux.SIGCONT && to.node.Session == t.process.node.Session
}

// mayInspect reports whether the task may read the state of a process (ptrace(2)). fsids selects the check that Linux makes for
// files of /proc. The caller holds System.mu.
func (t *Task) mayInspect(p *Process, fsids bool) bool {
	return p == t.process || t.creds().MayTrace(p.creds(), p.dumpable.Load(), fsids)
}

// processesOf returns the number of tasks whose real user is uid. The caller holds System.mu.
func (s *System) processesOf(uid uint32) (n uint64) {
	for _, t := range s.tasks {
		if t.creds().UID == uid {
			n++
		}
	}
	return n
}
