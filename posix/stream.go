package posix

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Stream is a standard stream that the underlying system provides: a terminal, a pipe or a serial line. Its methods may
// block, so a goroutine of the stack never calls them.
type Stream interface {
	// Read reads at least one byte. At the end of the stream it returns 0 and no error.
	Read(b []byte) (int, Errno)
	// Write writes all of b or returns an error.
	Write(b []byte) (int, Errno)
	// Flags returns the initial file status flags: access mode, O_APPEND and O_NONBLOCK. The methods
	// block even in non-blocking mode.
	Flags() int
	// Attr returns the attributes for fstat. A CharDevice is a terminal.
	Attr() fs.Attr
	// Ioctl handles terminal requests. arg is the memory at the caller's address. Errors: ENOTTY.
	Ioctl(request int, arg []byte) Errno
}

// stream is the file of a Stream. A goroutine reads ahead only while a program waits for input or polls for it, so that all
// other input stays in the underlying stream. A write blocks the calling goroutine.
type stream struct {
	host Stream
	q    file.Queue

	mu     sync.Mutex // guards the fields below
	buf    []byte     // bytes that were read and that the program has not yet read
	errno  Errno      // error of the last read; returned once
	end    bool       // the last read found the end of the stream, which has not been reported to the program yet
	asking bool       // the goroutine of pump is running
	room   []byte     // buffer into which pump reads
}

// streamPiece is the size of a read in bytes. It limits how many bytes are read ahead when a program polls.
const streamPiece = 32 << 10

func (s *stream) Queue() *file.Queue { return &s.q }
func (s *stream) Close()             {}
func (s *stream) Mode() uint32       { return uint32(s.host.Attr().Mode) }
func (s *stream) Stat() Stat         { return Stat{Attr: s.host.Attr()} }

func (s *stream) Events() Events {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasSome() {
		return PollIn | PollOut
	}
	s.ask(streamPiece)
	return PollOut
}

func (s *stream) hasSome() bool { return len(s.buf) > 0 || s.end || s.errno != 0 }

// ask starts pump for at most n bytes, unless it is running. The caller holds mu.
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

// pump calls Read of the Stream once. It runs on a goroutine of its own.
func (s *stream) pump(room []byte) {
	n, errno := s.host.Read(room)
	s.mu.Lock()
	s.asking = false
	s.buf, s.errno, s.end = room[:max(n, 0)], errno, n == 0 && errno == 0
	s.mu.Unlock()
	s.q.Notify(PollIn)
}

// Read implements file.File. It returns the data that pump has read, and then once the error or the end of the stream.
func (s *stream) Read(b []byte) (int, Errno) {
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
		s.end = false // the end is reported once, because a terminal may deliver more input afterwards
		return 0, 0
	}
	return 0, linux.EAGAIN
}

// want starts a read of at most n bytes, unless unread input is available. The waiters are notified of its result.
func (s *stream) want(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasSome() {
		s.ask(n)
	}
}

func (s *stream) Write(b []byte) (int, Errno) { return s.host.Write(b) }

func (s *stream) Buffered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buf)
}

// installStreams opens the standard streams as descriptors 0 to 2. Equal Streams share one open file
// description.
func (p *Process) installStreams(streams [3]Stream) {
	var opens [len(streams)]*file.Description
	for i, s := range streams {
		if s == nil {
			continue
		}
		for j := range i {
			if streams[j] == s {
				opens[i] = opens[j]
			}
		}
		if opens[i] == nil {
			p.streams[i] = &stream{host: s}
			opens[i] = file.NewDescription(p.streams[i], s.Flags()&statusFlags)
		}
		p.fds.Replace(opens[i], i, false)
	}
}

// terminal passes a request to the terminal behind a standard stream. Only requests that read or change its settings are
// allowed, because the terminal belongs to the user who has started Loam.
func (s *stream) terminal(request int, arg []byte) Errno {
	switch request {
	case linux.TCGETS, linux.TCGETS2, linux.TCSETS, linux.TCSETSW, linux.TCSETSF, linux.TCSETS2, linux.TCSETS2 + 1, linux.TCSETSF2,
		linux.TIOCGWINSZ, linux.TIOCSWINSZ, linux.TIOCGPGRP, linux.TIOCSPGRP:
		return s.host.Ioctl(request, arg)
	}
	return linux.ENOTTY
}

// HostTerminal passes any request to the terminal behind a standard stream. Only Loam itself calls it. Errors: EBADF,
// ENOTTY.
func (p *Process) HostTerminal(fd, request int, arg []byte) Errno {
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if s, ok := o.File.(*stream); ok {
		return s.host.Ioctl(request, arg)
	}
	return linux.ENOTTY
}

// Asynchronous implements file.Asynchronous.
func (s *stream) Asynchronous() {}
