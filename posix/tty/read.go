package tty

import (
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// taken is the result of an attempt to read from a terminal.
type taken uint8

const (
	nothing  taken = iota // there was no input
	some                  // some input was moved, and there may be more
	finished              // a line or the end of the file was reached
)

// take moves available input to b and returns the number of bytes.
func (s *Slave) take(b []byte) (int, taken) {
	s.mu.Lock()
	if s.hung {
		s.mu.Unlock()
		return 0, finished
	}
	if !s.line.Readable(1) {
		s.mu.Unlock()
		return 0, nothing
	}
	result := some
	if s.line.ByLines() {
		result = finished
	}
	n := s.line.Read(b)
	signals := s.line.Signals() // signals of keys that were processed now, because the read has made room
	s.mu.Unlock()
	if len(signals) > 0 {
		s.deliver(signals)
	}
	s.notify()
	return n, result
}

// waits returns how a read waits. least is the number of bytes that it waits for, and
// limit its time limit; a negative limit means none. If between is set, the limit applies
// to the time between two bytes.
func (s *Slave) waits() (least int, limit time.Duration, between bool) {
	const forever = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	least, tenths := s.line.Waits()
	limit = time.Duration(tenths) * time.Second / 10
	switch {
	case s.line.ByLines():
		return 1, forever, false
	case least == 0:
		return 1, limit, false
	case tenths == 0:
		return least, forever, false
	}
	return least, limit, true
}

// ReadFor implements read(2) on a terminal (termios(3), Canonical and noncanonical mode). Errors: EAGAIN, EINTR; EIO
// for a process in the background that cannot be stopped.
func (s *Slave) ReadFor(c Caller, b []byte, nonblocking bool) (int, linux.Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	if errno := s.inForeground(c, linux.SIGTTIN); errno != 0 {
		return -1, errno
	}
	least, limit, between := s.waits()
	n, result := s.take(b)
	if result == finished || n >= min(least, len(b)) || n == 0 && limit == 0 {
		return n, 0
	}
	if nonblocking {
		if n > 0 {
			return n, 0
		}
		return -1, linux.EAGAIN
	}
	sleeper := file.NewSleeper(s.Queue(), 0, c.Waiting())
	defer sleeper.Leave()
	if limit > 0 && (!between || n > 0) {
		sleeper.Restart(limit)
	}
	for {
		k, result := s.take(b[n:])
		n += k
		if result == finished || n >= min(least, len(b)) {
			return n, 0
		}
		if k > 0 && between {
			sleeper.Restart(limit)
		}
		switch errno := sleeper.Sleep(); {
		case errno == 0:
		case n > 0 || errno == linux.EAGAIN: // the time of VTIME has passed: the read returns the bytes that it has
			return n, 0
		default:
			return -1, errno
		}
	}
}
