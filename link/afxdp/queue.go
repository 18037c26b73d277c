//go:build linux

package afxdp

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// queue is a socket as link.Queue. Frames are copied: the stack keeps what it
// receives for longer than the kernel can do without the memory. The halves of the
// socket are only touched under their lock while the file is open.
type queue struct {
	info     *link.Info
	socket   *Socket
	in, out  *fd.File // of copies of the descriptors of the halves, for the poller
	room     *fd.Room
	counters link.Counters

	// What Recv and Send pass to functions that are made once, since making them
	// allocates, and what came of it.
	recv struct {
		sync.Mutex                       // guards socket.Rx between Recv and close
		try        func(fd uintptr) bool // q.tryRecv
		fs         []*link.Frame
		n          int
		bytes      int
	}
	send struct {
		sync.Mutex                  // guards socket.Tx between Send and close
		try        func(fd uintptr) // q.trySend
		fs         []*link.Frame
		n          int
		short      bool
		err        error
	}
	drops struct {
		sync.Mutex        // guards counted
		counted    uint64 // of socket.Drops, what the counters have
	}
}

func newQueue(info *link.Info, s *Socket) (q *queue, err error) {
	q = &queue{info: info, socket: s}
	if q.in, err = watch(s.Rx.fd, info.Name); err != nil {
		return nil, err
	}
	if q.out, err = watch(s.Tx.fd, info.Name); err != nil {
		q.in.Close()
		return nil, err
	}
	q.recv.try, q.send.try = q.tryRecv, q.trySend
	q.room = fd.NewRoom(q.out, q.hasRoom)
	return q, nil
}

// watch gives a copy of a descriptor to the poller.
func watch(from int, name string) (*fd.File, error) {
	n, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return fd.New(n, name)
}

// Room implements link.Queue.
func (q *queue) Room() <-chan struct{} { return q.room.C() }

func (q *queue) stats() link.Stats {
	q.in.Do(func(uintptr) {
		d := &q.drops
		d.Lock()
		defer d.Unlock()
		now := q.socket.Drops()
		q.counters.RxDropped(int(now - d.counted))
		d.counted = now
	})
	return q.counters.Stats()
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	r := &q.recv
	r.fs, r.n, r.bytes = fs, 0, 0
	err := q.in.Read(r.try)
	r.fs = nil
	if err != nil {
		return 0, err
	}
	q.counters.Received(r.n, r.bytes)
	return r.n, nil
}

// tryRecv copies frames out of the memory. A socket that polls looks at the device
// once more before its reader sleeps.
func (q *queue) tryRecv(uintptr) bool {
	r := &q.recv
	r.Lock()
	defer r.Unlock()
	q.takeFrames()
	if r.n == 0 && q.socket.Rx.busy {
		q.socket.Rx.nudge()
		q.takeFrames()
	}
	return r.n > 0
}

func (q *queue) takeFrames() {
	r := &q.recv
	for r.n < len(r.fs) {
		got, ok := q.socket.Rx.Next()
		if !ok {
			return
		}
		if len(got) < wire.EthernetLen || len(got) > link.MaxFrame {
			q.counters.RxError()
			continue
		}
		f := link.NewFrame(len(got))
		copy(f.Bytes(), got)
		r.fs[r.n] = f
		r.n++
		r.bytes += len(got)
	}
}

// Send implements link.Queue.
func (q *queue) Send(fs []*link.Frame) (int, error) {
	return link.Transmit(q.info, &q.counters, (*sender)(q), fs)
}

// sender is the queue as link.Transmit sees it.
type sender queue

// Send takes frames that the device carries.
func (q *sender) Send(fs []*link.Frame) (int, error) {
	s := &q.send
	s.fs, s.n, s.short, s.err = fs, 0, false, nil
	err := q.out.Do(s.try)
	s.fs = nil
	if err == nil {
		err = s.err
	}
	if s.short {
		q.room.Short()
	}
	return s.n, err
}

func (q *queue) trySend(uintptr) {
	s := &q.send
	s.Lock()
	defer s.Unlock()
	tx := &q.socket.Tx
	for s.n < len(s.fs) {
		slot := tx.Slot()
		if slot == nil {
			s.short = true
			break
		}
		f := s.fs[s.n]
		tx.Put(copy(slot, f.Bytes()))
		f.Free()
		s.n++
	}
	// What the kernel did not take waits in the ring for the next kick.
	switch err := tx.Kick(); err {
	case nil:
		tx.Reap()
	case ErrFull, unix.ENOBUFS, unix.ENOMEM, unix.ENETDOWN, unix.ENXIO:
		s.short = true
	default:
		s.err = fmt.Errorf("%s: %w", q.info.Name, err)
	}
}

// hasRoom is the retry of Room: it kicks too, since what a Send left in the ring
// must not wait for the next one. It runs beside Send, and so works on the copy of
// the descriptor and on shared words only.
func (q *queue) hasRoom(d uintptr) bool {
	const patience = 1000
	for range patience {
		switch unix.Send(int(d), nil, unix.MSG_DONTWAIT) {
		case nil, unix.EAGAIN:
			return q.socket.Tx.room() // else the kernel gives memory back later, and tells
		case unix.EBUSY, unix.ENOBUFS, unix.ENOMEM: // and does not tell when that is over
			time.Sleep(20 * time.Microsecond)
		default:
			return true
		}
	}
	return true
}

// close ends Recv, Send and the goroutine of Room. It may be called more than
// once.
func (q *queue) close() error {
	err := errors.Join(q.in.Close(), q.out.Close())
	q.room.Close()
	q.recv.Lock()
	defer q.recv.Unlock()
	q.send.Lock()
	defer q.send.Unlock()
	return err
}
