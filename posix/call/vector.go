package call

import (
	"loam/abi/linux"
	"loam/fs"
)

// Vectors of buffers: readv(2), writev(2) and struct msghdr.

// vector is a decoded array of struct iovec.
type vector []linux.Iovec

// fewPieces is an array for vectors of up to eight buffers (Linux's UIO_FASTIOV). Most calls need no more, so their vectors stay
// on the stack of the calling function.
type fewPieces [8]linux.Iovec

// vector reads an array of n struct iovec at addr. It stores the array in the buffer few
// if it fits there. Errors: EINVAL, EFAULT.
func (c Caller) vector(addr, n uint64, few *fewPieces) (vector, linux.Errno) {
	if n > linux.UIO_MAXIOV {
		return nil, linux.EINVAL
	}
	v := vector(few[:min(n, uint64(len(few)))])
	if n > uint64(len(few)) {
		v = make(vector, n)
	}
	if !c.moves() && n <= Small/linux.SizeofIovec {
		return c.wholeVector(addr, v)
	}
	for i := range v {
		errno := c.element(&v[i], addr+uint64(i)*linux.SizeofIovec)
		if errno != 0 {
			return nil, errno
		}
	}
	return v, v.check()
}

// wholeVector reads an array of struct iovec by one copy, from memory that does not move. Errors: EINVAL, EFAULT.
func (c Caller) wholeVector(addr uint64, v vector) (vector, linux.Errno) {
	l := c.borrow(len(v) * linux.SizeofIovec)
	defer l.giveBack()
	if errno := c.Memory.Read(l.b, addr); errno != 0 {
		return nil, errno
	}
	for i := range v {
		v[i] = linux.ParseIovec(l.b[i*linux.SizeofIovec:])
	}
	return v, v.check()
}

// moves reports whether the caller's memory can move, such as a Go stack: see Memory.Pointer.
func (c Caller) moves() bool { return c.Memory.Scratch() == nil }

// element reads one struct iovec. Errors: EFAULT.
func (c Caller) element(e *linux.Iovec, addr uint64) (errno linux.Errno) {
	if *e, errno = parse(c, addr, linux.SizeofIovec, linux.ParseIovec); errno == 0 {
		e.Base, errno = c.Memory.Pointer(addr)
	}
	return errno
}

// check rejects negative lengths, and buffers that no address space has room for. It cuts off what exceeds the largest
// transfer of a call.
func (v vector) check() linux.Errno {
	for _, e := range v {
		if int64(e.Len) < 0 {
			return linux.EINVAL
		}
	}
	const largest = 1 << 47 // size of the lower half of an address space, in bytes
	left := uint64(longest)
	for i := range v {
		e := &v[i]
		if e.Len > largest || e.Base+e.Len < e.Base {
			return linux.EFAULT
		}
		e.Len = min(e.Len, left)
		left -= e.Len
	}
	return 0
}

// len returns the total number of bytes.
func (v vector) len() int {
	n := 0
	for _, e := range v {
		n += int(e.Len)
	}
	return n
}

// single returns the only buffer of a vector without copying. It returns nil if the vector has more than one buffer, or if
// the caller's memory cannot be accessed directly.
func (c Caller) single(v vector) ([]byte, linux.Errno) {
	if len(v) != 1 {
		return nil, 0
	}
	return c.buffer(v[0].Base, int(v[0].Len))
}

// gather copies bytes from offset off into b, and returns their number.
func (c Caller) gather(v vector, b []byte, off int) (int, linux.Errno) {
	return v.each(off, len(b), func(at int, addr uint64, n int) linux.Errno { return c.Memory.Read(b[at:at+n], addr) })
}

// scatter copies b to the buffers of v, in their order.
func (c Caller) scatter(v vector, b []byte) linux.Errno {
	_, errno := v.each(0, len(b), func(at int, addr uint64, n int) linux.Errno { return c.Memory.Write(addr, b[at:at+n]) })
	return errno
}

// each calls f for the pieces of the n bytes at offset off, with the position of each piece relative to
// off. It returns the number of bytes before the first error.
func (v vector) each(off, n int, f func(at int, addr uint64, n int) linux.Errno) (int, linux.Errno) {
	done := 0
	for _, e := range v {
		size := int(e.Len)
		if off >= size {
			off -= size
			continue
		}
		piece := min(size-off, n-done)
		if piece == 0 {
			break
		}
		if errno := f(done, e.Base+uint64(off), piece); errno != 0 {
			return done, errno
		}
		done += piece
		off = 0
	}
	return done, 0
}

// argument decodes the vector of a call such as readv(2): descriptor in a.A1, address in a.A2, length in a.A3. b is the
// caller's memory itself if the vector has one buffer that needs no copy. The call reads or writes at an offset or at fs.Current.
func (c Caller) argument(a Args, few *fewPieces, offset int64, write bool) (v vector, b []byte, errno linux.Errno) {
	if errno = c.opened(fd(a.A1)); errno != 0 {
		return v, nil, errno
	}
	if v, errno = c.vector(a.A2, uint64(uint32(a.A3)), few); errno != 0 {
		return v, nil, errno
	}
	for _, e := range v {
		if errno = c.Process.CheckMemory(fd(a.A1), e.Base|e.Len, offset, write); errno != 0 && e.Len > 0 {
			return v, nil, errno
		}
	}
	b, errno = c.single(v)
	return v, b, errno
}

// receiveVector calls read once and distributes the bytes to the vector at a.A2. It receives at most largeLoan bytes. The function
// read reads at an offset or at fs.Current.
func (c Caller) receiveVector(a Args, offset int64, read func([]byte) (int, linux.Errno)) (uint64, linux.Errno) {
	var few fewPieces
	v, b, errno := c.argument(a, &few, offset, false)
	switch {
	case errno != 0:
		return fail(errno)
	case b != nil:
		return result(read(b))
	}
	l := c.borrow(min(v.len(), largeLoan))
	defer l.giveBack()
	got, errno := read(l.b)
	if errno == 0 {
		errno = c.scatter(v, l.b[:got])
	}
	return result(got, errno)
}

// sendVector writes the vector at a.A2 to a stream, buffer by buffer, until a write is partial.
func (c Caller) sendVector(a Args, write func([]byte) (int, linux.Errno)) (uint64, linux.Errno) {
	var few fewPieces
	v, b, errno := c.argument(a, &few, fs.Current, true)
	switch {
	case errno != 0:
		return fail(errno)
	case b != nil:
		return result(write(b))
	}
	return c.sendPieces(v, write)
}

func (c Caller) sendPieces(v vector, write func([]byte) (int, linux.Errno)) (uint64, linux.Errno) {
	total := v.len()
	l := c.borrow(min(total, largeLoan))
	defer l.giveBack()
	for off := 0; ; {
		got, errno := c.gather(v, l.b, off)
		n := 0
		if errno == 0 {
			n, errno = write(l.b[:got])
		}
		if errno != 0 {
			if off > 0 {
				return result(off, 0)
			}
			return fail(errno)
		}
		off += n
		if n < got || off == total {
			return result(off, 0)
		}
	}
}
