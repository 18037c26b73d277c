package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/posix/credential"
	"loam/task/signal"
)

// nameSize is the size of the name of a task, with its NUL.
const nameSize = 16

// defaultSlack is the timer slack of a new process, in nanoseconds. It has no effect: timers are not delayed.
const defaultSlack = 50000

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
	case linux.PR_SET_NO_NEW_PRIVS:
		if a.A2 != 1 || !none {
			return 0, linux.EINVAL
		}
		c := *t.creds()
		c.NoNewPrivs = true
		return t.adopt(c, 0)
	case linux.PR_GET_NO_NEW_PRIVS:
		if a.A2 != 0 || !none {
			return 0, linux.EINVAL
		}
		return flag(t.creds().NoNewPrivs), 0
	case linux.PR_SET_SECCOMP, linux.PR_GET_SECCOMP:
		return t.prctlSeccomp(a)
	case linux.PR_SET_TIMERSLACK:
		if t.traits.slack = a.A2; a.A2 == 0 || a.A2 >= 1<<63 {
			t.traits.slack = defaultSlack
		}
		return 0, 0
	case linux.PR_GET_TIMERSLACK:
		return t.traits.slack, 0
	case linux.PR_GET_TID_ADDRESS:
		return 0, t.caller.Memory.Write(a.A2, binary.LittleEndian.AppendUint64(nil, t.clearID))
	case linux.PR_SET_THP_DISABLE:
		if !none {
			return 0, linux.EINVAL
		}
		p.smallPages.Store(a.A2 != 0)
		return 0, 0
	case linux.PR_GET_THP_DISABLE:
		if a.A2 != 0 || !none {
			return 0, linux.EINVAL
		}
		return flag(p.smallPages.Load()), 0
	}
	return t.prctlCapabilities(a)
}

// prctlCapabilities implements the operations of prctl(2) on capabilities. Errors: EINVAL for an unknown operation.
func (t *Task) prctlCapabilities(a call.Args) (uint64, linux.Errno) {
	c := t.creds()
	switch number(a.A1) {
	case linux.PR_CAPBSET_READ:
		if a.A2 > linux.CAP_LAST_CAP {
			return 0, linux.EINVAL
		}
		return flag(c.Bounding.Has(int(a.A2))), 0
	case linux.PR_CAPBSET_DROP:
		return t.adopt(c.Drop(a.A2))
	case linux.PR_GET_SECUREBITS:
		return uint64(c.Secure), 0
	case linux.PR_SET_SECUREBITS:
		return t.adopt(c.SetSecure(a.A2))
	case linux.PR_GET_KEEPCAPS:
		return flag(c.Secure&credential.KeepCaps != 0), 0
	case linux.PR_SET_KEEPCAPS:
		return t.adopt(c.SetKeepCaps(a.A2))
	case linux.PR_CAP_AMBIENT:
		return t.prctlAmbient(a)
	}
	return 0, linux.EINVAL
}

// prctlAmbient implements PR_CAP_AMBIENT. Errors: EINVAL, EPERM.
func (t *Task) prctlAmbient(a call.Args) (uint64, linux.Errno) {
	c := *t.creds()
	switch {
	case a.A2 == linux.PR_CAP_AMBIENT_CLEAR_ALL && a.A3|a.A4|a.A5 == 0:
		c.Ambient = 0
		return t.adopt(c, 0)
	case a.A3 > linux.CAP_LAST_CAP || a.A4|a.A5 != 0:
		return 0, linux.EINVAL
	case a.A2 == linux.PR_CAP_AMBIENT_IS_SET:
		return flag(c.Ambient.Has(int(a.A3))), 0
	case a.A2 == linux.PR_CAP_AMBIENT_RAISE, a.A2 == linux.PR_CAP_AMBIENT_LOWER:
		return t.adopt(c.SetAmbient(a.A3, a.A2 == linux.PR_CAP_AMBIENT_RAISE))
	}
	return 0, linux.EINVAL
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
