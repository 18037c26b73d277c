package usernet

import (
	"io"
	"sync"
	"syscall"

	"loam/link/fd"
	"loam/stack"
)

// Little that the guest sends is handed to the host where it is noticed: in the turn of
// the stack's shard, on the thread that has just read it from the link. To wake the
// relay's goroutine for it, as a rule on another thread, takes longer than the handing
// over. What is more than a little, what the host does not take at once, the end of the
// stream and errors are left to the goroutine.

// littleBytes is how much is little.
const littleBytes = 16 << 10

var littleBuffers = sync.Pool{New: func() any { return new([littleBytes]byte) }}

// handover is the guest's stream on its way to the host.
type handover struct {
	mu   sync.Mutex // who holds it moves bytes; guards all that follows
	rest []byte     // was read from the guest and not taken by the host; goes first
	err  error      // what the last read from the guest came to, or the last write

	raw  syscall.RawConn      // the host's socket
	send func(socket uintptr) // trySend, made a func value once
	p    []byte               // what it is to send
	sent int                  // how much of it was taken
}

func (h *handover) init(host syscall.Conn) (err error) {
	h.raw, err = host.SyscallConn()
	h.send = h.trySend
	return err
}

// trySend is called with the socket.
func (h *handover) trySend(socket uintptr) {
	if h.sent, h.err = fd.Send(socket, h.p); h.err != nil {
		h.sent = 0
		if h.err == syscall.EAGAIN || h.err == syscall.EINTR {
			h.err = nil
		}
	}
}

// hear is told what happens to the guest's connection. It is called in a turn.
func (r *relay) hear(e stack.Events) {
	if e != stack.Readable || !r.handNow() {
		r.bell.ring(e)
	}
}

// handNow hands over what there is, without waiting, and reports false if the goroutine
// has something left to do.
func (r *relay) handNow() bool {
	h := &r.out
	if r.guest.Buffered() > littleBytes || !h.mu.TryLock() {
		return false
	}
	defer h.mu.Unlock()
	if len(h.rest) > 0 || h.err != nil {
		return false
	}
	buf := littleBuffers.Get().(*[littleBytes]byte)
	defer littleBuffers.Put(buf)
	for { // twice: the second read finds nothing, and asks to be told of what comes next
		n, err := r.guest.TryRead(buf[:])
		if err == stack.ErrWouldBlock {
			return true
		}
		if h.err = err; err != nil || !h.take(buf[:n], r.tally) {
			return false
		}
	}
}

// take hands p to the host, keeps what the host does not take, and reports whether it
// took all. The caller holds mu.
func (h *handover) take(p []byte, t *tally) bool {
	h.p, h.sent = p, 0
	if err := h.raw.Control(h.send); err != nil {
		h.err = err
	}
	h.p = nil
	t.add(TCPBytesOut, h.sent)
	h.rest = append(h.rest[:0], p[h.sent:]...)
	return len(h.rest) == 0 && h.err == nil
}

// finish writes what handNow has left over, and returns the error that it left.
func (h *handover) finish(host io.Writer, t *tally) error {
	if len(h.rest) > 0 && h.err == nil {
		n, err := host.Write(h.rest)
		t.add(TCPBytesOut, n)
		h.rest, h.err = nil, err
	}
	return h.err
}
