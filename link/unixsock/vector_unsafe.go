//go:build linux

package unixsock

import (
	"syscall"
	"unsafe"
)

// Scatter and gather for a stream socket.
//
// Safety, for every use of unsafe here: the kernel uses the memory behind the pointers only during
// the call. The vectors hold it by Go pointers, so the garbage collector keeps it until then. None
// of these calls blocks, so the scheduler is not notified of them: see fd.Read.

// maxVector is the most pieces that one call sends.
const maxVector = 64

// vector is a list of byte slices to send.
type vector struct {
	pieces [maxVector]syscall.Iovec
	n      int
}

func (v *vector) reset() { v.n = 0 }

// add appends b, which must not be empty.
func (v *vector) add(b []byte) {
	v.pieces[v.n].Base = &b[0]
	v.pieces[v.n].SetLen(len(b))
	v.n++
}

// send sends the pieces without blocking, and without raising SIGPIPE if the other end is closed.
// It returns the number of bytes sent.
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

// readv reads into a, which may be empty, and then into b. It returns the number of bytes read.
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
