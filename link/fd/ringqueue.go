//go:build linux

package fd

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"loam/link"
)

// RingQueue is a queue whose frames go through rings in memory shared with the kernel: one ring to
// receive and one to send, each with a descriptor that signals events. At most one goroutine at a
// time accesses a ring, and only while its descriptor is open.
type RingQueue struct {
	Counters *link.Counters

	info    *link.Info
	rings   Rings
	in, out *File // duplicates of the descriptors: the owner of the rings closes the originals
	room    *Room

	// Arguments and results of tryRecv and trySend. The function values are created once, because
	// creating them allocates.
	recv struct {
		sync.Mutex                       // guards the receiving ring between Recv and Close
		try        func(fd uintptr) bool // the method tryRecv as a func value, created once
		fs         []*link.Frame
		n          int
		bytes      int
	}
	send struct {
		sync.Mutex                  // guards the sending ring between Send and Close
		try        func(fd uintptr) // the method trySend as a func value, created once
		fs         []*link.Frame
		n          int
		short      bool
		err        error
	}
}

// Rings is the pair of rings that a RingQueue uses.
type Rings interface {
	// Take copies received frames into new frames, because the stack keeps frames longer than the
	// kernel can spare the memory. It returns the number of frames and their length in bytes.
	Take(fs []*link.Frame) (n, bytes int)
	// Put copies frames into the ring, frees them, and makes the kernel send them. It returns the
	// number of frames taken. short means that more frames can be sent later; the queue then waits
	// for room.
	Put(fs []*link.Frame) (n int, short bool, err error)
	// HasRoom is the retry function of a Room, called with a duplicate of the descriptor. It may
	// run at the same time as Put.
	HasRoom(fd uintptr) bool
}

// NewRingQueue returns a queue over rings with the descriptors receive and send. It duplicates the
// descriptors; the caller keeps the originals.
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

// watch registers a duplicate of a descriptor with the poller.
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

// ringSender is a RingQueue as a link.Sender.
type ringSender RingQueue

// Send sends frames that the device carries.
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

// WhileOpen calls the function look unless the queue is closed. Calls do not overlap with
// each other or with Rings.Take.
func (q *RingQueue) WhileOpen(look func()) {
	q.in.Do(func(uintptr) {
		q.recv.Lock()
		defer q.recv.Unlock()
		look()
	})
}

// Close ends Recv, Send and the goroutine of Room. It then calls release, when nothing accesses the
// rings any more. It may be called more than once, also concurrently: every call runs release, one
// at a time.
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

// Nudge makes the kernel process the ring of descriptor fd: it calls send(2) without data.
func Nudge(fd uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_SENDTO, fd, 0, 0, syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
