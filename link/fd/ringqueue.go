//go:build linux

package fd

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"loam/link"
)

// RingQueue is a queue whose frames go through rings in memory that is shared with the
// kernel: one to receive and one to send, each with a descriptor that tells of events.
// The rings are only touched by one goroutine each at a time, and only while their
// descriptor is open.
type RingQueue struct {
	Counters *link.Counters

	info    *link.Info
	rings   Rings
	in, out *File // of copies of the descriptors: the owner of the rings closes his
	room    *Room

	// What Recv and Send pass to functions that are made once, since making them
	// allocates, and what came of it.
	recv struct {
		sync.Mutex                       // guards the receiving ring between Recv and Close
		try        func(fd uintptr) bool // q.tryRecv
		fs         []*link.Frame
		n          int
		bytes      int
	}
	send struct {
		sync.Mutex                  // guards the sending ring between Send and Close
		try        func(fd uintptr) // q.trySend
		fs         []*link.Frame
		n          int
		short      bool
		err        error
	}
}

// Rings are what a RingQueue drives.
type Rings interface {
	// Take copies frames that are there into new ones: the stack keeps what it receives
	// for longer than the kernel can do without the memory. It returns how many, and
	// their bytes.
	Take(fs []*link.Frame) (n, bytes int)
	// Put copies frames into the ring, frees these, and has the kernel send them. short
	// says that more may go later: then room is waited for.
	Put(fs []*link.Frame) (n int, short bool, err error)
	// HasRoom is the retry of a Room, with a copy of the descriptor. It runs beside Put.
	HasRoom(fd uintptr) bool
}

// NewRingQueue makes a queue of rings with these descriptors, which stay the caller's.
func NewRingQueue(info *link.Info, counters *link.Counters, rings Rings, receive, send int) (q *RingQueue, err error) {
	q = &RingQueue{Counters: counters, info: info, rings: rings}
	if q.in, err = watch(receive, info.Name); err != nil {
		return nil, err
	}
	if q.out, err = watch(send, info.Name); err != nil {
		q.in.Close()
		return nil, err
	}
	q.recv.try, q.send.try = q.tryRecv, q.trySend
	q.room = NewRoom(q.out, rings.HasRoom)
	return q, nil
}

// watch gives a copy of a descriptor to the poller.
func watch(fd int, name string) (*File, error) {
	n, err := duplicate(uintptr(fd))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return New(n, name)
}

// Room implements link.Queue.
func (q *RingQueue) Room() <-chan struct{} { return q.room.C() }

// Recv implements link.Queue.
func (q *RingQueue) Recv(fs []*link.Frame) (int, error) {
	r := &q.recv
	r.fs, r.n, r.bytes = fs, 0, 0
	err := q.in.Read(r.try)
	r.fs = nil
	if err != nil {
		return 0, err
	}
	q.Counters.Received(r.n, r.bytes)
	return r.n, nil
}

func (q *RingQueue) tryRecv(uintptr) bool {
	r := &q.recv
	r.Lock()
	defer r.Unlock()
	r.n, r.bytes = q.rings.Take(r.fs)
	return r.n > 0
}

// Send implements link.Queue.
func (q *RingQueue) Send(fs []*link.Frame) (int, error) {
	return link.Transmit(q.info, q.Counters, (*ringSender)(q), fs)
}

// ringSender is the queue as link.Transmit sees it.
type ringSender RingQueue

// Send takes frames that the device carries.
func (q *ringSender) Send(fs []*link.Frame) (int, error) {
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

func (q *RingQueue) trySend(uintptr) {
	s := &q.send
	s.Lock()
	defer s.Unlock()
	s.n, s.short, s.err = q.rings.Put(s.fs)
	if s.err != nil {
		s.err = fmt.Errorf("%s: %w", q.info.Name, s.err)
	}
}

// WhileOpen calls look unless the queue is closed, by one goroutine at a time, and not
// beside Rings.Take.
func (q *RingQueue) WhileOpen(look func()) {
	q.in.Do(func(uintptr) {
		q.recv.Lock()
		defer q.recv.Unlock()
		look()
	})
}

// Close ends Recv, Send and the goroutine of Room, and then calls release, when nobody
// touches the rings any more. It may be called more than once, and by several: release
// is called each time, by one after the other.
func (q *RingQueue) Close(release func()) error {
	err := errors.Join(q.in.Close(), q.out.Close())
	q.room.Close()
	q.recv.Lock()
	defer q.recv.Unlock()
	q.send.Lock()
	defer q.send.Unlock()
	release()
	return err
}

// Nudge is send(2) of nothing: the kernel looks at the ring of descriptor fd.
func Nudge(fd uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, fd, 0, 0, syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
