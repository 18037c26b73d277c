//go:build linux

package afpacket

import (
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// rings is a queue of two sockets: one with a ring to send, and one with a ring to receive. One
// socket would need the same ring version in both directions, and the best versions differ.
type rings struct {
	*fd.RingQueue
	counters link.Counters
	rx       *RxRing
	tx       *TxRing
}

// Slots of the send ring. With offloads, each slot has room for 64 kB.
const (
	manySlots  = 512
	largeSlots = 128
)

// openRings opens a ring queue on the interface with the given index.
func openRings(c Config, info *link.Info, index int, group *fanout) (_ end, err error) {
	q := &rings{rx: &RxRing{fd: -1}, tx: &TxRing{fd: -1}}
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
	q.RingQueue, err = fd.NewRingQueue(info, &q.counters, q, q.rx.fd, q.tx.fd)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (q *rings) stats() link.Stats {
	q.WhileOpen(func() {
		before := q.rx.dropped.Load()
		q.counters.RxDropped(int(q.rx.Drops() - before))
	})
	return q.counters.Stats()
}

// Take implements fd.Rings.
func (q *rings) Take(fs []*link.Frame) (n, bytes int) {
	for n < len(fs) {
		got, ok := q.rx.Next()
		if !ok {
			break
		}
		f := q.accept(got)
		if f == nil {
			q.counters.RxError()
			continue
		}
		fs[n] = f
		n++
		bytes += f.Len()
	}
	return n, bytes
}

// accept copies a received frame to a new link.Frame. It returns nil if the frame was truncated or
// is not valid.
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

// Put implements fd.Rings.
func (q *rings) Put(fs []*link.Frame) (n int, short bool, err error) {
	for ; n < len(fs); n++ {
		slot := q.tx.Slot()
		if slot == nil {
			short = true
			break
		}
		f := fs[n]
		if q.tx.header > 0 {
			f.Offload.Put(slot)
		}
		copy(slot[q.tx.header:], f.Bytes())
		q.tx.Put(q.tx.header + f.Len())
		f.Free()
	}
	// Frames that the kernel has not taken stay in the ring until the next kick.
	switch err := q.tx.Kick(); err {
	case nil, unix.EINVAL:
		return n, short, nil
	case unix.EAGAIN, unix.ENOBUFS, unix.ENOMEM, unix.ENETDOWN:
		return n, true, nil
	case unix.EMSGSIZE:
		q.counters.TxError()
		return n, short, nil
	default:
		return n, short, err
	}
}

// HasRoom implements fd.Rings. It also kicks, because frames that Put left in the ring must not
// wait for the next Put. It uses only the duplicate of the descriptor.
func (q *rings) HasRoom(d uintptr) bool {
	const patience = 1000
	for range patience {
		switch fd.Nudge(d) {
		case unix.EAGAIN:
			return false // the poller will report an event
		case unix.ENOBUFS, unix.ENOMEM: // the interface is full, and no event signals when it has room again
			time.Sleep(20 * time.Microsecond)
		default:
			return fd.Writable(d)
		}
	}
	return true
}

// close closes the queue and both rings. It may be called more than once.
func (q *rings) close() error {
	return q.Close(func() {
		q.rx.Close()
		q.tx.Close()
	})
}
