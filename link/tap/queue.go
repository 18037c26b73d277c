//go:build linux

package tap

import (
	"fmt"
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// queue is one descriptor of the interface. One system call transfers one frame, preceded by its
// virtio-net header.
//
// A frame is read into a large buffer, the landing, because its length is not known in advance. A
// short frame is copied out, so that the landing can be reused and 2 kB do not occupy 70 kB. A long
// frame keeps the landing. Measured: the cost of copying 1514 bytes disappears in the noise of the
// 1.1 µs of the read. readv into a small buffer followed by a large one costs 110 ns more.
type queue struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters

	mu      sync.Mutex // guards landing between Recv and close
	landing *link.Frame

	// Arguments, results and state of tryRecv, used by Recv only. The function value is created
	// once, because creating it allocates.
	recv struct {
		try    func(fd uintptr) bool // the method tryRecv as a func value, created once
		fs     []*link.Frame         // frames to fill
		n      int                   // number of frames filled
		bytes  int                   // number of bytes in these frames
		waited bool                  // the first attempt found no frame
		burst  int                   // number of frames to read before returning them
		err    error
	}
	// Arguments and results of trySend, used by Send only.
	send struct {
		try   func(fd uintptr) // the method trySend as a func value, created once
		fs    []*link.Frame
		n     int
		short bool
		err   error
	}
}

func newQueue(f *fd.File, info *link.Info) *queue {
	q := &queue{info: info, file: f, room: fd.NewRoom(f, fd.Writable)}
	q.recv.try, q.send.try = q.tryRecv, q.trySend
	q.recv.burst = 1
	return q
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.room.C() }

// Recv implements link.Queue.
//
// The number of frames that it reads adapts. If it had to wait, it reads one frame: a lone frame is
// then delivered without another system call that finds nothing (390 ns). While there is always
// another frame, it reads twice as many as last time.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	r := &q.recv
	r.fs, r.n, r.bytes, r.waited, r.err = fs, 0, 0, false, nil
	err := q.file.Read(r.try)
	r.fs = nil
	if err != nil {
		return 0, err
	}
	q.counters.Received(r.n, r.bytes)
	return r.n, r.err
}

// tryRecv reads frames, and returns false if there is none.
func (q *queue) tryRecv(fd uintptr) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := &q.recv
	for r.n < min(len(r.fs), r.burst) {
		again, err := q.readOne(fd)
		if again {
			break
		}
		if err != nil {
			r.err = q.failure(err)
			return true
		}
	}
	if r.n == 0 {
		r.waited, r.burst = true, 1
		return false
	}
	if !r.waited {
		r.burst = min(2*r.burst, link.BatchSize)
	}
	return true
}

// readOne reads one frame. The result again means that there is none now. A damaged frame
// is counted and not delivered.
func (q *queue) readOne(descriptor uintptr) (again bool, err error) {
	if q.landing == nil {
		q.landing = link.NewFrame(link.MaxFrame)
	}
	f := q.landing
	n, err := fd.Read(descriptor, f.Bytes())
	switch {
	case err == syscall.EAGAIN:
		return true, nil
	case err == syscall.EINTR:
		return false, nil
	case err != nil:
		return false, err
	case n == 0:
		return false, syscall.EPIPE // a socket whose other end is closed
	}
	if f = q.accept(n); f != nil {
		r := &q.recv
		r.fs[r.n] = f
		r.n++
		r.bytes += f.Len()
	}
	return false, nil
}

// accept converts the n bytes in the buffer landing to a frame. It returns nil, and counts an error, if
// they are not valid.
func (q *queue) accept(n int) *link.Frame {
	l := q.landing
	const header = link.VirtioHeaderLen
	if n < header+max(1, q.info.Medium.HeaderLen()) {
		q.counters.RxError()
		return nil
	}
	b := l.Bytes()[:n]
	offload, ok := link.ParseOffload(b, n-header)
	f := l
	if n-header <= link.MaxSmall {
		f = link.NewFrame(n - header)
		copy(f.Bytes(), b[header:])
	} else {
		q.landing = nil
		f.TrimFront(header)
		f.Resize(n - header)
	}
	f.Offload = offload
	if !ok || !f.Admit(q.info.Medium) {
		f.Free()
		q.counters.RxError()
		return nil
	}
	return f
}

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	s := &q.send
	s.fs, s.n, s.short, s.err = fs, 0, false, nil
	err := q.file.Do(s.try)
	s.fs = nil
	if err == nil {
		err = s.err
	}
	if s.short {
		q.room.Short()
	}
	return s.n, err
}

// trySend writes the frames of q.send.fs, one system call each, until the interface takes no more or
// fails.
func (q *queue) trySend(fd uintptr) {
	s := &q.send
	frames, bytes := 0, 0
	for s.n < len(s.fs) {
		f := s.fs[s.n]
		if !q.info.Carries(f) {
			q.counters.TxError()
		} else {
			length := f.Len()
			err := write(fd, f)
			if err == syscall.EAGAIN || err == syscall.ENOBUFS {
				s.short = true
				break
			}
			if s.err = q.judge(err); s.err != nil {
				break
			}
			if err == nil {
				frames++
				bytes += length
			}
		}
		f.Free()
		s.n++
	}
	q.counters.Sent(frames, bytes)
}

// write writes f with its virtio-net header, which it stores in the headroom. On error, f is
// unchanged.
func write(descriptor uintptr, f *link.Frame) error {
	offload := f.Offload
	offload.Put(f.Prepend(link.VirtioHeaderLen))
	for {
		_, err := fd.Write(descriptor, f.Bytes())
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			f.TrimFront(link.VirtioHeaderLen)
		}
		return err
	}
}

// judge handles an error of write. It counts an error that concerns only one frame, and returns
// nil. It returns an error that concerns the interface.
func (q *queue) judge(err error) error {
	switch {
	case err == nil:
		return nil
	case err == syscall.EINVAL: // the kernel rejects the virtio-net header
		q.counters.TxError()
		return nil
	case err == syscall.EIO || err == syscall.ENOMEM: // the interface is down; no memory
		q.counters.TxDropped(1)
		return nil
	}
	return q.failure(err)
}

// failure returns the error for an interface that no longer works.
func (q *queue) failure(err error) error {
	switch err {
	case syscall.EBADFD:
		return fmt.Errorf("%s: the interface was removed: %w", q.info.Name, link.ErrClosed)
	case syscall.EPIPE, syscall.ECONNRESET:
		return link.ErrClosed
	}
	return fmt.Errorf("%s: %w", q.info.Name, err)
}

// close closes the descriptor and frees the buffer landing. It may be called more than once.
func (q *queue) close() error {
	err := q.file.Close()
	q.room.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.landing != nil {
		q.landing.Free()
		q.landing = nil
	}
	return err
}
