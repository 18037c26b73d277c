package usernet

import (
	"io"
	"sync"
	"syscall"

	"loam/link/fd"
	"loam/stack"
)

// Small amounts of data from the guest are written to the host's socket immediately, by the thread that has read them
// from the link, while it processes packets for the stack. Waking the relay's goroutine, usually on another thread,
// would take longer than the write. The relay's goroutine handles the other cases: larger amounts, data that the host
// does not accept at once, the end of the stream, and errors.

// littleBytes is the largest amount that is written immediately, in bytes.
const littleBytes = 16 << 10

var littleBuffers = sync.Pool{New: func() any { return new([littleBytes]byte) }}

// handover is the state of the stream from the guest to the host.
type handover struct {
	mu   sync.Mutex // held while moving bytes; guards the fields below
	rest []byte     // bytes read from the guest that the host has not accepted yet; they are sent first
	err  error      // result of the last read from the guest or the last write

	raw  syscall.RawConn      // the host's socket, a TCP connection to the destination or the client
	send func(socket uintptr) // trySend as a func value, allocated once
	p    []byte               // argument of trySend: the bytes to send
	sent int                  // result of trySend: bytes accepted
}

// init prepares the handover for writing to the host's socket (the parameter host).
func (h *handover) init(host syscall.Conn) (err error) {
	h.raw, err = host.SyscallConn()
	h.send = h.trySend
	return err
}

// trySend writes p to the socket without blocking. It is called by raw.Control.
func (h *handover) trySend(socket uintptr) {
	if h.sent, h.err = fd.Send(socket, h.p); h.err != nil {
		h.sent = 0
		if h.err == syscall.EAGAIN || h.err == syscall.EINTR {
			h.err = nil
		}
	}
}

// onEvents is the callback that the relay passes to Watch. The stack calls it while it processes packets, so it must
// not block.
func (r *relay) onEvents(e stack.Events) {
	if e != stack.Readable || !r.handNow() {
		r.bell.ring(e)
	}
}

// handNow moves available data to the host without blocking. It returns false if the relay's goroutine must do the
// rest.
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
	for { // two iterations: the second read finds no data, which makes the stack report the next data
		n, err := r.guest.TryRead(buf[:])
		if err == stack.ErrWouldBlock {
			return true
		}
		if h.err = err; err != nil || !h.take(buf[:n], r.tally) {
			return false
		}
	}
}

// take writes p to the host's socket and keeps the bytes that the socket does not accept. It returns true if the socket
// accepted all. The caller holds mu.
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

// finish writes the data that handNow has kept, and returns the error that handNow has recorded.
func (h *handover) finish(host io.Writer, t *tally) error {
	if len(h.rest) > 0 && h.err == nil {
		n, err := host.Write(h.rest)
		t.add(TCPBytesOut, n)
		h.rest, h.err = nil, err
	}
	return h.err
}
