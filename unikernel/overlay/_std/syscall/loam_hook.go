package syscall

// The door between a program and Loam. Syscall, Syscall6, RawSyscall and
// RawSyscall6 come here first; the functions of the toolchain are still there,
// under names that begin with linux.
//
// The door stands before entersyscall. A call that Loam serves is an ordinary
// call of an ordinary Go function on the same goroutine: it may block, which
// parks the goroutine and holds no thread.
//
// All of this is nosplit. The arguments are uintptrs, some of them addresses of
// the caller's stack; were the stack moved here, they would be wrong. loamCall
// turns those that are addresses into pointers before it calls anything that
// may grow the stack.

import "unsafe" // and for go:linkname

// Descriptors of the host are hostFD more here than there; the program knows none
// of them, but Loam's own links and streams do. Linux hands out the lowest number
// that is free, and Loam does as well, so neither gets that far.
const (
	loamHostFD   = 1 << 24
	loamHostSpan = 1 << 24
)

// Whose a call is, by its number: see posix.Takes.
const (
	loamHost    = 0 // the host's
	loamFirstFD = 1 // Loam's, unless its first argument is a descriptor of the host
	loamOurs    = 2 // Loam's
)

// loamCalls holds one of the constants above for each system call; the last stands
// for all that are higher. All are the host's until Loam has started.
var loamCalls [512]uint8

// loamServe opens the door. It is called once, before any code of the program.
//
//go:linkname loamServe
func loamServe(calls *[512]uint8) { loamCalls = *calls }

// Loam calls the host past the door by this.
//
//go:linkname linuxSyscall6

// loamCall serves a call.
//
//go:linkname loamCall loam/unikernel/rt.call
func loamCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr)

// loamEnter and loamEnterBubble are in package runtime: into Loam, unless this
// is no place for it, and back.
func loamEnter() (bubble unsafe.Pointer, ok bool)
func loamEnterBubble(bubble unsafe.Pointer)

// loamAsk asks loamCall, outside of any bubble of testing/synctest. Where no Go
// code may run (runtime/loam_hook.go), there are no calls of Loam's: ENOSYS. It is
// nosplit because its callers are.
//
//go:nosplit
func loamAsk(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr) {
	bubble, ok := loamEnter()
	if !ok {
		return ^uintptr(0), uintptr(ENOSYS)
	}
	r1, errno = loamCall(trap, a1, a2, a3, a4, a5, a6)
	if bubble != nil {
		loamEnterBubble(bubble)
	}
	return r1, errno
}

// loamWhose says whose a call is, and what its first argument is there. It is what
// every system call of the program pays.
//
//go:nosplit
func loamWhose(trap, a1 uintptr) (ours bool, first uintptr) {
	whose := loamCalls[min(trap, uintptr(len(loamCalls)-1))]
	if whose == loamFirstFD && uint32(a1)-loamHostFD < loamHostSpan {
		return false, uintptr(uint32(a1) - loamHostFD)
	}
	return whose != loamHost, a1
}

// loamSecond is the second result: Linux leaves the register as it was, with the third
// argument, and there are programs that look (mremap in Badger). It is nosplit because
// its callers are.
//
//go:nosplit
func loamSecond(a3, errno uintptr) uintptr {
	if errno != 0 {
		return 0
	}
	return a3
}

//go:uintptrkeepalive
//go:nosplit
//go:linkname Syscall
func Syscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	ours, a1 := loamWhose(trap, a1)
	if ours {
		r1, errno := loamAsk(trap, a1, a2, a3, 0, 0, 0)
		return r1, loamSecond(a3, errno), Errno(errno)
	}
	return linuxSyscall(trap, a1, a2, a3)
}

//go:uintptrkeepalive
//go:nosplit
//go:linkname Syscall6
func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	ours, a1 := loamWhose(trap, a1)
	if ours {
		r1, errno := loamAsk(trap, a1, a2, a3, a4, a5, a6)
		return r1, loamSecond(a3, errno), Errno(errno)
	}
	return linuxSyscall6(trap, a1, a2, a3, a4, a5, a6)
}

//go:uintptrkeepalive
//go:nosplit
//go:norace
//go:linkname RawSyscall
func RawSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	ours, a1 := loamWhose(trap, a1)
	if ours {
		r1, errno := loamAsk(trap, a1, a2, a3, 0, 0, 0)
		return r1, loamSecond(a3, errno), Errno(errno)
	}
	return linuxRawSyscall6(trap, a1, a2, a3, 0, 0, 0)
}

//go:uintptrkeepalive
//go:nosplit
//go:norace
//go:linkname RawSyscall6
func RawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	ours, a1 := loamWhose(trap, a1)
	if ours {
		r1, errno := loamAsk(trap, a1, a2, a3, a4, a5, a6)
		return r1, loamSecond(a3, errno), Errno(errno)
	}
	return linuxRawSyscall6(trap, a1, a2, a3, a4, a5, a6)
}
