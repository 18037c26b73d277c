//go:build linux

package tap

import (
	"fmt"
	"sync"
	"syscall"

	"loam/link"
	"loam/link/fd"
)

// queue is one descriptor of the interface: one frame a system call, with its
// virtio-net header in front.
//
// A frame is read into a large buffer, the landing, since nobody knows how long
// it is. A short one is copied out, so that the landing can be used again and
// 2 kB are not held in 70 kB; a long one keeps it. Measured: copying 1514 bytes
// is lost in the noise of the 1.1 µs of the read, while readv into a small
// buffer and a large one behind it costs 110 ns more.
type queue struct {
	info     *link.Info
	file     *fd.File
	room     *fd.Room
	counters link.Counters

	mu      sync.Mutex // guards landing between Recv and close
	landing *link.Frame

	// Recv's own. The function is made once, since making it allocates; what it
	// works on is passed here.
	recv struct {
		try    func(fd uintptr) bool // q.tryRecv
		fs     []*link.Frame         // to fill
		n      int                   // how far
		bytes  int                   // in them
		waited bool                  // nothing was there at first
		burst  int                   // how many to read before handing them on
		err    error
	}
	// Send's own, in the same way.
	send struct {
		try   func(fd uintptr) // q.trySend
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
// How many frames it reads adapts: one if it had to wait for it, so that a lone
// frame is handed on without a system call that finds nothing (390 ns); and
// twice as many as last time while there is always something.
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

// tryRecv reads frames and returns false if there is none.
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

// readOne reads a frame. again means that there is none now. A frame that is
// damaged is counted and not delivered.
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
		return false, syscall.EPIPE // a socket whose other end was closed
	}
	if f = q.accept(n); f != nil {
		r := &q.recv
		r.fs[r.n] = f
		r.n++
		r.bytes += f.Len()
	}
	return false, nil
}

// accept makes a frame of the n bytes in the landing, nil if they make no sense.
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

// write writes f with its virtio-net header, which goes into the headroom. f is
// as before if that fails.
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

// judge counts what went wrong with one frame only, and returns what is wrong
// with the interface.
func (q *queue) judge(err error) error {
	switch {
	case err == nil:
		return nil
	case err == syscall.EINVAL: // the kernel does not believe the header
		q.counters.TxError()
		return nil
	case err == syscall.EIO || err == syscall.ENOMEM: // the interface is down; no memory
		q.counters.TxDropped(1)
		return nil
	}
	return q.failure(err)
}

// failure is the error of an interface that does not work any more.
func (q *queue) failure(err error) error {
	switch err {
	case syscall.EBADFD:
		return fmt.Errorf("%s: the interface was removed: %w", q.info.Name, link.ErrClosed)
	case syscall.EPIPE, syscall.ECONNRESET:
		return link.ErrClosed
	}
	return fmt.Errorf("%s: %w", q.info.Name, err)
}

// close may be called more than once.
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
