//go:build linux

package unixsock

import (
	"encoding/binary"
	"fmt"
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// prefixLen is the size in bytes of the length that precedes each frame of a stream.
const prefixLen = 4

// stream is a queue over a stream socket. Its two halves, in stream_recv.go and stream_send.go,
// share only the socket.
type stream struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters
	header   int // length of the virtio-net header before each frame, or 0

	mu    sync.Mutex // guards the field in, which Recv and close use
	in    reader
	inTry func(fd uintptr) bool // s.tryRecv: created once, because creating it allocates
	inFS  []*link.Frame         // argument of tryRecv; inN and inErr are its results
	inN   int
	inErr error

	out writer
}

func newStream(f *fd.File, info *link.Info, header int) *stream {
	s := &stream{info: info, file: f, header: header}
	s.in = reader{medium: info.Medium, header: header, counters: &s.counters, staging: make([]byte, stagingLen)}
	s.inTry = s.tryRecv
	s.out.header, s.out.file = header, f
	s.out.try = s.out.tryWrite
	s.room = fd.NewRoom(f, s.out.retry)
	s.out.room = s.room
	return s
}

// Room implements link.Queue.
func (s *stream) Room() <-chan struct{} { return s.room.C() }

func (s *stream) stats() link.Stats { return s.counters.Stats() }

// Send implements link.Queue.
func (s *stream) Send(fs []*link.Frame) (int, error) {
	return link.Transmit(s.info, &s.counters, &s.out, fs)
}

// Recv implements link.Queue.
func (s *stream) Recv(fs []*link.Frame) (int, error) {
	s.inFS, s.inN, s.inErr = fs, 0, nil
	err := s.file.Read(s.inTry)
	s.inFS = nil
	if err == nil {
		err = s.inErr
	}
	if err != nil { // the other end is closed, or it sends invalid data
		s.file.Close()
		s.room.Hang()
		return 0, err
	}
	bytes := 0
	for _, f := range fs[:s.inN] {
		bytes += f.Len()
	}
	s.counters.Received(s.inN, bytes)
	return s.inN, nil
}

// tryRecv returns frames that were read before, and reads more if there are none.
func (s *stream) tryRecv(fd uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.inErr == nil {
		s.inN, s.inErr = s.in.parse(s.inFS)
		if s.inN > 0 || s.inErr != nil {
			break
		}
		switch err := s.in.read(fd); err {
		case nil:
		case syscall.EAGAIN:
			return false
		case syscall.EINTR:
		default:
			s.inErr = s.failure(err)
		}
	}
	return true
}

// failure returns the error for a connection that no longer works.
func (s *stream) failure(err error) error {
	if gone(err) {
		return link.ErrClosed
	}
	return fmt.Errorf("%s: %w", s.info.Name, err)
}

// gone reports whether err means that the other end is closed.
func gone(err error) bool {
	switch err {
	case errEOF, syscall.EPIPE, syscall.ECONNRESET, syscall.ENOTCONN, syscall.ECONNREFUSED:
		return true
	}
	return false
}

// close closes the socket and frees the buffers. It may be called more than once.
func (s *stream) close() error {
	err := s.file.Close()
	s.room.Close()
	s.mu.Lock()
	s.in.discard()
	s.mu.Unlock()
	s.out.discard()
	return err
}

// putPrefix writes the length and the virtio-net header into the headroom of a frame.
func putPrefix(f *link.Frame, header int) {
	offload := f.Offload
	if header > 0 {
		offload.Put(f.Prepend(header))
	}
	n := f.Len()
	binary.BigEndian.PutUint32(f.Prepend(prefixLen), uint32(n))
}
