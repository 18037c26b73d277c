package virtio

import (
	"fmt"
	"math/bits"
	"time"

	"loam/driver"
)

// Queue is a ring with its device. One goroutine uses it at a time.
type Queue struct {
	*Ring
	device   *Device
	index    int
	buffer   driver.Buffer // of the ring
	indirect driver.Buffer // of its indirect tables
	c        chan struct{} // see C, where one interrupt serves several queues
	own      driver.Interrupt
}

// newQueue allocates a queue.
func (d *Device) newQueue(s QueueSpec) (*Queue, error) {
	most := d.t.maxQueue(s.Index)
	if most < MinRing {
		return nil, fmt.Errorf("%w: queue %d has room for %d descriptors", ErrQueue, s.Index, most)
	}
	size := min(s.Size, 1<<(bits.Len(uint(min(most, MaxRing)))-1)) // down to a power of two
	q := &Queue{device: d, index: s.Index, c: make(chan struct{}, 1)}
	var err error
	if q.buffer, err = d.machine.Allocate(ringBytes(size), RingAlign); err != nil {
		return nil, err
	}
	if d.Has(Indirect) && s.Indirect {
		if q.indirect, err = d.machine.Allocate(indirectBytes(size), RingAlign); err != nil {
			d.machine.Free(q.buffer)
			return nil, err
		}
	}
	q.Ring = newRing(size, q.buffer.Bytes, q.indirect, d.Has(EventIndex))
	return q, nil
}

// memory is where the ring is for the device.
func (q *Queue) memory() queueMemory {
	at := q.buffer.Address
	return queueMemory{size: q.size, descriptors: at, avail: at + uint64(availAt(q.size)), used: at + uint64(usedAt(q.size))}
}

func (q *Queue) free() {
	q.device.machine.Free(q.buffer)
	if q.indirect.Bytes != nil {
		q.device.machine.Free(q.indirect)
	}
}

// C rings when the queue's interrupt has come: see driver.Interrupt. A ring may be
// meant for another queue of the device.
func (q *Queue) C() <-chan struct{} {
	if q.own != nil {
		return q.own.C()
	}
	return q.c
}

// Kick publishes what was added, and notifies the device if it wants that.
func (q *Queue) Kick() {
	if q.Publish() {
		q.device.t.notify(q.index)
	}
}

// Nudge notifies the device whether it wants that or not: for a device that has not
// answered for long.
func (q *Queue) Nudge() { q.device.t.notify(q.index) }

// ring wakes whoever waits at C, where the queue shares its interrupt with others.
func (q *Queue) ring() {
	select {
	case q.c <- struct{}{}:
	default:
	}
}

// Wait waits until Take has something to return, for no longer than bound. It
// returns ErrTimeout after that, and ErrClosed when done is closed.
func (q *Queue) Wait(bound time.Duration, done <-chan struct{}) error {
	if q.Arm(1) {
		return nil
	}
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for {
		select {
		case <-q.C():
		case <-done:
			return ErrClosed
		case <-timer.C:
			// The last look: the interrupt may have been lost.
			if q.Arm(1) {
				return nil
			}
			return q.device.wrap(ErrTimeout)
		}
		if q.Arm(1) {
			return nil
		}
	}
}
