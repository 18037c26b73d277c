package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/family"
)

// idCalls are calls about IDs, names and limits.
var idCalls = map[int]serveFunc{
	linux.SYS_GETPID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.process.node.PID), 0 },
	linux.SYS_GETTID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.id), 0 },
	linux.SYS_GETPPID: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return locked(t, func() (uint64, linux.Errno) { return uint64(t.process.node.Parent()), 0 })
	},
	linux.SYS_GETUID:  func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.caller.Process.Credentials().UID), 0 },
	linux.SYS_GETEUID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.caller.Process.Credentials().UID), 0 },
	linux.SYS_GETGID:  func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.caller.Process.Credentials().GID), 0 },
	linux.SYS_GETEGID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.caller.Process.Credentials().GID), 0 },
	linux.SYS_GETRESUID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.three(a, uint32(t.caller.Process.Credentials().UID))
	},
	linux.SYS_GETRESGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.three(a, uint32(t.caller.Process.Credentials().GID))
	},
	linux.SYS_GETGROUPS: func(*Task, call.Args) (uint64, linux.Errno) { return 0, 0 },
	linux.SYS_GETPGRP: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return locked(t, func() (uint64, linux.Errno) { return uint64(t.process.node.Group), 0 })
	},
	linux.SYS_GETPGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.ofProcess(a.A1, func(p *family.Process) family.PID { return p.Group })
	},
	linux.SYS_GETSID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.ofProcess(a.A1, func(p *family.Process) family.PID { return p.Session })
	},
	linux.SYS_SETPGID: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return locked(t, func() (uint64, linux.Errno) {
			return 0, errnoOf(t.process.system.tree.SetGroup(t.process.node, family.PID(number(a.A1)), family.PID(number(a.A2))))
		})
	},
	linux.SYS_SETSID: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return locked(t, func() (uint64, linux.Errno) {
			err := t.process.system.tree.SetSession(t.process.node)
			return uint64(t.process.node.Session), errnoOf(err)
		})
	},
	linux.SYS_SET_TID_ADDRESS: func(t *Task, a call.Args) (uint64, linux.Errno) {
		t.clearID = a.A1
		return uint64(t.id), 0
	},
	linux.SYS_ARCH_PRCTL: archPrctl,
	linux.SYS_PRCTL:      prctl,
	linux.SYS_GETRLIMIT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.prlimit(0, a.A1, 0, a.A2)
	},
	linux.SYS_SETRLIMIT: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.prlimit(0, a.A1, a.A2, 0)
	},
	linux.SYS_PRLIMIT64: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return t.prlimit(number(a.A1), a.A2, a.A3, a.A4)
	},
	linux.SYS_GETPRIORITY: func(*Task, call.Args) (uint64, linux.Errno) { return 20, 0 },
	linux.SYS_SETPRIORITY: func(*Task, call.Args) (uint64, linux.Errno) { return 0, 0 },
	linux.SYS_GETRUSAGE: func(t *Task, a call.Args) (uint64, linux.Errno) {
		return 0, t.caller.Memory.Write(a.A2, make([]byte, rusageSize))
	},
}

// locked calls f with System.mu held.
func locked(t *Task, f func() (uint64, linux.Errno)) (uint64, linux.Errno) {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	return f()
}

// three writes an ID to three addresses (getresuid(2)).
func (t *Task) three(a call.Args, id uint32) (uint64, linux.Errno) {
	for _, at := range [...]uint64{a.A1, a.A2, a.A3} {
		if errno := (memory{t}).setWord(at, id); errno != 0 {
			return 0, errno
		}
	}
	return 0, 0
}

// ofProcess returns a number of the process with an ID, of the caller if that is 0. Errors: ESRCH.
func (t *Task) ofProcess(pid uint64, number func(*family.Process) family.PID) (uint64, linux.Errno) {
	return locked(t, func() (uint64, linux.Errno) {
		p := t.process.node
		if id := family.PID(int32(pid)); id != 0 {
			if p = t.process.system.tree.Find(id); p == nil {
				return 0, linux.ESRCH
			}
		}
		return uint64(number(p)), 0
	})
}

// archPrctl implements arch_prctl(2). Errors: EINVAL, EPERM for an address outside of ring 3.
func archPrctl(t *Task, a call.Args) (uint64, linux.Errno) {
	fs, gs := t.thread.Bases()
	store := func(v uint64) linux.Errno {
		return t.caller.Memory.Write(a.A2, binary.LittleEndian.AppendUint64(nil, v))
	}
	switch number(a.A1) {
	case linux.ARCH_SET_FS:
		fs = a.A2
	case linux.ARCH_SET_GS:
		gs = a.A2
	case linux.ARCH_GET_FS:
		return 0, store(fs)
	case linux.ARCH_GET_GS:
		return 0, store(gs)
	default:
		return 0, linux.EINVAL
	}
	if t.thread.SetBases(fs, gs) != nil {
		return 0, linux.EPERM
	}
	return 0, 0
}

// prctl implements the operations of prctl(2) that concern threads; the personality has the others.
func prctl(t *Task, a call.Args) (uint64, linux.Errno) {
	const size = 16 // of a name, with its NUL
	switch number(a.A1) {
	case linux.PR_SET_NAME:
		name, errno := t.caller.Memory.String(a.A2, size-1)
		if errno == linux.ENAMETOOLONG {
			b := make([]byte, size-1)
			errno = t.caller.Memory.Read(b, a.A2)
			name = string(b)
		}
		if errno == 0 {
			t.name = name
		}
		return 0, errno
	case linux.PR_GET_NAME:
		b := make([]byte, size)
		copy(b, t.name)
		return 0, t.caller.Memory.Write(a.A2, b)
	case linux.PR_SET_VMA:
		return 0, linux.EINVAL // as a Linux without CONFIG_ANON_VMA_NAME
	}
	n, errno := t.caller.Process.Prctl(number(a.A1), a.A2)
	return uint64(n), errno
}

// prlimit implements prlimit(2). Errors: EINVAL, EPERM, ESRCH, EFAULT.
func (t *Task) prlimit(pid int, resource, set, get uint64) (uint64, linux.Errno) {
	p, s := t.process, t.process.system
	if resource >= linux.RLIM_NLIMITS {
		return 0, linux.EINVAL
	}
	var to linux.Rlimit
	if set != 0 {
		var errno linux.Errno
		if to, errno = read(t, set, linux.SizeofRlimit, linux.ParseRlimit); errno != 0 {
			return 0, errno
		}
		if to.Cur > to.Max {
			return 0, linux.EINVAL
		}
	}
	s.mu.Lock()
	if pid != 0 {
		if p = s.processes[family.PID(pid)]; p == nil {
			s.mu.Unlock()
			return 0, linux.ESRCH
		}
	}
	old := p.limits[resource]
	if set != 0 {
		if to.Max > old.Max && t.caller.Process.Credentials().UID != 0 {
			s.mu.Unlock()
			return 0, linux.EPERM
		}
		p.limits[resource] = to
		p.space.Load().SetLimits(p.memoryLimits())
	}
	s.mu.Unlock()
	return 0, t.put(get, linux.SizeofRlimit, old.Put)
}
