//go:build linux

package fd

import (
	"syscall"
	"unsafe"
)

// Sending or receiving several messages with one system call, for sockets that preserve message boundaries: sendmmsg(2)
// and recvmmsg(2).
//
// Safety, for every use of unsafe here: the kernel uses the memory behind the pointers only during the call. Messages
// holds it by Go pointers, so the garbage collector keeps it until then. It is on the heap, so it does not move.

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header syscall.Msghdr
	length uint32
}

// Messages is a set of messages that one system call sends or receives.
type Messages struct {
	headers []mmsghdr
	pieces  []syscall.Iovec
	control []byte // room for the ancillary data of all messages
	each    int    // number of bytes of control for each message
}

// NewMessages returns room for n messages, each with control bytes of ancillary data.
func NewMessages(n, control int) *Messages {
	return &Messages{
		headers: make([]mmsghdr, n),
		pieces:  make([]syscall.Iovec, n),
		control: make([]byte, n*control),
		each:    control,
	}
}

// Len returns the number of messages that there is room for.
func (m *Messages) Len() int { return len(m.headers) }

// Set makes b the data of message i, or the buffer that it is received into. b may be empty. Set
// resets the ancillary data of message i to the full room.
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

// Send sends n messages starting with message first, without blocking. It returns the number of
// messages sent. An error is returned only if none was sent.
func (m *Messages) Send(fd uintptr, first, n int) (int, error) {
	return m.call(sysSendmmsg, fd, first, n, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}

// SendAtOnce is Send without notifying the Go scheduler. The scheduler treats a system call of more
// than 20 µs as blocked and gives the processor to another thread, which a packet generator cannot
// afford. In exchange, garbage collection waits until the kernel has taken over the batch.
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

// Receive receives up to n messages into messages 0 to n-1, without blocking.
func (m *Messages) Receive(fd uintptr, n int) (int, error) {
	return m.call(syscall.SYS_RECVMMSG, fd, 0, n, syscall.MSG_DONTWAIT)
}

// call makes one system call on n messages starting with message first, and repeats it after EINTR.
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

// Length returns the length in bytes of message i after Receive. whole is false if the message was
// longer than its buffer and was truncated.
func (m *Messages) Length(i int) (n int, whole bool) {
	h := &m.headers[i]
	return int(h.length), h.header.Flags&syscall.MSG_TRUNC == 0
}

// SetControl sets the number of bytes of Control that are sent as ancillary data of message i. Call
// it after Set.
func (m *Messages) SetControl(i, n int) {
	h := &m.headers[i].header
	h.SetControllen(n)
	if n == 0 {
		h.Control = nil
	}
}

// Control returns the ancillary data of message i after Receive. After Set, it returns the room for
// ancillary data.
func (m *Messages) Control(i int) []byte {
	return m.control[i*m.each:][:m.headers[i].header.Controllen]
}
