package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/file"
	"loam/task/family"
)

// idCalls are calls about IDs, names and limits.
var idCalls = map[int]serveFunc{
	linux.SYS_GETPID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.process.node.PID), 0 },
	linux.SYS_GETTID: func(t *Task, _ call.Args) (uint64, linux.Errno) { return uint64(t.id), 0 },
	linux.SYS_GETPPID: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return uint64(t.process.node.Parent()), 0
	},
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
			return 0, file.ToErrno(t.process.system.tree.SetGroup(t.process.node, family.PID(number(a.A1)), family.PID(number(a.A2))))
		})
	},
	linux.SYS_SETSID: func(t *Task, _ call.Args) (uint64, linux.Errno) {
		return locked(t, func() (uint64, linux.Errno) {
			err := t.process.system.tree.SetSession(t.process.node)
			return uint64(t.process.node.Session), file.ToErrno(err)
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
	linux.SYS_GETRUSAGE: getrusage,
}

// locked calls f with System.mu held.
func locked(t *Task, f func() (uint64, linux.Errno)) (uint64, linux.Errno) {
	t.process.system.mu.Lock()
	defer t.process.system.mu.Unlock()
	return f()
}

// ofProcess returns a number of a process, such as the ID of its group. pid 0 means the caller. Errors: ESRCH.
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
	case linux.ARCH_GET_CPUID:
		return 1, 0
	case linux.ARCH_SET_CPUID: // the CPU cannot make the instruction CPUID fault
		return 0, linux.ENODEV
	default:
		return 0, linux.EINVAL
	}
	if t.thread.SetBases(fs, gs) != nil {
		return 0, linux.EPERM
	}
	return 0, 0
}
