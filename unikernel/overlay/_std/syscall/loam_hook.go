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

// Loam's descriptors are loamFDBase and the loamFDSpan-1 numbers above it.
const (
	loamFDBase = 1 << 24
	loamFDSpan = 1 << 24
)

// How to tell whether a call is Loam's, by its number.
const (
	loamNever   = 0 // it is not
	loamFirstFD = 1 // its first argument is a descriptor: whose?
	loamOther   = 2 // loamCall looks at the other arguments
)

// loamCalls holds one of the constants above for each system call. All are
// loamNever until Loam has started.
var loamCalls [512]uint8

// loamServe opens the door. It is called once, before any code of the program.
//
//go:linkname loamServe
func loamServe(calls *[512]uint8) { loamCalls = *calls }

// Loam calls the host past the door by this.
//
//go:linkname linuxSyscall6

// loamCall serves a call, or says that it is Linux's.
//
//go:linkname loamCall loam/unikernel/rt.call
func loamCall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr, served bool)

// loamEnter and loamEnterBubble are in package runtime: into Loam, unless this
// is no place for it, and back.
func loamEnter() (bubble unsafe.Pointer, ok bool)
func loamEnterBubble(bubble unsafe.Pointer)

// loamAsk asks loamCall, outside of any bubble of testing/synctest. It is
// nosplit because its callers are.
//
//go:nosplit
func loamAsk(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr, served bool) {
	bubble, ok := loamEnter()
	if !ok {
		return 0, 0, false
	}
	r1, errno, served = loamCall(trap, a1, a2, a3, a4, a5, a6)
	if bubble != nil {
		loamEnterBubble(bubble)
	}
	return r1, errno, served
}

// loamMayServe reports whether to ask loamCall. It is what every system call of
// the program pays.
//
//go:nosplit
func loamMayServe(trap, a1 uintptr) bool {
	if trap >= uintptr(len(loamCalls)) || loamCalls[trap] == loamNever {
		return false
	}
	return loamCalls[trap] != loamFirstFD || uint32(a1)-loamFDBase < loamFDSpan
}

//go:uintptrkeepalive
//go:nosplit
//go:linkname Syscall
func Syscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	if loamMayServe(trap, a1) {
		if r1, errno, served := loamAsk(trap, a1, a2, a3, 0, 0, 0); served {
			return r1, 0, Errno(errno)
		}
	}
	return linuxSyscall(trap, a1, a2, a3)
}

//go:uintptrkeepalive
//go:nosplit
//go:linkname Syscall6
func Syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	if loamMayServe(trap, a1) {
		if r1, errno, served := loamAsk(trap, a1, a2, a3, a4, a5, a6); served {
			return r1, 0, Errno(errno)
		}
	}
	return linuxSyscall6(trap, a1, a2, a3, a4, a5, a6)
}

//go:uintptrkeepalive
//go:nosplit
//go:norace
//go:linkname RawSyscall
func RawSyscall(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err Errno) {
	if loamMayServe(trap, a1) {
		if r1, errno, served := loamAsk(trap, a1, a2, a3, 0, 0, 0); served {
			return r1, 0, Errno(errno)
		}
	}
	return linuxRawSyscall6(trap, a1, a2, a3, 0, 0, 0)
}

//go:uintptrkeepalive
//go:nosplit
//go:norace
//go:linkname RawSyscall6
func RawSyscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err Errno) {
	if loamMayServe(trap, a1) {
		if r1, errno, served := loamAsk(trap, a1, a2, a3, a4, a5, a6); served {
			return r1, 0, Errno(errno)
		}
	}
	return linuxRawSyscall6(trap, a1, a2, a3, a4, a5, a6)
}
