package call

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Memory is the memory of a caller, by address. Its methods return EFAULT for a bad address. A call may
// use it from one goroutine only, and not after it has returned.
type Memory interface {
	// Read copies len(b) bytes from addr.
	Read(b []byte, addr uint64) linux.Errno
	// Write copies b to addr.
	Write(addr uint64, b []byte) linux.Errno
	// Pointer reads the address stored at addr. Addresses must be read this way: if the memory can move
	// (a Go stack), the address is translated.
	Pointer(addr uint64) (uint64, linux.Errno)
	// String reads a string up to its terminating NUL, which is not returned. Errors: ENAMETOOLONG if no NUL is found
	// within most bytes.
	String(addr uint64, most int) (string, linux.Errno)
	// Bytes returns the n bytes at addr without a copy, or nil if they can only be copied; n is at
	// least 1. Errors: EFAULT if addr can never be mapped. An unmapped page is detected only by a copy,
	// as on Linux, where a call that copies nothing succeeds.
	Bytes(addr uint64, n int) ([]byte, linux.Errno)
	// Pin returns the n bytes at addr in place, as pieces in order, for a device. store reports that the device stores to them.
	// The memory stays until the caller calls unpin. With lost, it is never reused, because the device may still access
	// it. pieces is nil if the bytes can only be copied.
	Pin(addr uint64, n int, store bool) (pieces [][]byte, unpin func(lost bool))
	// Scratch returns a buffer of Small bytes for a copy by the call in progress, or nil: the call then borrows one. Memory
	// with such a buffer does not move: Pointer translates nothing.
	Scratch() []byte
}

// Small is the size in bytes of the buffer that Memory.Scratch returns.
const Small = smallLoan

// loan is a temporary buffer of this package that a call uses when it cannot access the caller's memory directly.
type loan struct {
	b     []byte
	small *[smallLoan]byte
	large *[largeLoan]byte
}

// Sizes of reusable buffers in bytes. A small one holds any structure, a large one any datagram.
// Streams are copied through a large one piece by piece.
const (
	smallLoan = 512
	largeLoan = 64 << 10
)

var (
	smallLoans = sync.Pool{New: func() any { return new([smallLoan]byte) }}
	largeLoans = sync.Pool{New: func() any { return new([largeLoan]byte) }}
)

// borrow returns a buffer of n bytes. Its content is undefined.
func borrow(n int) loan {
	switch {
	case n <= smallLoan:
		buf := smallLoans.Get().(*[smallLoan]byte)
		return loan{b: buf[:n], small: buf}
	case n <= largeLoan:
		buf := largeLoans.Get().(*[largeLoan]byte)
		return loan{b: buf[:n], large: buf}
	}
	return loan{b: make([]byte, n)}
}

// borrow returns a buffer of n bytes, which giveBack returns. If n is small, this is the buffer that a thread in ring 3 has for
// its calls (Memory.Scratch), so a call may have only one small buffer at a time.
func (c Caller) borrow(n int) loan {
	if n <= Small {
		if scratch := c.Memory.Scratch(); scratch != nil {
			return loan{b: scratch[:n]}
		}
	}
	return borrow(n)
}

// giveBack returns the buffer to its pool.
func (l loan) giveBack() {
	if l.small != nil {
		smallLoans.Put(l.small)
	}
	if l.large != nil {
		largeLoans.Put(l.large)
	}
}

// copyIn returns a copy of n bytes at addr.
func (c Caller) copyIn(addr uint64, n int) ([]byte, linux.Errno) {
	if n == 0 {
		return nil, 0
	}
	b := make([]byte, n)
	return b, c.Memory.Read(b, addr)
}

// readUint32 reads 32 bits.
func (c Caller) readUint32(addr uint64) (uint32, linux.Errno) {
	l := c.borrow(4)
	defer l.giveBack()
	errno := c.Memory.Read(l.b, addr)
	return le.Uint32(l.b), errno
}

