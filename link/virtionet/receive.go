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

// receiver is the receiving queue of a pair. Recv is called by one goroutine; the
// lock is for the end.
//
// The ring always holds as many empty buffers as it has room for. A buffer is a
// frame of the pool, or a slot of the driver's memory. What a slot or a frame is
// filled with begins with the virtio-net header, whose last field says over how
// many buffers the frame goes (section 5.1.6.4).
type receiver struct {
	mu    sync.Mutex // guards all below, against Close
	pair  *pair
	queue *virtio.Queue
	room  int // bytes in each buffer

	frames []*link.Frame // by head: the buffer, where the card reaches the heap
	slots  slots         // otherwise
	slot   []uint16      // by head
	spare  []uint16      // slots that the card does not have

	parts    []part                             // of the frame that is being put together
	segments [virtio.MaxSegments]driver.Segment // of the buffer that is being added
	armed    bool

	// late has one place. look sends when an interrupt is missing (full: Recv has been told);
	// Recv receives. It is never closed.
	late    chan struct{}
	looked  uint64 // chains that had come back when look was called last
	overdue bool   // and there were more, though Recv waited
}

// part is a buffer that came back: its frame or slot, and how much is in it.
type part struct {
	frame *link.Frame // nil: a slot
	slot  uint16
	bytes []byte
}

// leastRoom is for the header and the longest frame that comes in one buffer.
func (d *Device) leastRoom() int { return headerLen + d.info.MaxLen() + 2*wire.VLANTagLen }

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

// start gives the card its first buffers.
func (r *receiver) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refill()
}

var errNoBuffers = errors.New("virtionet: the machine has no memory that the card reaches")

// refill gives the card buffers, as many as there is room for.
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

// refillFrames posts frames. One may lie in several pieces of memory.
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
		case <-r.late:
		case <-p.device.done:
		}
	}
}

// look is called now and then, for a Recv that has waited since the last time. If there have
// been frames all the while it wakes it, and reports that an interrupt was lost. If there are
// none it notifies the card, which may have missed that there are buffers.
func (r *receiver) look() (lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.queue.Counters().Completed
	waited := r.armed && taken == r.looked && r.pair.device.state() == nil
	r.looked = taken
	switch {
	case !waited:
		r.overdue = false
	case !r.queue.Ready():
		r.queue.Nudge()
	case !r.overdue:
		r.overdue = true // it may be on its way
	default:
		r.overdue = false
		select {
		case r.late <- struct{}{}:
		default:
		}
		return true
	}
	return false
}

// harvest takes what the card has received. If there is nothing it asks for an
// interrupt; ready says that something has come since.
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
				return n, false, nil // the next call says why
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
			d.fail(errNoBuffers) // it would never receive again
		}
	}
	r.pair.counters.Received(n, bytes)
	if n == 0 {
		r.armed = true
		ready = r.queue.Arm(1)
	}
	return n, ready, nil
}

// take returns the next frame. It is nil if what came makes no sense as one, which
// is counted; ok is false if nothing came; an error is the end of the card.
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

// takePart takes one buffer.
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

// release gives up a buffer.
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

// accept makes a frame of one buffer.
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

// gather makes a frame of several buffers. The card has completed them together
// (section 5.1.6.4.1): one that has not, or wants more than there are, has lost
// count.
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

// admit checks the metadata against the frame.
func (r *receiver) admit(f *link.Frame, o link.Offload) *link.Frame {
	f.Offload = o
	if !f.Admit(link.Ethernet) {
		f.Free()
		r.pair.counters.RxError()
		return nil
	}
	return f
}

// free frees all buffers: the card is stopped.
func (r *receiver) free(m driver.Machine) {
	for i, f := range r.frames {
		if f != nil {
			f.Free()
			r.frames[i] = nil
		}
	}
	r.slots.free(m)
}
