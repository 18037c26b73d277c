//go:build linux

package unixsock

import (
	"syscall"
	"unsafe"
)

// Several messages by one call, for sockets that keep them apart. Safety, for
// every use of unsafe here: the kernel uses what the pointers lead to during the
// call only; messages hold them as Go pointers, so the collector sees them until
// then, and is in the heap, so they do not move.

// maxMessages is how many messages go through one call. A receiver's queue holds
// no more than net.unix.max_dgram_qlen, 10 by default.
const maxMessages = 16

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header syscall.Msghdr
	length uint32
}

// messages are what one call sends or receives.
type messages struct {
	headers [maxMessages]mmsghdr
	pieces  [maxMessages]syscall.Iovec
}

// set makes b, if it is not empty, message i, or the place for it.
func (m *messages) set(i int, b []byte) {
	p := &m.pieces[i]
	p.Base = unsafe.SliceData(b)
	p.SetLen(len(b))
	m.headers[i] = mmsghdr{header: syscall.Msghdr{Iov: p}}
	setIovlen(&m.headers[i].header, 1)
}

// send sends the first n messages without waiting, and returns how many went. An
// error comes only if none did.
func (m *messages) send(fd uintptr, n int) (int, error) {
	return m.call(sysSendmmsg, fd, n, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

// receive receives up to n messages without waiting.
func (m *messages) receive(fd uintptr, n int) (int, error) {
	return m.call(syscall.SYS_RECVMMSG, fd, n, syscall.MSG_DONTWAIT)
}

func (m *messages) call(number, fd uintptr, n int, flags uintptr) (int, error) {
	for {
		done, _, errno := syscall.Syscall6(number, fd, uintptr(unsafe.Pointer(&m.headers[0])), uintptr(n), flags, 0, 0)
		switch errno {
		case 0:
			return int(done), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// length is that of message i, after receive; whole is false if it was longer
// than its place.
func (m *messages) length(i int) (n int, whole bool) {
	h := &m.headers[i]
	return int(h.length), h.header.Flags&syscall.MSG_TRUNC == 0
}
