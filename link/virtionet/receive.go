package virtionet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"loam/driver"
	"loam/driver/virtio"
	"loam/link"
	"loam/wire"
)

// receiver is the receive queue of a pair. One goroutine at a time calls Recv. The lock is needed
// for Close, Counters and look.
//
// The ring always holds as many empty buffers as it has room for. A buffer is a frame from the
// pool, or a slot of the driver's memory. A filled buffer begins with the virtio-net header. The
// last field of the header is the number of buffers of the frame (virtio 1.2 section 5.1.6.4).
type receiver struct {
	mu    sync.Mutex // guards all fields below
	pair  *pair
	queue *virtio.Queue
	room  int // bytes in each buffer

	frames []*link.Frame // if the card can reach the Go heap: the buffer of each chain, by the chain's head
	slots  slots         // if the card cannot reach the Go heap: buffers in memory of the driver
	slot   []uint16      // index of the slot of each chain, by the chain's head
	spare  []uint16      // slots that the card does not hold

	parts    []part                             // buffers of the frame that is being assembled
	segments [virtio.MaxSegments]driver.Segment // segments of the buffer being added
	armed    bool

	// late has a buffer of one. look sends to it when an interrupt is missing (if it is full, Recv
	// is already notified), and Recv receives. It is never closed.
	late    chan struct{}
	looked  uint64 // number of completed chains at the last call of look
	overdue bool   // the last call of look found that frames were ready although Recv waited
}

// part is a buffer that the card returned: its frame or slot, and the bytes that the card wrote.
type part struct {
	frame *link.Frame // nil: the buffer is a slot
	slot  uint16
	bytes []byte
}

// leastRoom returns the size in bytes of a buffer for the header and the longest frame that arrives
// in one buffer.
func (d *Device) leastRoom() int { return headerLen + d.info.MaxLen() + 2*wire.VLANTagLen }

// setUp prepares the receiver for queue q. It chooses the size of the buffers, and allocates slots if
// the card cannot reach the Go heap.
func (r *receiver) setUp(p *pair, q *virtio.Queue) (err error) {
	d := p.device
	r.pair, r.queue, r.late = p, q, make(chan struct{}, 1)
	r.room = link.MaxSmall
	if !d.merges && d.leastRoom() > r.room {
		r.room = d.leastRoom()
	}
	if d.direct {
		r.frames = make([]*link.Frame, q.Size())
		return nil
	}
	r.slot = make([]uint16, q.Size())
	for i := range q.Size() {
		r.spare = append(r.spare, uint16(i))
	}
	r.slots, err = newSlots(d.machine, q.Size(), r.room)
	return err
}

// start posts the first buffers.
func (r *receiver) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refill()
}

var errNoBuffers = errors.New("virtionet: the machine has no memory that the card reaches")

// refill posts as many buffers as the ring has room for.
func (r *receiver) refill() {
	if r.pair.device.direct {
		r.refillFrames()
	} else {
		for len(r.spare) > 0 && r.queue.Fits(1) {
			i := r.spare[len(r.spare)-1]
			r.spare = r.spare[:len(r.spare)-1]
			r.slot[r.queue.Add(nil, r.slots.segment(i, r.room))] = i
		}
	}
	r.queue.Kick()
}

// refillFrames posts frames. A frame may consist of several pieces of memory.
func (r *receiver) refillFrames() {
	for r.queue.Fits(1) {
		f := link.NewFrame(r.room)
		n, ok := r.pair.device.machine.Segments(f.Bytes(), r.segments[:])
		if !ok || !r.queue.Fits(n) {
			f.Free()
			return
		}
		r.frames[r.queue.Add(nil, r.segments[:n])] = f
	}
}

// Recv implements link.Queue.
func (p *pair) Recv(fs []*link.Frame) (int, error) {
	r := &p.receiver
	for {
		n, ready, err := r.harvest(fs)
		if n > 0 || err != nil {
			return n, err
		}
		if ready {
			continue
		}
		select {
		case <-r.queue.C():
			select {
			case <-r.late: // the interrupt was not lost: drop the pending report
			default:
			}
		case <-r.late:
			r.reportLost()
		case <-p.device.done:
		}
	}
}

// reportLost counts a lost interrupt, unless the interrupt has arrived meanwhile: when a program's goroutines keep all CPUs
// busy, the goroutine that calls Recv may run long after it was woken.
func (r *receiver) reportLost() {
	d := r.pair.device
	select {
	case <-r.queue.C():
	default:
		d.lost.Add(1)
		d.log.Warn("the network card did not interrupt for frames that it had received", "link", d.info.Name, "waited", lookEvery)
	}
}

// look looks for a lost interrupt. watch calls it periodically; late is set if the call is late, so that other goroutines
// may not have run either. If Recv has waited since the last call and frames have been ready all that time, look wakes it by
// another channel. If Recv has waited and no frame is ready, look notifies the card, which may have missed that buffers were
// posted.
func (r *receiver) look(late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.queue.Counters().Completed
	waited := r.armed && taken == r.looked && r.pair.device.state() == nil && !late
	r.looked = taken
	switch {
	case !waited:
		r.overdue = false
	case !r.queue.Ready():
		r.queue.Nudge()
	case !r.overdue:
		r.overdue = true // the interrupt may be about to arrive
	default:
		r.overdue = false
		select {
		case r.late <- struct{}{}:
		default:
		}
	}
}

