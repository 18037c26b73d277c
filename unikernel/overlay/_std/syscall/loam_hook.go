package syscall

// The hook between a program and Loam. Syscall, Syscall6, RawSyscall and RawSyscall6 are replaced by the
// functions below. The toolchain's own functions still exist under names that begin with linux.
//
// The hook runs before entersyscall. A call that Loam serves is an ordinary Go call on the same goroutine:
// if it blocks, it parks the goroutine and holds no thread.
//
// All of this is nosplit. The arguments are uintptrs, and some of them are addresses on the caller's stack.
// If the stack moved here, these addresses would be stale. loamCall encodes them relative to the stack
// before it calls anything that may grow the stack.

import "unsafe" // go:linkname requires this import too

// A descriptor of the host is numbered in the guest as its host number plus loamHostFD. The program knows
// none of them; Loam's own links and streams use them. Linux and Loam both hand out the lowest free number,
// so neither reaches loamHostFD by itself.
const (
	loamHostFD   = 1 << 24
	loamHostSpan = 1 << 24
)

// Owners of a system call: the values of the table loamCalls, which unikernel/rt/start.go fills from the
// table of calls (posix/call).
const (
	loamHost    = 0 // the call is passed to the host
	loamFirstFD = 1 // Loam serves the call, unless its first argument is a descriptor of the host
	loamOurs    = 2 // Loam serves the call
)

// loamCalls holds the owner of each system call. The last entry stands for all higher numbers. The host
// owns every call until Loam has started.
var loamCalls [512]uint8

// loamServe installs the table of owners. It is called once, before any code of the program runs.
//
//go:linkname loamServe
func loamServe(calls *[512]uint8) { loamCalls = *calls }

// Loam uses linuxSyscall6 for its own system calls of the host, which must not pass through the hook.
//
//go:linkname linuxSyscall6

// loamCall serves a system call of Loam.
//
//go:linkname loamCall loam/unikernel/rt.call
func loamCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr)

// loamEnter and loamEnterBubble are in package runtime. loamEnter enters Loam: ok is false if no Go code
// may run at this point. loamEnterBubble undoes it.
func loamEnter() (bubble unsafe.Pointer, ok bool)
func loamEnterBubble(bubble unsafe.Pointer)

// loamAsk runs loamCall outside of any testing/synctest bubble. Where no Go code may run
// (runtime/loam_hook.go), it returns ENOSYS. It is nosplit because its callers are.
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

// loamWhose reports whether Loam serves a call, or the host. It returns the first argument; if this is a
// descriptor of the host, it returns the host's number of the descriptor. Every system call of the program
// runs this function. It is nosplit because its callers are.
//
//go:nosplit
func loamWhose(trap, a1 uintptr) (ours bool, first uintptr) {
	whose := loamCalls[min(trap, uintptr(len(loamCalls)-1))]
	if whose == loamFirstFD && uint32(a1)-loamHostFD < loamHostSpan {
		return false, uintptr(uint32(a1) - loamHostFD)
	}
	return whose != loamHost, a1
}

// loamSecond returns the second result of a system call. Linux leaves its register (RDX) unchanged, with
// the third argument in it, and some programs read it (mremap in Badger). It is nosplit because its callers
// are.
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
