package task

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/signal"
)

// The checks of clone(2) and clone3(2).

// Sizes of the versions of struct clone_args in bytes, and the largest size that is accepted.
const cloneArgs0, cloneArgs1, cloneArgs2, mostCloneArgs = 64, 80, 88, 4096

// Groups of flags of clone(2).
const (
	cloneNamespaces = linux.CLONE_NEWCGROUP | linux.CLONE_NEWIPC | linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID |
		linux.CLONE_NEWTIME | linux.CLONE_NEWUSER | linux.CLONE_NEWUTS
	cloneAll = 1<<32 - 1 | linux.CLONE_CLEAR_SIGHAND | linux.CLONE_INTO_CGROUP
)

// clone3 implements clone3(2) without chosen IDs and control groups. Errors: EINVAL, E2BIG, EFAULT, and the errors of clone.
func clone3(t *Task, a call.Args) (uint64, linux.Errno) {
	switch {
	case a.A2 > mostCloneArgs:
		return 0, linux.E2BIG
	case a.A2 < cloneArgs0:
		return 0, linux.EINVAL
	}
	b := make([]byte, max(a.A2, cloneArgs2))
	if errno := t.caller.Memory.Read(b[:a.A2], a.A1); errno != 0 {
		return 0, errno
	}
	for _, x := range b[cloneArgs2:] {
		if x != 0 {
			return 0, linux.E2BIG
		}
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	c := clone{
		flags: word(0), pidfd: word(1), childID: word(2), parentID: word(3), signal: word(4), stack: word(5) + word(6), tls: word(7),
	}
	const signalBits = 0xff &^ linux.CLONE_NEWTIME
	chosenIDs, intoGroup := word(8)|word(9), c.flags&linux.CLONE_INTO_CGROUP != 0
	switch {
	case c.flags&^cloneAll != 0, c.flags&(linux.CLONE_DETACHED|signalBits) != 0, c.signal > uint64(signal.Last),
		word(5) == 0 && word(6) != 0, word(5) != 0 && word(6) == 0,
		c.flags&(linux.CLONE_THREAD|linux.CLONE_PARENT) != 0 && c.signal != 0,
		c.flags&linux.CLONE_SIGHAND != 0 && c.flags&linux.CLONE_CLEAR_SIGHAND != 0,
		chosenIDs != 0, intoGroup:
		return 0, linux.EINVAL
	}
	return t.clone(c)
}

// clone creates a thread or a process. Errors: EINVAL, EPERM, EAGAIN, ENOMEM, EMFILE.
func (t *Task) clone(c clone) (uint64, linux.Errno) {
	const thread = linux.CLONE_THREAD
	switch {
	case c.flags&cloneNamespaces != 0:
		return 0, linux.EPERM
	case c.flags&linux.CLONE_PIDFD != 0 && c.flags&(thread|linux.CLONE_DETACHED) != 0,
		c.flags&thread != 0 && c.flags&linux.CLONE_SIGHAND == 0,
		c.flags&linux.CLONE_SIGHAND != 0 && c.flags&linux.CLONE_VM == 0,
		c.signal > uint64(signal.Last):
		return 0, linux.EINVAL
	}
	if c.flags&thread != 0 {
		return t.newThread(c)
	}
	return t.fork(c)
}
