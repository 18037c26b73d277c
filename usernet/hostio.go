package usernet

import (
	"sync"
	"syscall"

	"loam/link/fd"
)

// Reading the host's sockets. A connection may be idle for hours, and thousands
// may be; so a goroutine takes a buffer only when there is something to read,
// and gives it back before it waits again. Waiting is the runtime poller's, by
// way of syscall.RawConn.
//
// Rejected: a small buffer for each connection and a large one when the small
// one comes back full, which costs a system call more for each burst.

// bufferSize holds the largest UDP datagram. For a stream, 256 KiB gained nothing
// that could be measured (BenchmarkTCP).
const bufferSize = 256 << 10

type buffer [bufferSize]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// hostReader reads one socket. It belongs to one goroutine.
type hostReader struct {
	raw syscall.RawConn
	buf *buffer // nil: none is held
	n   int
	err error
	try func(fd uintptr) bool // tryRead, made a func value once
}

func newHostReader(c syscall.Conn) (*hostReader, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &hostReader{raw: raw}
	r.try = r.tryRead
	return r, nil
}

// read waits for bytes and returns them; they are good until the next call of
// read or release. For a stream, none without an error is its end.
func (r *hostReader) read() ([]byte, error) {
	if err := r.raw.Read(r.try); err != nil {
		r.release()
		return nil, err
	}
	if r.err != nil {
		r.release()
		return nil, r.err
	}
	return r.buf[:r.n], nil
}

// tryRead is called by the poller; false means wait until there is something.
func (r *hostReader) tryRead(socket uintptr) bool {
	if r.buf == nil {
		r.buf = buffers.Get().(*buffer)
	}
	for {
		r.n, r.err = fd.Read(socket, r.buf[:])
		switch r.err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			r.release()
			return false
		default:
			return true
		}
	}
}

// waitReset waits, on a stream that has ended, until the connection is reset, is
// closed, or its read deadline has passed. Reading would go on to tell of the
// end of the stream; the socket's error does not. The runtime's poller reports
// changes, of which the reset is the next one.
func (r *hostReader) waitReset() {
	r.raw.Read(func(fd uintptr) bool {
		pending, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		return pending != 0 || err != nil
	})
}

// release gives the buffer back.
func (r *hostReader) release() {
	if r.buf != nil {
		buffers.Put(r.buf)
		r.buf = nil
	}
}
