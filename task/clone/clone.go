// Package clone decodes and checks the calls that create threads and processes: clone(2), clone3(2), fork(2) and vfork(2).
package clone

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/posix/call"
	"loam/task/signal"
)

// Request is a call of fork(2), vfork(2), clone(2) or clone3(2).
type Request struct {
	Flags             uint64 // set of flags CLONE_*
	Signal            uint64 // signal that the parent gets when the child has ended; 0: none
	Stack             uint64 // stack pointer of the new thread; 0: as in the caller
	ParentID, ChildID uint64 // addresses at which the ID of the child is stored
	TLS               uint64
	PIDFD             uint64 // address at which the descriptor of the child is stored, with CLONE_PIDFD
}

// Sizes of the versions of struct clone_args in bytes, and the largest size that is accepted.
const args0, args2, mostArgs = 64, 88, 4096

// Groups of flags: those that create namespaces, and all flags.
const (
	Namespaces = linux.CLONE_NEWCGROUP | linux.CLONE_NEWIPC | linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWPID |
		linux.CLONE_NEWTIME | linux.CLONE_NEWUSER | linux.CLONE_NEWUTS
	all = 1<<32 - 1 | linux.CLONE_CLEAR_SIGHAND | linux.CLONE_INTO_CGROUP
)

// Fork returns the request of fork(2).
func Fork() Request { return Request{Signal: linux.SIGCHLD} }

// VFork returns the request of vfork(2).
func VFork() Request {
	return Request{Flags: linux.CLONE_VM | linux.CLONE_VFORK, Signal: linux.SIGCHLD}
}

// Parse decodes a call of clone(2). Errors: EINVAL.
func Parse(a call.Args) (Request, linux.Errno) {
	const both = linux.CLONE_PIDFD | linux.CLONE_PARENT_SETTID
	if a.A1&both == both { // both flags need the argument as the address of their result
		return Request{}, linux.EINVAL
	}
	return Request{
		Flags: uint64(uint32(a.A1)) &^ 0xff, Signal: a.A1 & 0xff, Stack: a.A2, ParentID: a.A3, ChildID: a.A4, TLS: a.A5, PIDFD: a.A3,
	}, 0
}

// Parse3 decodes a call of clone3(2) without chosen IDs and control groups. Errors: EINVAL, E2BIG, EFAULT.
func Parse3(m call.Memory, a call.Args) (Request, linux.Errno) {
	switch {
	case a.A2 > mostArgs:
		return Request{}, linux.E2BIG
	case a.A2 < args0:
		return Request{}, linux.EINVAL
	}
	b := make([]byte, max(a.A2, args2))
	if errno := m.Read(b[:a.A2], a.A1); errno != 0 {
		return Request{}, errno
	}
	for _, x := range b[args2:] {
		if x != 0 {
			return Request{}, linux.E2BIG
		}
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i*8:]) }
	q := Request{
		Flags: word(0), PIDFD: word(1), ChildID: word(2), ParentID: word(3), Signal: word(4), Stack: word(5) + word(6), TLS: word(7),
	}
	const signalBits = 0xff &^ linux.CLONE_NEWTIME
	chosenIDs, intoGroup := word(8)|word(9), q.Flags&linux.CLONE_INTO_CGROUP != 0
	switch {
	case q.Flags&^all != 0, q.Flags&(linux.CLONE_DETACHED|signalBits) != 0, q.Signal > uint64(signal.Last),
		word(5) == 0 && word(6) != 0, word(5) != 0 && word(6) == 0,
		q.Flags&(linux.CLONE_THREAD|linux.CLONE_PARENT) != 0 && q.Signal != 0,
		q.Flags&linux.CLONE_SIGHAND != 0 && q.Flags&linux.CLONE_CLEAR_SIGHAND != 0,
		chosenIDs != 0, intoGroup:
		return Request{}, linux.EINVAL
	}
	return q, 0
}

// Check checks the combination of flags. Of the namespaces, a new process may have mounts of its own, if the caller permits it.
// Errors: EPERM, EINVAL.
func (q *Request) Check() linux.Errno {
	const thread = linux.CLONE_THREAD
	switch {
	case q.Mounts() && q.Flags&linux.CLONE_FS != 0:
		return linux.EINVAL
	case q.Flags&Namespaces&^linux.CLONE_NEWNS != 0, q.Mounts() && q.Flags&thread != 0:
		return linux.EPERM
	case q.Flags&linux.CLONE_PIDFD != 0 && q.Flags&(thread|linux.CLONE_DETACHED) != 0,
		q.Flags&thread != 0 && q.Flags&linux.CLONE_SIGHAND == 0,
		q.Flags&linux.CLONE_SIGHAND != 0 && q.Flags&linux.CLONE_VM == 0,
		q.Signal > uint64(signal.Last):
		return linux.EINVAL
	}
	return 0
}

// Thread reports whether the request is for a thread of the caller's process.
func (q *Request) Thread() bool { return q.Flags&linux.CLONE_THREAD != 0 }

// Mounts reports whether the request is for a process with mounts of its own.
func (q *Request) Mounts() bool { return q.Flags&linux.CLONE_NEWNS != 0 }
