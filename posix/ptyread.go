package posix

import (
	"time"

	"loam/abi/linux"
	"loam/posix/file"
)

// taken is the result of an attempt to read from a terminal.
type taken uint8

const (
	nothing  taken = iota // there is no input
	some                  // there was input, and there may be more
	finished              // a line, or the end of a file
)

// take moves input to b, as much as there is now.
func (s *ptySlave) take(b []byte) (int, taken) {
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
	signals := s.line.Signals() // of input that found room now
	s.mu.Unlock()
	if len(signals) > 0 {
		s.deliver(s.groups(), signals)
	}
	s.notify()
	return n, result
}

// groups returns the groups of the system of the terminal.
func (t *pty) groups() Groups {
	if h := t.all.groups.Load(); h != nil {
		return h.Groups
	}
	return alone{}
}

// waits returns how a read waits: for a number of bytes, and for how long: forever if that is negative. between is set if
// the time begins again with each byte, and first with the first byte.
func (s *ptySlave) waits() (least int, limit time.Duration, between bool) {
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

// readTerminal implements read(2) on a terminal (termios(3), Canonical and noncanonical mode). Errors: EAGAIN, EINTR; EIO
// for a process in the background that cannot be stopped.
func (p *Process) readTerminal(o *file.Description, t *ptySlave, b []byte) (int, Errno) {
	if len(b) == 0 {
		return 0, 0
	}
	if errno := p.inForeground(t.pty, linux.SIGTTIN); errno != 0 {
		return -1, errno
	}
	least, limit, between := t.waits()
	n, result := t.take(b)
	if result == finished || n >= min(least, len(b)) || n == 0 && limit == 0 {
		return n, 0
	}
	if o.Nonblocking() {
		if n > 0 {
			return n, 0
		}
		return -1, linux.EAGAIN
	}
	s := p.newSleeper(t.Queue(), 0)
	defer s.Leave()
	if limit > 0 && (!between || n > 0) {
		s.Restart(limit)
	}
	for {
		k, result := t.take(b[n:])
		n += k
		if result == finished || n >= min(least, len(b)) {
			return n, 0
		}
		if k > 0 && between {
			s.Restart(limit)
		}
		switch errno := s.Sleep(); {
		case errno == 0:
		case n > 0 || errno == linux.EAGAIN: // VTIME has passed: the bytes so far are the result
			return n, 0
		default:
			return -1, errno
		}
	}
}
