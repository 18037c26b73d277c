//go:build linux

package afpacket

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// rings is a queue of two sockets, one with a ring to send and one with a ring to
// receive: a socket has one version for both, and the versions that are best
// differ. The rings are only touched while their file is open, which Do and Read
// of fd.File see to.
type rings struct {
	info     *link.Info
	in, out  *fd.File // of the descriptors of rx and tx, which only unmap
	room     *fd.Room
	counters link.Counters
	rx       *RxRing
	tx       *TxRing

	// What Recv and Send pass to functions that are made once, since making them
	// allocates, and what came of it.
	recv struct {
		sync.Mutex                       // guards rx between Recv and close
		try        func(fd uintptr) bool // q.tryRecv
		fs         []*link.Frame
		n          int
		bytes      int
	}
	send struct {
		sync.Mutex                  // guards tx between Send and close
		try        func(fd uintptr) // q.trySend
		fs         []*link.Frame
		n          int
		short      bool
		err        error
	}
}

// Slots of the ring to send: with offloads each has room for 64 kB.
const (
	manySlots  = 512
	largeSlots = 128
)

func openRings(c Config, info *link.Info, index int, group *fanout) (_ end, err error) {
	q := &rings{info: info, rx: &RxRing{fd: -1}, tx: &TxRing{fd: -1}}
	t := TxConfig{Slots: manySlots, Size: info.MaxLen() + 2*wire.VLANTagLen, Bypass: c.Bypass}
	if !c.NoOffloads {
		t.Slots, t.Size, t.Offloads = largeSlots, wire.EthernetLen+2*wire.VLANTagLen+1<<16, true
	}
	defer func() {
		if err != nil {
			q.rx.Close()
			q.tx.Close()
		}
	}()
	if err := q.tx.open(t, index); err != nil {
		return nil, err
	}
	if err := q.rx.open(RxConfig{Offloads: !c.NoOffloads}); err != nil {
		return nil, err
	}
	if err := receive(q.rx.fd, index, c, group); err != nil {
		return nil, err
	}
	if err := q.watch(); err != nil {
		return nil, err
	}
	q.recv.try, q.send.try = q.tryRecv, q.trySend
	q.room = fd.NewRoom(q.out, q.hasRoom)
	return q, nil
}

// watch gives copies of the descriptors to the poller.
func (q *rings) watch() (err error) {
	for _, w := range []struct {
		to   **fd.File
		from int
	}{{&q.in, q.rx.fd}, {&q.out, q.tx.fd}} {
		n, err := unix.FcntlInt(uintptr(w.from), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if *w.to, err = fd.New(n, q.info.Name); err != nil {
			return err
		}
	}
	return nil
}

// Room implements link.Queue.
func (q *rings) Room() <-chan struct{} { return q.room.C() }

func (q *rings) stats() link.Stats {
	q.in.Do(func(uintptr) {
		q.recv.Lock()
		defer q.recv.Unlock()
		before := q.rx.dropped.Load()
		q.counters.RxDropped(int(q.rx.Drops() - before))
	})
	return q.counters.Stats()
}

// Recv implements link.Queue.
func (q *rings) Recv(fs []*link.Frame) (int, error) {
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

// tryRecv copies frames out of the ring: the stack keeps them for longer than the
// kernel can do without the block.
func (q *rings) tryRecv(uintptr) bool {
	r := &q.recv
	r.Lock()
	defer r.Unlock()
	for r.n < len(r.fs) {
		got, ok := q.rx.Next()
		if !ok {
			return r.n > 0
		}
		f := q.accept(got)
		if f == nil {
			q.counters.RxError()
			continue
		}
		r.fs[r.n] = f
		r.n++
		r.bytes += f.Len()
	}
	return true
}

// accept makes a frame, nil if it was cut or makes no sense.
func (q *rings) accept(got Received) *link.Frame {
	if got.Wire > len(got.Frame) || len(got.Frame) < wire.EthernetLen || len(got.Frame) > link.MaxFrame {
		return nil
	}
	f := link.NewFrame(len(got.Frame))
	copy(f.Bytes(), got.Frame)
	if len(got.Offload) == 0 {
		return f
	}
	offload, ok := link.ParseOffload(got.Offload, f.Len())
	f.Offload = offload
	if !ok || !f.Admit(link.Ethernet) {
		f.Free()
		return nil
	}
	return f
}

// Send implements link.Queue.
func (q *rings) Send(fs []*link.Frame) (int, error) {
	return link.Transmit(q.info, &q.counters, (*ringSender)(q), fs)
}

// ringSender is the queue as link.Transmit sees it.
type ringSender rings

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

func (q *rings) trySend(uintptr) {
	s := &q.send
	s.Lock()
	defer s.Unlock()
	for s.n < len(s.fs) {
		slot := q.tx.Slot()
		if slot == nil {
			s.short = true
			break
		}
		f := s.fs[s.n]
		if q.tx.header > 0 {
			f.Offload.Put(slot)
		}
		copy(slot[q.tx.header:], f.Bytes())
		q.tx.Put(q.tx.header + f.Len())
		f.Free()
		s.n++
	}
	// What the kernel did not take waits in the ring for the next kick.
	switch err := q.tx.Kick(); err {
	case nil, unix.EINVAL:
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.ENETDOWN:
		s.short = true
	case unix.EMSGSIZE:
		q.counters.TxError()
	default:
		s.err = fmt.Errorf("%s: %w", q.info.Name, err)
	}
}

// hasRoom is the retry of Room: it kicks too, since what a Send left in the ring
// must not wait for the next one. It works on the copy of the descriptor only,
// for it runs beside Send.
func (q *rings) hasRoom(d uintptr) bool {
	const patience = 1000
	for range patience {
		switch unix.Send(int(d), nil, unix.MSG_DONTWAIT) {
		case unix.EAGAIN:
			return false // there will be an event
		case unix.ENOBUFS, unix.ENOMEM: // the interface is full, and does not tell when it no longer is
			time.Sleep(20 * time.Microsecond)
		default:
			return fd.Writable(d)
		}
	}
	return true
}

// close may be called more than once.
func (q *rings) close() error {
	first := q.in.Close()
	if err := q.out.Close(); first == nil {
		first = err
	}
	q.room.Close()
	q.recv.Lock()
	defer q.recv.Unlock()
	q.send.Lock()
	defer q.send.Unlock()
	q.rx.Close()
	q.tx.Close()
	return first
}