// harvest takes received frames. If there are none, it requests an interrupt. ready means that
// frames arrived in the meantime.
func (r *receiver) harvest(fs []*link.Frame) (n int, ready bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.pair.device
	if err := d.state(); err != nil {
		return 0, false, err
	}
	if r.armed {
		r.queue.Disarm()
		r.armed = false
	}
	bytes, taken := 0, false
	for n < len(fs) {
		f, ok, err := r.take()
		if err != nil {
			d.fail(err)
			r.pair.counters.Received(n, bytes)
			if n > 0 {
				return n, false, nil // the next call returns the reason
			}
			return 0, false, d.state()
		}
		if !ok {
			break
		}
		taken = true
		if f != nil {
			fs[n] = f
			n++
			bytes += f.Len()
		}
	}
	if taken {
		if r.refill(); r.queue.Held() == 0 {
			d.fail(errNoBuffers) // without a buffer, the card would never receive again
		}
	}
	r.pair.counters.Received(n, bytes)
	if n == 0 {
		r.armed = true
		ready = r.queue.Arm(1)
	}
	return n, ready, nil
}

// take returns the next frame. It returns nil, and counts an error, if the frame is not valid. ok
// is false if nothing has arrived. An error means that the card can no longer be used.
func (r *receiver) take() (f *link.Frame, ok bool, err error) {
	first, ok, err := r.takePart()
	if !ok || err != nil {
		return nil, false, err
	}
	if len(first.bytes) < headerLen {
		return r.refuse(first), true, nil
	}
	buffers := 1
	if r.pair.device.merges {
		buffers = int(binary.LittleEndian.Uint16(first.bytes[link.VirtioHeaderLen:]))
	}
	if buffers == 1 {
		return r.accept(first), true, nil
	}
	return r.gather(first, buffers)
}

// takePart takes one buffer that the card has filled.
func (r *receiver) takePart() (p part, ok bool, err error) {
	head, written, ok, err := r.queue.Take()
	if !ok || err != nil {
		return p, false, err
	}
	if r.pair.device.direct {
		p.frame = r.frames[head]
		r.frames[head] = nil
		p.bytes = p.frame.Bytes()[:written]
	} else {
		p.slot = r.slot[head]
		p.bytes = r.slots.bytes(p.slot)[:written]
	}
	return p, true, nil
}

// release frees a buffer.
func (r *receiver) release(p part) {
	if p.frame != nil {
		p.frame.Free()
	} else {
		r.spare = append(r.spare, p.slot)
	}
}

func (r *receiver) refuse(p part) *link.Frame {
	r.release(p)
	r.pair.counters.RxError()
	return nil
}

// accept returns the frame in a single buffer, or nil if it is not valid.
func (r *receiver) accept(p part) *link.Frame {
	n := len(p.bytes) - headerLen
	offload, ok := link.ParseOffload(p.bytes, n)
	if !ok || n < wire.EthernetLen {
		return r.refuse(p)
	}
	f := p.frame
	if f != nil {
		f.TrimFront(headerLen)
		f.Resize(n)
	} else {
		f = link.NewFrame(n)
		copy(f.Bytes(), p.bytes[headerLen:])
		r.release(p)
	}
	return r.admit(f, offload)
}

// gather returns a frame that consists of several buffers. The card must have completed all of them
// together (virtio 1.2 section 5.1.6.4.1). If it has not, or if the number of buffers is impossible, it
// returns an error.
func (r *receiver) gather(first part, buffers int) (f *link.Frame, ok bool, err error) {
	if buffers == 0 {
		return r.refuse(first), true, nil
	}
	r.parts = append(r.parts[:0], first)
	total := len(first.bytes) - headerLen
	for len(r.parts) < buffers {
		p, ok, err := r.takePart()
		if err == nil && !ok {
			err = fmt.Errorf("%w: a frame over %d buffers, of which %d came", virtio.ErrNonsense, buffers, len(r.parts))
		}
		if err != nil {
			r.releaseParts()
			return nil, false, err
		}
		r.parts = append(r.parts, p)
		total += len(p.bytes)
	}
	defer r.releaseParts()
	offload, ok := link.ParseOffload(first.bytes, total)
	if !ok || total < wire.EthernetLen || total > link.MaxFrame {
		r.pair.counters.RxError()
		return nil, true, nil
	}
	f = link.NewFrame(total)
	at := copy(f.Bytes(), first.bytes[headerLen:])
	for _, p := range r.parts[1:] {
		at += copy(f.Bytes()[at:], p.bytes)
	}
	return r.admit(f, offload), true, nil
}

func (r *receiver) releaseParts() {
	for _, p := range r.parts {
		r.release(p)
	}
	clear(r.parts)
	r.parts = r.parts[:0]
}

// admit sets the metadata of f and checks it. It returns nil if the metadata does not fit the
// frame.
func (r *receiver) admit(f *link.Frame, o link.Offload) *link.Frame {
	f.Offload = o
	if !f.Admit(link.Ethernet) {
		f.Free()
		r.pair.counters.RxError()
		return nil
	}
	return f
}

// free frees all buffers. The card must be stopped.
func (r *receiver) free(m driver.Machine) {
	for i, f := range r.frames {
		if f != nil {
			f.Free()
			r.frames[i] = nil
		}
	}
	r.slots.free(m)
}
