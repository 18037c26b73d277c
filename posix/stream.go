package posix

import (
	"sync"
	"syscall"

	"loam/fs"
)

// Stream is a standard stream as what is below gives it: a terminal, a pipe, a
// serial line. Its calls may block; no shard ever makes them.
type Stream interface {
	// Read reads at least one byte; 0 and no error is the end.
	Read(b []byte) (int, Errno)
	// Write writes all of b unless it fails.
	Write(b []byte) (int, Errno)
	// Flags are the access mode, O_APPEND and O_NONBLOCK that fcntl tells at first.
	// In non-blocking mode the calls of this block all the same.
	Flags() int
	// Attr is what fstat tells. A CharDevice is a terminal.
	Attr() fs.Attr
	// Ioctl serves the requests of a terminal, with the bytes at the caller's
	// address. Errors: ENOTTY.
	Ioctl(request int, arg []byte) Errno
}

// stream is the file of a Stream. Reading is done ahead, by one goroutine while
// somebody wants to know whether there is something; what is not asked for is
// left where it is. Writing blocks the goroutine of the program that writes.
type stream struct {
	host Stream
	q    waitQueue

	mu     sync.Mutex // guards what follows
	buf    []byte     // read and not yet taken
	errno  Errno      // of the last read, to be told once
	end    bool       // the last read found the end, to be told once
	asking bool       // pump runs
	room   []byte     // pump's
}

// streamPiece is how much is read at once, and how much ahead for who only asks
// whether there is something.
const streamPiece = 32 << 10

func (s *stream) queue() *waitQueue { return &s.q }
func (s *stream) close()            {}
func (s *stream) mode() uint32      { return uint32(s.host.Attr().Mode) }
func (s *stream) stat() Stat        { return Stat{Attr: s.host.Attr()} }

func (s *stream) events() Events {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasSome() {
		return PollIn | PollOut
	}
	s.ask(streamPiece)
	return PollOut
}

func (s *stream) hasSome() bool { return len(s.buf) > 0 || s.end || s.errno != 0 }

// ask starts pump unless it runs, for at most n bytes. The caller holds mu.
func (s *stream) ask(n int) {
	if s.asking {
		return
	}
	s.asking = true
	if s.room == nil {
		s.room = make([]byte, streamPiece)
	}
	go s.pump(s.room[:min(n, streamPiece)])
}

// pump reads once.
func (s *stream) pump(room []byte) {
	n, errno := s.host.Read(room)
	s.mu.Lock()
	s.asking = false
	s.buf, s.errno, s.end = room[:max(n, 0)], errno, n == 0 && errno == 0
	s.mu.Unlock()
	s.q.tell(PollIn)
}

func (s *stream) read(b []byte) (int, Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(b) == 0:
		return 0, 0
	case len(s.buf) > 0:
		n := copy(b, s.buf)
		s.buf = s.buf[n:]
		return n, 0
	case s.errno != 0:
		errno := s.errno
		s.errno = 0
		return 0, errno
	case s.end:
		s.end = false // a terminal may have more behind it
		return 0, 0
	}
	return 0, syscall.EAGAIN
}

// want has at most n bytes read, unless there are some. The queue tells when they are there.
func (s *stream) want(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasSome() {
		s.ask(n)
	}
}

func (s *stream) write(b []byte) (int, Errno) { return s.host.Write(b) }

func (s *stream) buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buf)
}

// installStreams gives the standard streams their descriptors. The same Stream
// given twice is one open file.
func (p *Process) installStreams() {
	var opens [len(p.options.Streams)]*open
	for i, s := range p.options.Streams {
		if s == nil {
			continue
		}
		for j := range i {
			if p.options.Streams[j] == s {
				opens[i] = opens[j]
			}
		}
		if opens[i] == nil {
			p.streams[i] = &stream{host: s}
			opens[i] = newOpen(p.streams[i], s.Flags()&statusFlags)
		}
		p.fds.replace(opens[i], i, false)
	}
}
