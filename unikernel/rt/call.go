package rt

import (
	"unsafe" // for go:linkname

	"loam/abi/linux"
	syscalls "loam/posix/call"
)

// entry is a row of the table of calls, reduced to what call needs.
type entry struct {
	serve     syscalls.Serve // function that serves the call; nil: the call fails with errno
	addresses uint8          // bit i is set if argument i is an address: see call.Arguments
	ofFile    bool           // the first argument is a file descriptor
	errno     linux.Errno
}

// entries holds the rows of the table of calls, by call number. The last one is used for all higher numbers.
// They are set before Loam serves its first call and never change.
var entries [syscalls.Numbers]entry

// call serves a system call. The hook in package syscall calls it with the program's arguments. It returns
// the results of syscall.Syscall6.
//
// It is nosplit: an argument may be an address on the caller's stack. The stack must not move before such
// an address has been encoded relative to the end of the stack. After that goMemory decodes it wherever the
// stack lies.
//
//go:linkname call
//go:nosplit
func call(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, errno uintptr) {
	e := &entries[min(trap, syscalls.Numbers-1)]
	if e.serve == nil {
		return failure, uintptr(e.errno)
	}
	if e.ofFile && ending.Load() {
		park()
	}
	if set := e.addresses; set != 0 {
		lo, hi := stackBounds()
		a1, a2, a3 = relative(set, a1, lo, hi), relative(set>>1, a2, lo, hi), relative(set>>2, a3, lo, hi)
		a4, a5, a6 = relative(set>>3, a4, lo, hi), relative(set>>4, a5, lo, hi), relative(set>>5, a6, lo, hi)
	}
	n, refused := e.serve(syscalls.Caller{Process: process, Memory: goMemory{}}, syscalls.Args{
		A1: uint64(a1), A2: uint64(a2), A3: uint64(a3), A4: uint64(a4), A5: uint64(a5), A6: uint64(a6),
	})
	if refused != 0 {
		return failure, uintptr(refused)
	}
	return uintptr(n), 0
}

// failure is the first result of a system call that fails; the errno is the second.
const failure = ^uintptr(0)

// stackTop is the encoded address of the end of the calling goroutine's stack. It is not canonical, so an
// encoded address can never be confused with a real one.
const stackTop = 1 << 62

// relative encodes a as an offset from stackTop if it lies in [lo, hi) and bit 0 of set marks it as an
// address. Otherwise it returns a unchanged. It is nosplit because call is.
//
//go:nosplit
func relative(set uint8, a, lo, hi uintptr) uintptr {
	if set&1 != 0 && a-lo < hi-lo {
		return stackTop - (hi - a)
	}
	return a
}

// coreCall makes a system call of Loam's kernel. Its arguments may be addresses on the stack, which call has encoded as
// offsets: bit i of set is set if argument i is an address. coreCall decodes them. It is nosplit: the stack must not move
// between the decoding and the system call.
//
//go:nosplit
func coreCall(number int, set uint8, a *syscalls.Args) (uint64, linux.Errno) {
	_, hi := stackBounds()
	r, _, errno := hostCall(uintptr(number), absolute(set, a.A1, hi), absolute(set>>1, a.A2, hi), absolute(set>>2, a.A3, hi),
		absolute(set>>3, a.A4, hi), absolute(set>>4, a.A5, hi), absolute(set>>5, a.A6, hi))
	return uint64(r), errno
}

// absolute decodes an address that relative has encoded, for a stack that ends at hi. It is nosplit because coreCall is.
//
//go:nosplit
func absolute(set uint8, a uint64, hi uintptr) uintptr {
	if depth := stackTop - a; set&1 != 0 && depth-1 < stackTop>>1 {
		return hi - uintptr(depth)
	}
	return uintptr(a)
}

// stackBounds returns the bounds of the calling goroutine's stack. It is nosplit because call is.
//
//go:linkname stackBounds runtime.loamStackBounds
func stackBounds() (lo, hi uintptr)

// ptr converts an address to a pointer. Addresses in the first page, which is never mapped, become nil: the
// runtime throws when it finds such a pointer on a stack. The conversion goes through &a because go vet
// rejects a direct conversion of an integer to a pointer. It is nosplit because its callers are: the stack
// must not move in between.
//
//go:nosplit
func ptr(a uintptr) unsafe.Pointer {
	if a < 4096 {
		return nil
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&a))
}
