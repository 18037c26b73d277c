//go:build linux

package afxdp

import (
	"time"

	"golang.org/x/sys/unix"

	"loam/link"
	"loam/link/fd"
	"loam/wire"
)

// queue is a Socket as a link.Queue.
type queue struct {
	*fd.RingQueue
	socket   *Socket
	counters link.Counters
	dropped  uint64 // value of socket.Drops already added to counters; accessed only in WhileOpen
}

func newQueue(info *link.Info, s *Socket) (q *queue, err error) {
	q = &queue{socket: s}
	if q.RingQueue, err = fd.NewRingQueue(info, &q.counters, q, s.Rx.fd, s.Tx.fd); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *queue) stats() link.Stats {
	q.WhileOpen(func() {
		now := q.socket.Drops()
		q.counters.RxDropped(int(now - q.dropped))
		q.dropped = now
	})
	return q.counters.Stats()
}

// Take implements fd.Rings. A socket with busy polling polls the device once more before its reader
// sleeps.
func (q *queue) Take(fs []*link.Frame) (n, bytes int) {
	if n, bytes = q.take(fs); n == 0 && q.socket.Rx.busy {
		q.socket.Rx.nudge()
		n, bytes = q.take(fs)
	}
	return n, bytes
}

// take copies received frames into new frames, without polling the device.
func (q *queue) take(fs []*link.Frame) (n, bytes int) {
	for n < len(fs) {
		got, ok := q.socket.Rx.Next()
		if !ok {
			break
		}
		if len(got) < wire.EthernetLen || len(got) > link.MaxFrame {
			q.counters.RxError()
			continue
		}
		f := link.NewFrame(len(got))
		copy(f.Bytes(), got)
		fs[n] = f
		n++
		bytes += len(got)
	}
	return n, bytes
}

// Put implements fd.Rings.
func (q *queue) Put(fs []*link.Frame) (n int, short bool, err error) {
	tx := &q.socket.Tx
	for ; n < len(fs); n++ {
		slot := tx.Slot()
		if slot == nil {
			short = true
			break
		}
		tx.Put(copy(slot, fs[n].Bytes()))
		fs[n].Free()
	}
	// Frames that the kernel has not taken stay in the ring until the next kick.
	switch err := tx.Kick(); err {
	case nil:
		tx.Reap()
		return n, short, nil
	case ErrFull, unix.ENOBUFS, unix.ENOMEM, unix.ENETDOWN, unix.ENXIO:
		return n, true, nil
	default:
		return n, short, err
	}
}

// HasRoom implements fd.Rings. It also kicks, because frames that Put left in the ring must not
// wait for the next Put. It may run at the same time as Put, so it uses only the duplicate of the
// descriptor and words shared with the kernel.
func (q *queue) HasRoom(d uintptr) bool {
	const patience = 1000
	for range patience {
		switch fd.Nudge(d) {
		case nil, unix.EAGAIN:
			return q.socket.Tx.room() // if false, the poller reports an event when the kernel returns memory
		case unix.EBUSY, unix.ENOBUFS, unix.ENOMEM: // nothing signals the end of these conditions
			time.Sleep(20 * time.Microsecond)
		default:
			return true
		}
	}
	return true
}
