package virtio

import (
	"fmt"
	"math/bits"
	"time"

	"loam/driver"
)

// Queue joins a ring with the notifications of its device. Only one goroutine may use it at a time.
type Queue struct {
	*Ring
	device   *Device
	index    int
	buffer   driver.Buffer // memory of the ring
	indirect driver.Buffer // memory of the ring's indirect tables
	c        chan struct{} // the channel that C returns if one interrupt is for several queues
	own      driver.Interrupt
}

// newQueue allocates a queue. It returns ErrQueue if the device has no queue with that index.
func (d *Device) newQueue(s QueueSpec) (*Queue, error) {
	most := d.t.maxQueue(s.Index)
	if most < MinRing {
		return nil, fmt.Errorf("%w: queue %d has room for %d descriptors", ErrQueue, s.Index, most)
	}
	size := min(s.Size, 1<<(bits.Len(uint(min(most, MaxRing)))-1)) // a power of two that is at most the device's maximum
	segments := max(s.Segments, MaxSegments)
	q := &Queue{device: d, index: s.Index, c: make(chan struct{}, 1)}
	var err error
	if q.buffer, err = d.machine.Allocate(ringBytes(size), RingAlign); err != nil {
		return nil, err
	}
	if d.Has(Indirect) && s.Indirect {
		if q.indirect, err = d.machine.Allocate(indirectBytes(size, segments), RingAlign); err != nil {
			d.machine.Free(q.buffer)
			return nil, err
		}
	}
	q.Ring = newRing(size, segments, q.buffer.Bytes, q.indirect, d.Has(EventIndex))
	return q, nil
}

// memory returns the device addresses of the ring.
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

// C returns a channel that receives after the queue's interrupt, as the method C of driver.Interrupt does. A
// notification may be for another queue of the device.
func (q *Queue) C() <-chan struct{} {
	if q.own != nil {
		return q.own.C()
	}
	return q.c
}

// Call implements driver.Caller. If the machine cannot call functions, or the queue shares its interrupt, interrupts are still
// sent to C.
func (q *Queue) Call(f func()) {
	if i, ok := q.own.(driver.Caller); ok {
		i.Call(f)
	}
}

// Kick publishes the chains that were added, and notifies the device if the device has requested it.
func (q *Queue) Kick() {
	if q.Publish() {
		q.device.t.notify(q.index)
	}
}

// Nudge notifies the device even if it has not requested it. It is for a device that has not responded for a long time.
func (q *Queue) Nudge() { q.device.t.notify(q.index) }

// ring sends to the channel c, for a queue that shares its interrupt.
func (q *Queue) ring() {
	select {
	case q.c <- struct{}{}:
	default:
	}
}

// Wait waits until Take can return a chain. It returns ErrTimeout after the duration
// bound, and ErrClosed when the channel done is closed.
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
			// Check once more: the interrupt may have been lost.
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
