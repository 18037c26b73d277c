package rt

import (
	"runtime/debug"
	"sync"
	"unsafe"

	"loam/abi/linux"
)

// goMemory implements call.Memory for a Go program. Addresses are the program's own, except those on the
// stack of the calling goroutine. The stack may move during the call, so these are encoded relative to
// stackTop. The program keeps its arguments' memory alive until the call returns, as for a call of Linux.
//
// A bad address causes a processor fault. The runtime turns it into a panic (debug.SetPanicOnFault), and
// goMemory turns the panic into EFAULT.
type goMemory struct{}

// at returns a pointer to n bytes at an encoded address, or nil if the range cannot exist. It is nosplit so
// that the stack does not move between reading its bounds and making the pointer.
//
//go:nosplit
func at(addr uint64, n int) unsafe.Pointer {
	lo, hi := stackBounds()
	if depth := stackTop - addr; depth-1 < uint64(hi-lo) {
		if uint64(n) > depth {
			return nil
		}
		return ptr(hi - uintptr(depth))
	}
	if addr+uint64(n) < addr {
		return nil
	}
	return ptr(uintptr(addr))
}

// guarded makes memory faults of this goroutine panic, and returns the previous setting. The caller passes that setting
// to faulted with defer.
func guarded() (before bool) { return debug.SetPanicOnFault(true) }

// faulted restores the setting that guarded changed, and converts a fault to EFAULT.
func faulted(before bool, errno *linux.Errno) {
	debug.SetPanicOnFault(before)
	if recover() != nil {
		*errno = linux.EFAULT
	}
}

// Read implements call.Memory.
func (goMemory) Read(b []byte, addr uint64) (errno linux.Errno) {
	if len(b) == 0 {
		return 0
	}
	p := at(addr, len(b))
	if p == nil {
		return linux.EFAULT
	}
	defer faulted(guarded(), &errno)
	copy(b, bytesAt(p, len(b)))
	return 0
}

// Write implements call.Memory.
func (goMemory) Write(addr uint64, b []byte) (errno linux.Errno) {
	if len(b) == 0 {
		return 0
	}
	p := at(addr, len(b))
	if p == nil {
		return linux.EFAULT
	}
	defer faulted(guarded(), &errno)
	copy(bytesAt(p, len(b)), b)
	return 0
}

// Pointer implements call.Memory.
func (goMemory) Pointer(addr uint64) (value uint64, errno linux.Errno) {
	defer faulted(guarded(), &errno)
	value, ok := pointerAt(addr)
	if !ok {
		return 0, linux.EFAULT
	}
	return value, 0
}

// pointerAt reads an address from memory and encodes it if it is on the stack. It is nosplit: the stack
// must not move in between.
//
//go:nosplit
func pointerAt(addr uint64) (uint64, bool) {
	p := (*uintptr)(at(addr, 8))
	if p == nil {
		return 0, false
	}
	lo, hi := stackBounds()
	return uint64(relative(1, *p, lo, hi)), true
}

// String implements call.Memory. It reads byte by byte, because memory after the NUL may not be mapped.
func (goMemory) String(addr uint64, most int) (s string, errno linux.Errno) {
	p := at(addr, 1)
	if p == nil {
		return "", linux.EFAULT
	}
	defer faulted(guarded(), &errno)
	for n := range most {
		if *(*byte)(unsafe.Add(p, n)) == 0 {
			return string(bytesAt(p, n)), 0
		}
	}
	return "", linux.ENAMETOOLONG
}

// Scratch implements call.Memory. There is no buffer: calls of several goroutines use the same value.
func (goMemory) Scratch() []byte { return nil }

// Pin implements call.Memory. Bytes returns the memory without a copy.
func (goMemory) Pin(uint64, int, bool) ([][]byte, func(lost bool)) { return nil, nil }

// Bytes implements call.Memory. It returns nil and no error if the caller must copy instead. That is so for
// memory on a stack: the code below the call may keep the slice where other goroutines see it. It is also
// so if the first or last byte cannot be read: the copy then returns EFAULT.
func (goMemory) Bytes(addr uint64, n int) ([]byte, linux.Errno) {
	const half = 1 << 47 // addresses have 47 bits and a sign: those from half up to -half do not exist
	end := addr + uint64(n)
	if end < addr || n > half || addr+half >= 2*half && addr-(stackTop-half) > half {
		return nil, linux.EFAULT
	}
	p := at(addr, n)
	switch {
	case p == nil:
		return nil, linux.EFAULT
	case onStack(p) || !isThere(p, n):
		return nil, 0
	}
	return bytesAt(p, n), 0
}

// isThere reports whether the first and the last of n bytes can be read. It does not check the pages between.
func isThere(p unsafe.Pointer, n int) bool {
	var errno linux.Errno
	probe(p, n, &errno)
	return errno == 0
}

// probe stores EFAULT in errno if the first or the last of n bytes cannot be read.
func probe(p unsafe.Pointer, n int, errno *linux.Errno) {
	defer faulted(guarded(), errno)
	ends(bytesAt(p, n))
}

// ends reads the first and the last byte. It is not inlined, so that the compiler cannot drop the reads.
//
//go:noinline
func ends(b []byte) byte { return b[0] | b[len(b)-1] }

// onStack reports whether an address is on the calling goroutine's stack.
//
//go:linkname onStack runtime.loamOnStack
func onStack(p unsafe.Pointer) bool

// bytesAt returns n bytes of the program's memory as a slice. The slice must not outlive the call. If the
// memory may be on the stack, the slice must not be stored in the heap.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// loanSize is the size of the buffers that replace memory on a stack. It holds the largest datagram.
const loanSize = 64 << 10

// loans pools these buffers.
var loans = sync.Pool{New: func() any { return new([loanSize]byte) }}

// copied calls f with a heap buffer of n bytes.
func copied(n int, f func(b []byte)) {
	if n > loanSize {
		f(make([]byte, n))
		return
	}
	buf := loans.Get().(*[loanSize]byte)
	f(buf[:n])
	loans.Put(buf)
}
