package rt

import (
	"sync"
	"syscall"
	"unsafe"
)

// Memory of the program. A pointer that a decoder holds keeps pointing at the
// same thing when the stack moves, as long as it is held in a variable of a
// pointer type on a goroutine's stack: never in the heap, never as a number.

// onStack reports whether an address is on the calling goroutine's stack.
//
//go:linkname onStack runtime.loamOnStack
func onStack(p unsafe.Pointer) bool

// loan is a buffer of ours in the place of one of the program's, whose memory is
// on a stack or in several pieces, for the time of a call.
type loan struct {
	b      []byte
	pooled *[loanSize]byte // nil: b is too large to come from there
}

// loanSize is the size of the buffers that are used again. It holds any datagram,
// and a stream goes through one piece by piece.
const loanSize = 64 << 10

var loans = sync.Pool{New: func() any { return new([loanSize]byte) }}

// borrow returns a buffer of n bytes, with anything in them.
func borrow(n int) loan {
	if n > loanSize {
		return loan{b: make([]byte, n)}
	}
	buf := loans.Get().(*[loanSize]byte)
	return loan{buf[:n], buf}
}

// giveBack ends a loan.
func (l loan) giveBack() {
	if l.pooled != nil {
		loans.Put(l.pooled)
	}
}

// bytesAt is the program's memory. The slice must not outlive the call, and must
// not be stored in the heap if it may be on the stack.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// copyIn returns a copy of n bytes of the program's.
func copyIn(p unsafe.Pointer, n int) ([]byte, syscall.Errno) {
	if n == 0 {
		return nil, 0
	}
	if p == nil {
		return nil, syscall.EFAULT
	}
	b := make([]byte, n)
	copy(b, bytesAt(p, n))
	return b, 0
}

// vector is the program's array of struct iovec.
type vector struct {
	first *syscall.Iovec
	n     int
}

// maxVector is UIO_MAXIOV.
const maxVector = 1024

// newVector checks the array. Errors: EINVAL, EFAULT.
func newVector(p unsafe.Pointer, n int) (vector, syscall.Errno) {
	switch {
	case n < 0 || n > maxVector:
		return vector{}, syscall.EINVAL
	case n > 0 && p == nil:
		return vector{}, syscall.EFAULT
	}
	v := vector{(*syscall.Iovec)(p), n}
	for i := range n {
		if e := v.at(i); int64(e.Len) < 0 {
			return vector{}, syscall.EINVAL
		} else if e.Len > 0 && e.Base == nil {
			return vector{}, syscall.EFAULT
		}
	}
	return v, 0
}

// at is element i; it points into the program's memory.
func (v vector) at(i int) *syscall.Iovec {
	return (*syscall.Iovec)(unsafe.Add(unsafe.Pointer(v.first), uintptr(i)*unsafe.Sizeof(syscall.Iovec{})))
}

// len is the number of bytes.
func (v vector) len() int {
	n := 0
	for i := range v.n {
		n += int(v.at(i).Len)
	}
	return n
}

// single returns the only buffer of a vector that has one, if it is not on a
// stack.
func (v vector) single() ([]byte, bool) {
	if v.n != 1 {
		return nil, false
	}
	e := v.at(0)
	if onStack(unsafe.Pointer(e.Base)) {
		return nil, false
	}
	return unsafe.Slice(e.Base, int(e.Len)), true
}

// gather copies the bytes from offset off on into b and returns how many.
func (v vector) gather(b []byte, off int) int {
	return v.each(off, len(b), func(at int, mem []byte) { copy(b[at:], mem) })
}

// scatter copies b to offset off.
func (v vector) scatter(b []byte, off int) {
	v.each(off, len(b), func(at int, mem []byte) { copy(mem, b[at:]) })
}

// each calls f for the pieces of the n bytes at off, with the place of each in
// the whole, and returns how many bytes there were. f must not keep mem.
func (v vector) each(off, n int, f func(at int, mem []byte)) int {
	done := 0
	for i := 0; i < v.n && done < n; i++ {
		e := v.at(i)
		size := int(e.Len)
		if off >= size {
			off -= size
			continue
		}
		mem := unsafe.Slice(e.Base, size)[off:]
		mem = mem[:min(len(mem), n-done)]
		off = 0
		f(done, mem)
		done += len(mem)
	}
	return done
}
