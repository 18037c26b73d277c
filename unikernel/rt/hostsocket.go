package rt

import (
	"io"
	"sync/atomic"
	"unsafe"

	"loam/abi/linux"
	"loam/posix"
)

// hostSocket is a non-blocking stream socket of the host to the server of a folder. It implements ninep.Trier, and
// ring.Peer for a connection in shared memory. The poller does not watch it: a thread that waits for the poller would
// wake up for each reply, although a caller reads it.
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
func (s *hostSocket) wait(want posix.Events) { s.poll(want, socketWait) }

// poll waits until the socket is ready, has failed, or a time in milliseconds is over. It returns the events that poll(2)
// has reported.
func (s *hostSocket) poll(want posix.Events, most uintptr) posix.Events {
	p := pollFD(s.fd, want)
	hostCall(linux.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, most, 0, 0, 0)
	return posix.Events(linux.ParsePollFD(p[:]).Revents)
}

// Wake implements ring.Peer. If the socket is full, the other process has not yet read an earlier byte.
func (s *hostSocket) Wake() error {
	for {
		switch _, errno := hostBytes(linux.SYS_WRITE, s.fd, []byte{0}); errno {
		case 0, linux.EAGAIN:
			return nil
		case linux.EINTR:
		default:
			return errno
		}
	}
}

// Wait implements ring.Peer.
func (s *hostSocket) Wait() error {
	s.wait(posix.PollIn)
	if s.closed.Load() {
		return io.ErrClosedPipe
	}
	var bytes [64]byte
	if _, err := s.TryRead(bytes[:]); err != nil && err != linux.EAGAIN {
		return err
	}
	return nil
}

// Pause implements ring.Peer.
func (s *hostSocket) Pause() error {
	if s.poll(0, 1)&(posix.PollHup|posix.PollErr) != 0 || s.closed.Load() {
		return io.ErrClosedPipe
	}
	return nil
}

// Close implements io.Closer.
func (s *hostSocket) Close() error {
	if !s.closed.Swap(true) {
		hostCall(linux.SYS_CLOSE, s.fd, 0, 0, 0, 0, 0)
	}
	return nil
}
