package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/privilege"
	"loam/task/seccomp"
	"loam/task/signal"
)

// nameSize is the size of the name of a task, with its NUL.
const nameSize = 16

// prctl implements prctl(2).
//
// long: a list of operations
func prctl(t *Task, a call.Args) (uint64, linux.Errno) {
	p := t.process
	none := a.A3|a.A4|a.A5 == 0
	switch number(a.A1) {
	case linux.PR_SET_NAME:
		return 0, t.rename(a.A2)
	case linux.PR_GET_NAME:
		b := make([]byte, nameSize)
		copy(b, t.comm())
		return 0, t.caller.Memory.Write(a.A2, b)
	case linux.PR_SET_PDEATHSIG:
		if a.A2 > uint64(signal.Last) {
			return 0, linux.EINVAL
		}
		p.deathSignal.Store(int32(a.A2))
		return 0, 0
	case linux.PR_GET_PDEATHSIG:
		return 0, memory{t}.setWord(a.A2, uint32(p.deathSignal.Load()))
	case linux.PR_GET_DUMPABLE:
		return flag(p.dumpable.Load()), 0
	case linux.PR_SET_DUMPABLE:
		if a.A2 > 1 {
			return 0, linux.EINVAL
		}
		p.dumpable.Store(a.A2 == 1)
		return 0, 0
	case linux.PR_SET_CHILD_SUBREAPER:
		return locked(t, func() (uint64, linux.Errno) { p.node.SubReaper = a.A2 != 0; return 0, 0 })
	case linux.PR_GET_CHILD_SUBREAPER:
		on, _ := locked(t, func() (uint64, linux.Errno) { return flag(p.node.SubReaper), 0 })
		return 0, memory{t}.setWord(a.A2, uint32(on))
	case linux.PR_SET_SECCOMP, linux.PR_GET_SECCOMP:
		return seccomp.Prctl(callTask{t}, a)
	case linux.PR_SET_TIMERSLACK:
		t.traits.SetSlack(a.A2)
		return 0, 0
	case linux.PR_GET_TIMERSLACK:
		return t.traits.Slack, 0
	case linux.PR_GET_TID_ADDRESS:
		return 0, t.caller.Memory.Write(a.A2, binary.LittleEndian.AppendUint64(nil, t.clearID))
	case linux.PR_SET_THP_DISABLE:
		if !none {
			return 0, linux.EINVAL
		}
		p.smallPages.Store(a.A2 != 0)
		t.memory().SetSmallPages(a.A2 != 0)
		return 0, 0
	case linux.PR_GET_THP_DISABLE:
		if a.A2 != 0 || !none {
			return 0, linux.EINVAL
		}
		return flag(p.smallPages.Load()), 0
	}
	return privilege.Prctl(callTask{t}, a)
}

func flag(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// rename sets the name of the task to a string of its memory; a longer one is cut. Errors: EFAULT.
func (t *Task) rename(addr uint64) linux.Errno {
	name, errno := t.caller.Memory.String(addr, nameSize-1)
	if errno == linux.ENAMETOOLONG {
		b := make([]byte, nameSize-1)
		errno = t.caller.Memory.Read(b, addr)
		name = string(b)
	}
	if errno == 0 {
		t.setComm(name)
	}
	return errno
}

// comm returns the name of the task, and setComm sets it. Any goroutine may call them.
func (t *Task) comm() string {
	if s := t.name.Load(); s != nil {
		return *s
	}
	return ""
}

func (t *Task) setComm(name string) { t.name.Store(&name) }
