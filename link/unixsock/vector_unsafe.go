//go:build linux

package unixsock

import (
	"syscall"
	"unsafe"
)

// Scatter and gather for a stream socket. Safety, for every use of unsafe here:
// the kernel uses what the pointers lead to during the call only; the vectors
// hold them as Go pointers, so the collector sees them until then. None of these calls
// waits, so the scheduler is not told of them: see fd.Read.

// maxVector is how many pieces go through one call.
const maxVector = 64

// vector is what is to be sent.
type vector struct {
	pieces [maxVector]syscall.Iovec
	n      int
}

func (v *vector) reset() { v.n = 0 }

// add appends b, which is not empty.
func (v *vector) add(b []byte) {
	v.pieces[v.n].Base = &b[0]
	v.pieces[v.n].SetLen(len(b))
	v.n++
}

// send sends the pieces without waiting, and without a signal if the other end
// has gone. It returns how many bytes went.
func (v *vector) send(fd uintptr) (int, error) {
	m := syscall.Msghdr{Iov: &v.pieces[0]}
	m.Iovlen = uint64(v.n)
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&m)), syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// readv fills a, which may be empty, and then b.
func readv(fd uintptr, a, b []byte) (int, error) {
	var pieces [2]syscall.Iovec
	v := pieces[1:]
	if len(a) > 0 {
		v = pieces[:]
		v[0].Base = &a[0]
		v[0].SetLen(len(a))
	}
	last := &v[len(v)-1]
	last.Base = &b[0]
	last.SetLen(len(b))
	n, _, errno := syscall.RawSyscall(syscall.SYS_READV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
