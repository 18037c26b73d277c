package server

import (
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// socket is the connection to the client: a non-blocking stream socket. Read looks for a request for
// some time before it blocks its thread, because the next request mostly comes soon, and because the
// kernel takes longer to wake a thread than most requests take. If the CPUs are busy, it blocks at once.
type socket struct {
	fd   int
	busy int // number of reads that will not look
}

const (
	// lookTime is the time for which Read polls for input before it blocks.
	lookTime = 50 * time.Microsecond
	// busyTime is the time of sched_yield(2) after which the CPUs are considered busy.
	busyTime = 20 * time.Microsecond
	// busyReads is the number of reads that block without polling, after the CPUs were busy.
	busyReads = 100
)

// Read implements io.Reader.
func (s *socket) Read(p []byte) (int, error) {
	looks := s.busy == 0
	s.busy = max(s.busy-1, 0)
	for start := time.Now(); ; {
		n, err := unix.Read(s.fd, p)
		switch {
		case err == unix.EINTR:
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		case err != unix.EAGAIN:
			return max(n, 0), err
		case !looks || time.Since(start) > lookTime:
			s.wait(unix.POLLIN)
		default:
			looks = s.yield()
		}
	}
}

// yield lets other threads run. It returns false if the CPUs are busy.
func (s *socket) yield() bool {
	before := time.Now()
	unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	if time.Since(before) <= busyTime {
		return true
	}
	s.busy = busyReads
	return false
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
			s.wait(unix.POLLOUT)
		default:
			return done, err
		}
	}
	return done, nil
}

// wait waits until the socket is ready.
func (s *socket) wait(events int16) {
	unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: events}}, -1)
}
