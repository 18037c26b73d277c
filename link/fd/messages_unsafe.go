//go:build linux

package fd

import (
	"syscall"
	"unsafe"
)

// Several messages by one call, for sockets that keep them apart: sendmmsg(2) and
// recvmmsg(2). Safety, for every use of unsafe here: the kernel uses what the
// pointers lead to during the call only; Messages hold them as Go pointers, so the
// collector sees them until then, and are in the heap, so they do not move.

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header syscall.Msghdr
	length uint32
}

// Messages are what one call sends or receives.
type Messages struct {
	headers []mmsghdr
	pieces  []syscall.Iovec
	control []byte // of all messages
	each    int    // bytes of control of one
}

// NewMessages makes room for n messages, each with as many bytes of ancillary
// data.
func NewMessages(n, control int) *Messages {
	return &Messages{
		headers: make([]mmsghdr, n),
		pieces:  make([]syscall.Iovec, n),
		control: make([]byte, n*control),
		each:    control,
	}
}

// Len is how many messages there is room for.
func (m *Messages) Len() int { return len(m.headers) }

// Set makes b, if it is not empty, message i, or the place for it.
func (m *Messages) Set(i int, b []byte) {
	p := &m.pieces[i]
	p.Base = unsafe.SliceData(b)
	p.SetLen(len(b))
	h := syscall.Msghdr{Iov: p, Iovlen: 1}
	if m.each > 0 {
		h.Control = &m.control[i*m.each]
		h.SetControllen(m.each)
	}
	m.headers[i] = mmsghdr{header: h}
}

// Send sends the n messages from first on without waiting, and returns how many
// went. An error comes only if none did.
func (m *Messages) Send(fd uintptr, first, n int) (int, error) {
	return m.call(sysSendmmsg, fd, first, n, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

// SendAtOnce is Send without telling the scheduler, which takes a system call of
// more than 20 µs for one that blocks, and gives the processor to another thread:
// a packet generator has none to give. The collector waits for it, for as long as
// the kernel takes over the batch.
func (m *Messages) SendAtOnce(fd uintptr, first, n int) (int, error) {
	const flags = syscall.MSG_NOSIGNAL | syscall.MSG_DONTWAIT
	for {
		done, _, errno := syscall.RawSyscall6(sysSendmmsg, fd, uintptr(unsafe.Pointer(&m.headers[first])), uintptr(n), flags, 0, 0)
		switch errno {
		case 0:
			return int(done), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// Receive receives up to n messages without waiting.
func (m *Messages) Receive(fd uintptr, n int) (int, error) {
	return m.call(syscall.SYS_RECVMMSG, fd, 0, n, syscall.MSG_DONTWAIT)
}

func (m *Messages) call(number, fd uintptr, first, n int, flags uintptr) (int, error) {
	for {
		done, _, errno := syscall.Syscall6(number, fd, uintptr(unsafe.Pointer(&m.headers[first])), uintptr(n), flags, 0, 0)
		switch errno {
		case 0:
			return int(done), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}

// Length is that of message i, after Receive; whole is false if it was longer
// than its place.
func (m *Messages) Length(i int) (n int, whole bool) {
	h := &m.headers[i]
	return int(h.length), h.header.Flags&syscall.MSG_TRUNC == 0
}

// SetControl says how many of the bytes of Control are ancillary data of message i
// that is to be sent: after Set.
func (m *Messages) SetControl(i, n int) {
	h := &m.headers[i].header
	h.SetControllen(n)
	if n == 0 {
		h.Control = nil
	}
}

// Control is the ancillary data of message i after Receive; after Set it is the room
// for them.
func (m *Messages) Control(i int) []byte {
	return m.control[i*m.each:][:m.headers[i].header.Controllen]
}
