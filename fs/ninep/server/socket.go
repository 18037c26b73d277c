package server

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"loam/abi/linux"
	"loam/fs/ninep"
)

// source is a connection to the client.
type source interface {
	io.ReadWriter // Read blocks its thread
	// TryRead reads bytes that have arrived. Errors: EAGAIN if there are none; io.EOF.
	TryRead(p []byte) (int, error)
	// Yield lets another thread use this CPU.
	Yield()
}

// patient reads from a connection. Read looks for a request for some time before it blocks its thread, because the next
// request mostly comes soon, and because the kernel takes longer to wake a thread than most requests take. If the CPUs
// are busy, it blocks at once.
type patient struct {
	source
	patience ninep.Patience
}

// Read implements io.Reader.
func (s *patient) Read(p []byte) (n int, err error) {
	arrived := func() bool {
		n, err = s.TryRead(p)
		return err != linux.EAGAIN
	}
	if s.patience.Wait(arrived, s.Yield) {
		return n, err
	}
	return s.source.Read(p)
}

// socket is a non-blocking stream socket to the client. It implements source, and ring.Peer for a connection in memory.
type socket struct{ fd int }

// TryRead implements source.
func (s *socket) TryRead(p []byte) (int, error) {
	for {
		n, err := unix.Read(s.fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, linux.EAGAIN
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return max(n, 0), err
		}
	}
}

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	for {
		if n, err := s.TryRead(p); err != linux.EAGAIN {
			return n, err
		}
		s.poll(unix.POLLIN, -1)
	}
}

// Write implements io.Writer.
func (s *socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(s.fd, p[done:])
		switch err {
		case nil:
			done += n
		case unix.EINTR:
		case unix.EAGAIN:
			s.poll(unix.POLLOUT, -1)
		default:
			return done, err
		}
	}
	return done, nil
}

// poll waits until the socket is ready, has failed, or a time in milliseconds is over (-1: never). It returns the events
// that poll(2) has reported.
func (s *socket) poll(events int16, most int) int16 {
	p := []unix.PollFd{{Fd: int32(s.fd), Events: events}}
	unix.Poll(p, most)
	return p[0].Revents
}

// Yield implements source and ring.Peer.
func (s *socket) Yield() { unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wake implements ring.Peer. If the socket is full, the client has not yet read an earlier byte.
func (s *socket) Wake() error {
	for {
		switch _, err := unix.Write(s.fd, []byte{0}); err {
		case nil, unix.EAGAIN:
			return nil
		case unix.EINTR:
		default:
			return err
		}
	}
}

// Wait implements ring.Peer.
func (s *socket) Wait() error {
	s.poll(unix.POLLIN, -1)
	var bytes [64]byte
	if _, err := s.TryRead(bytes[:]); err != nil && err != linux.EAGAIN {
		return err
	}
	return nil
}

// errEnded is returned if the client has ended.
var errEnded = errors.New("the client has ended")

// Pause implements ring.Peer.
func (s *socket) Pause() error {
	if s.poll(0, 1)&(unix.POLLHUP|unix.POLLERR) != 0 {
		return errEnded
	}
	return nil
}

// Close implements ring.Peer.
func (s *socket) Close() error { return unix.Close(s.fd) }
