package usernet

import (
	"sync"
	"syscall"

	"loam/link/fd"
)

// Reading the host's sockets. Thousands of connections may be idle for hours. So a goroutine takes a buffer only when
// there is data to read, and returns the buffer before it waits for more. It waits in the runtime's poller, through
// syscall.RawConn.
//
// Rejected: each connection keeps a small buffer, and takes a large one only when the small one is full. This costs an
// additional system call per burst.

// bufferSize is the size of a read buffer, in bytes. It is larger than the largest UDP datagram. For streams, larger
// buffers brought no measurable gain (BenchmarkTCP).
const bufferSize = 256 << 10

type buffer [bufferSize]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// room is the place for one read buffer, which is large, small, or absent. It belongs to one goroutine.
type room struct {
	large *buffer
	small *[littleBytes]byte
}

// take gets a buffer from a pool if the room has none. little selects the small size.
func (r *room) take(little bool) {
	switch {
	case r.large != nil || r.small != nil:
	case little:
		r.small = littleBuffers.Get().(*[littleBytes]byte)
	default:
		r.large = buffers.Get().(*buffer)
	}
}

// bytes returns the buffer. The room must hold one.
func (r *room) bytes() []byte {
	if r.small != nil {
		return r.small[:]
	}
	return r.large[:]
}

// give returns the buffer, if there is one, to its pool.
func (r *room) give() {
	if r.small != nil {
		littleBuffers.Put(r.small)
	}
	if r.large != nil {
		buffers.Put(r.large)
	}
	*r = room{}
}

// hostReader reads one socket. It belongs to one goroutine.
type hostReader struct {
	raw    syscall.RawConn
	buf    room
	little func() bool // reports whether to use small buffers; nil: never
	n      int
	err    error
	try    func(fd uintptr) bool // tryRead as a func value, allocated once
}

// newHostReader returns a reader of the socket c. The caller still owns c.
func newHostReader(c syscall.Conn) (*hostReader, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &hostReader{raw: raw}
	r.try = r.tryRead
	return r, nil
}

// read waits for data and returns it. The slice is valid until the next call of read or release. For a stream, an empty
// slice without an error means the end of the stream.
func (r *hostReader) read() ([]byte, error) {
	if err := r.raw.Read(r.try); err != nil {
		r.release()
		return nil, err
	}
	if r.err != nil {
		r.release()
		return nil, r.err
	}
	return r.buf.bytes()[:r.n], nil
}

// tryRead is called by the poller. It returns false to wait for data.
func (r *hostReader) tryRead(socket uintptr) bool {
	r.buf.take(r.little != nil && r.little())
	for {
		r.n, r.err = fd.Read(socket, r.buf.bytes())
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

// waitReset is called after the end of a stream. It waits until the connection is reset or closed, or until its read
// deadline has passed. It checks SO_ERROR, because another read would only return the end of the stream again. The
// runtime's poller wakes it at each change; after the end of the stream, the next change is a reset.
func (r *hostReader) waitReset() {
	r.raw.Read(func(fd uintptr) bool {
		pending, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		return pending != 0 || err != nil
	})
}

// release returns the buffer to its pool.
func (r *hostReader) release() { r.buf.give() }
