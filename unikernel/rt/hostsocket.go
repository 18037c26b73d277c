package rt

import (
	"io"
	"sync/atomic"
	"unsafe"

	"loam/abi/linux"
	"loam/posix"
)

// hostSocket is the connection to the server of a folder: a non-blocking stream socket of the host. It
// implements ninep.Trier. The poller does not watch it: a thread that waits for the poller would wake up
// for each reply, although a caller reads it.
type hostSocket struct {
	fd     uintptr
	closed atomic.Bool
}

// socketWait is the maximum time of one poll(2) in milliseconds: after that, Read notices Close.
const socketWait = 60_000

// TryRead implements ninep.Trier.
func (s *hostSocket) TryRead(p []byte) (int, error) {
	for {
		n, errno := hostBytes(linux.SYS_READ, s.fd, p)
		switch {
		case errno == linux.EINTR:
		case errno != 0:
			return 0, errno
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Yield implements ninep.Trier.
func (s *hostSocket) Yield() { hostCall(linux.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0) }

// Read implements io.Reader. It blocks its thread.
func (s *hostSocket) Read(p []byte) (int, error) {
	for !s.closed.Load() {
		n, err := s.TryRead(p)
		if err != linux.EAGAIN {
			return n, err
		}
		s.wait(posix.PollIn)
	}
	return 0, io.ErrClosedPipe
}

// Write implements io.Writer.
func (s *hostSocket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, errno := hostBytes(linux.SYS_WRITE, s.fd, p[done:])
		switch errno {
		case 0:
			done += n
		case linux.EINTR:
		case linux.EAGAIN:
			s.wait(posix.PollOut)
		default:
			return done, errno
		}
	}
	return done, nil
}

// wait waits until the socket is ready.
func (s *hostSocket) wait(want posix.Events) {
	p := pollFD(s.fd, want)
	hostCall(linux.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, socketWait, 0, 0, 0)
}

// Close implements io.Closer.
func (s *hostSocket) Close() error {
	if !s.closed.Swap(true) {
		hostCall(linux.SYS_CLOSE, s.fd, 0, 0, 0, 0, 0)
	}
	return nil
}