// writeUint32 writes 32 bits.
func (c Caller) writeUint32(addr uint64, v uint32) linux.Errno {
	l := c.borrow(4)
	defer l.giveBack()
	le.PutUint32(l.b, v)
	return c.Memory.Write(addr, l.b)
}

// writeUint64 writes 64 bits.
func (c Caller) writeUint64(addr uint64, v uint64) linux.Errno {
	l := c.borrow(8)
	defer l.giveBack()
	le.PutUint64(l.b, v)
	return c.Memory.Write(addr, l.b)
}

// put calls encode with a buffer of size bytes and writes the buffer to addr.
func (c Caller) put(addr uint64, size int, encode func(b []byte)) (uint64, linux.Errno) {
	l := c.borrow(size)
	defer l.giveBack()
	encode(l.b)
	return 0, c.Memory.Write(addr, l.b)
}

// parse reads size bytes at addr and decodes them.
func parse[T any](c Caller, addr uint64, size int, decode func(b []byte) T) (T, linux.Errno) {
	l := c.borrow(size)
	defer l.giveBack()
	if errno := c.Memory.Read(l.b, addr); errno != 0 {
		var none T
		return none, errno
	}
	return decode(l.b), 0
}

// fill calls read with the memory at addr, or with a buffer that it then copies there.
// The function read stores up to n bytes from the descriptor fd, read at an offset or at fs.Current.
func (c Caller) fill(fd int, addr uint64, n int, offset int64, read func([]byte) (int, linux.Errno)) (uint64, linux.Errno) {
	b, errno := c.buffer(addr, n)
	if errno == 0 && n > 0 {
		errno = c.Process.CheckMemory(fd, addr, offset, false)
	}
	switch {
	case errno != 0:
		return 0, c.orClosed(fd, errno, (*file.Description).MayRead)
	case b != nil || n == 0:
		return result(read(b[:min(n, longest)]))
	}
	l := c.borrow(min(n, most))
	n, errno = read(l.b)
	if errno == 0 {
		errno = c.Memory.Write(addr, l.b[:n])
	}
	l.giveBack()
	return result(n, errno)
}

// drain passes the n bytes at addr in the caller's memory to the function write, which
// writes them to the descriptor fd.
func (c Caller) drain(fd int, addr uint64, n int, write func([]byte) (int, linux.Errno)) (uint64, linux.Errno) {
	b, errno := c.buffer(addr, n)
	if errno == 0 && n > 0 {
		errno = c.Process.CheckMemory(fd, addr, fs.Current, true)
	}
	switch {
	case errno != 0:
		return 0, c.orClosed(fd, errno, (*file.Description).MayWrite)
	case b != nil || n == 0:
		return result(write(b[:min(n, longest)]))
	}
	l := c.borrow(min(n, most))
	defer l.giveBack()
	if errno := c.Memory.Read(l.b, addr); errno != 0 {
		return 0, c.orClosed(fd, errno, (*file.Description).MayWrite)
	}
	return result(write(l.b))
}

// orClosed returns EBADF if fd is not open, or not for this use, and errno otherwise. Linux checks the descriptor before
// other arguments.
func (c Caller) orClosed(fd int, errno linux.Errno, allows func(*file.Description) bool) linux.Errno {
	if o := c.Process.Opened(fd); o == nil || o.PathOnly() || !allows(o) {
		return linux.EBADF
	}
	return errno
}

// most is the maximum number of bytes that one call copies. Every datagram is smaller. A larger transfer of a stream is
// partial, and a larger transfer of a file in the file tree takes several steps.
const most = 4 << 20

// buffer returns the n bytes at addr without a copy, or nil if they have to be copied. Errors: EFAULT,
// also for a negative n.
func (c Caller) buffer(addr uint64, n int) ([]byte, linux.Errno) {
	if n < 0 {
		return nil, linux.EFAULT
	}
	if n == 0 {
		return nil, 0
	}
	return c.Memory.Bytes(addr, n)
}

// path reads a path. Errors: EFAULT, ENAMETOOLONG.
func (c Caller) path(addr uint64) (string, linux.Errno) { return c.Memory.String(addr, fs.MaxPath) }
