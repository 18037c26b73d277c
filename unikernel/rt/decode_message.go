package rt

import (
	"syscall"
	"unsafe"

	"loam/posix"
)

// Decoders of the calls that send and receive messages.

//go:noinline
func sysSendto(fd int, p unsafe.Pointer, n, flags int, to unsafe.Pointer, toLen int) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	}
	m := posix.Outgoing{Flags: flags}
	if to != nil {
		var errno syscall.Errno
		if m.To, errno = address(to, toLen); errno != 0 {
			return fail(errno)
		}
	}
	if !onStack(p) {
		return result(process.Send(fd, bytesAt(p, n), m))
	}
	buf := borrow(n)
	defer buf.giveBack()
	copy(buf.b, bytesAt(p, n))
	return result(process.Send(fd, buf.b, m))
}

//go:noinline
func sysRecvfrom(fd int, p unsafe.Pointer, n, flags int, from, fromLen unsafe.Pointer) (uintptr, uintptr) {
	switch {
	case n < 0:
		return fail(syscall.EINVAL)
	case n > 0 && p == nil:
		return fail(syscall.EFAULT)
	}
	var r posix.Received
	var errno syscall.Errno
	if onStack(p) {
		buf := borrow(n)
		defer buf.giveBack()
		r, errno = process.Recv(fd, buf.b, flags)
		copy(bytesAt(p, n), buf.b[:r.N])
	} else {
		r, errno = process.Recv(fd, bytesAt(p, n), flags)
	}
	if errno == 0 {
		errno = putAddress(from, fromLen, r.From)
	}
	return result(received(r, flags), errno)
}

// received is the number that a call returns: with MSG_TRUNC, how long the
// message was.
func received(r posix.Received, flags int) int {
	if flags&syscall.MSG_TRUNC != 0 {
		return r.Len
	}
	return r.N
}

//go:noinline
func sysSendmsg(fd int, p unsafe.Pointer, flags int) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	h := (*syscall.Msghdr)(p)
	v, errno := newVector(unsafe.Pointer(h.Iov), int(h.Iovlen))
	if errno != 0 {
		return fail(errno)
	}
	m := posix.Outgoing{Flags: flags}
	if h.Name != nil && h.Namelen > 0 {
		if m.To, errno = address(unsafe.Pointer(h.Name), int(h.Namelen)); errno != 0 {
			return fail(errno)
		}
	}
	if h.Controllen > 0 {
		if m.Control, errno = controlIn(unsafe.Pointer(h.Control), int(h.Controllen)); errno != 0 {
			return fail(errno)
		}
	}
	if b, ok := v.single(); ok {
		return result(process.Send(fd, b, m))
	}
	// A message must go in one piece; a stream may be cut, and then so may this.
	buf := borrow(min(v.len(), maxMessage))
	defer buf.giveBack()
	v.gather(buf.b, 0)
	return result(process.Send(fd, buf.b, m))
}

// maxMessage bounds what one sendmsg or recvmsg carries: more than any datagram.
const maxMessage = 4 << 20

//go:noinline
func sysRecvmsg(fd int, p unsafe.Pointer, flags int) (uintptr, uintptr) {
	if p == nil {
		return fail(syscall.EFAULT)
	}
	h := (*syscall.Msghdr)(p)
	v, errno := newVector(unsafe.Pointer(h.Iov), int(h.Iovlen))
	if errno != 0 {
		return fail(errno)
	}
	var r posix.Received
	if b, ok := v.single(); ok {
		r, errno = process.Recv(fd, b, flags)
	} else {
		buf := borrow(min(v.len(), maxMessage))
		defer buf.giveBack()
		r, errno = process.Recv(fd, buf.b, flags)
		v.scatter(buf.b[:r.N], 0)
	}
	if errno != 0 {
		return fail(errno)
	}
	out := int32(r.Flags)
	size := int32(h.Namelen)
	if h.Name != nil {
		if errno = putAddress(unsafe.Pointer(h.Name), unsafe.Pointer(&size), r.From); errno != 0 {
			return fail(errno)
		}
		h.Namelen = uint32(size)
	}
	n, truncated := controlOut(unsafe.Pointer(h.Control), int(h.Controllen), r.Control)
	h.Controllen = uint64(n)
	h.Flags = out | int32(truncated)
	return result(received(r, flags), 0)
}

// mmsghdr is struct mmsghdr (sendmmsg(2)).
type mmsghdr struct {
	header syscall.Msghdr
	n      uint32
	_      uint32
}

// each message of a sendmmsg or recvmmsg, until one fails; the error is told
// only if it is the first.
func eachMessage(p unsafe.Pointer, count int, f func(m *mmsghdr, i int) (uintptr, uintptr)) (uintptr, uintptr) {
	if p == nil && count > 0 {
		return fail(syscall.EFAULT)
	}
	for i := range min(count, maxVector) {
		m := (*mmsghdr)(unsafe.Add(p, uintptr(i)*unsafe.Sizeof(mmsghdr{})))
		n, errno := f(m, i)
		if errno != 0 {
			if i > 0 {
				return uintptr(i), 0
			}
			return failure, errno
		}
		m.n = uint32(n)
	}
	return uintptr(min(count, maxVector)), 0
}

//go:noinline
func sysSendmmsgs(fd int, p unsafe.Pointer, count, flags int) (uintptr, uintptr) {
	return eachMessage(p, count, func(m *mmsghdr, _ int) (uintptr, uintptr) {
		return sysSendmsg(fd, unsafe.Pointer(&m.header), flags)
	})
}

// sysRecvmmsgs waits for the first message only, as with MSG_WAITFORONE, and
// takes what has arrived besides; the timeout is not looked at.
//
//go:noinline
func sysRecvmmsgs(fd int, p unsafe.Pointer, count, flags int) (uintptr, uintptr) {
	return eachMessage(p, count, func(m *mmsghdr, i int) (uintptr, uintptr) {
		if i > 0 {
			flags |= syscall.MSG_DONTWAIT
		}
		return sysRecvmsg(fd, unsafe.Pointer(&m.header), flags)
	})
}
