package e1000e

import (
	"fmt"
	"sync"

	"loam/driver"
	"loam/link"
	"loam/wire"
)

// receiver is the receive ring. One goroutine at a time calls Recv. The lock is needed for Close and look.
//
// Each descriptor has a slot of memory, which never changes. The card fills the slots in the order of the ring. The card
// owns all descriptors except one, so that a full ring differs from an empty one. Recv copies a frame out of its slot and
// returns the descriptor to the card.
type receiver struct {
	wake <-chan struct{} // receives interrupts
	// interrupt is the channel wake if the card has no MSI-X. It has a buffer of one. loop sends to it (if it is full,
	// Recv is already notified), and Recv receives. It is never closed.
	interrupt chan struct{}

	mu    sync.Mutex // guards all fields below
	queue *queue
	ring  driver.Buffer
	slots driver.Buffer
	size  int // number of descriptors
	next  int // index of the descriptor that the card fills next
	owed  int // descriptors that were emptied and are not returned to the card yet
	armed bool

	part    *link.Frame // first part of a frame over several slots; nil: none
	filled  int         // bytes of part
	discard bool        // the rest of the current frame is dropped

	// late has a buffer of one. look sends to it when an interrupt is missing (if it is full, Recv
	// is already notified), and Recv receives. It is never closed.
	late    chan struct{}
	taken   uint64 // number of descriptors that were emptied
	looked  uint64 // value of taken at the last call of look
	overdue bool   // the last call of look found that frames were ready although Recv waited
}

// receiveSlot is the length of a slot in bytes, which is also the value of RCTL.BSIZE.
const receiveSlot = 2048

// pageSize is the alignment of rings and slots in bytes.
const pageSize = 4096

// setUp allocates the memory.
func (r *receiver) setUp(q *queue, size int) (err error) {
	r.queue, r.size, r.late = q, size, make(chan struct{}, 1)
	if r.ring, err = q.device.machine.Allocate(size*receiveDescriptors, pageSize); err != nil {
		return err
	}
	r.slots, err = q.device.machine.Allocate(size*receiveSlot, pageSize)
	return err
}

// place writes all descriptors, and their address into the registers. The card owns none of them yet.
func (r *receiver) place() {
	for i := range r.size {
		r.reset(i)
	}
	place(r.queue.device.registers, regReceiveRing, r.ring)
	r.queue.device.registers.Write32(regReceiveHead, 0)
	r.queue.device.registers.Write32(regReceiveTail, 0)
	r.owed = r.size - 1
}

// place writes the address and the length of a ring into the registers at the given offset. The order of these registers
// is the same for both rings.
func place(registers driver.Registers, at int, ring driver.Buffer) {
	registers.Write32(at, uint32(ring.Address))
	registers.Write32(at+4, uint32(ring.Address>>32))
	registers.Write32(at+8, uint32(len(ring.Bytes)))
}

// reset makes descriptor i empty.
func (r *receiver) reset(i int) {
	at := i * receiveDescriptors
	word(r.ring.Bytes, at).Store(r.slots.Address + uint64(i*receiveSlot))
	word(r.ring.Bytes, at+8).Store(0)
}

// release returns emptied descriptors to the card.
func (r *receiver) release() {
	if r.owed > 0 {
		r.owed = 0
		r.queue.device.registers.Write32(regReceiveTail, uint32((r.next+r.size-1)%r.size))
	}
}

// ready reports whether the card has filled the next descriptor.
func (r *receiver) ready() bool {
	return word(r.ring.Bytes, r.next*receiveDescriptors+8).Load()&receivedDone != 0
}

// Recv implements link.Queue.
func (q *queue) Recv(fs []*link.Frame) (int, error) {
	r := &q.receiver
	for {
		n, ready, err := r.harvest(fs)
		if n > 0 || err != nil {
			return n, err
		}
		if ready {
			continue
		}
		select {
		case <-r.wake:
			r.disarm()
		case <-r.late:
			r.reportLost()
		case <-q.device.done:
		}
	}
}

// disarm records that an interrupt has arrived, which has masked its cause. The next harvest without frames unmasks the
// cause.
func (r *receiver) disarm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed = false
	select {
	case <-r.late: // the interrupt was not lost: drop the pending report
	default:
	}
}

// reportLost counts a lost interrupt, unless the interrupt has arrived meanwhile: when a program's goroutines keep all
// CPUs busy, the goroutine that calls Recv may run long after it was woken.
func (r *receiver) reportLost() {
	d := r.queue.device
	select {
	case <-r.wake:
	default:
		d.lost.Add(1)
		d.log.Warn("the network card did not interrupt for frames that it had received", "link", d.info.Name, "waited", lookEvery)
	}
	r.disarm()
}

// look looks for a lost interrupt. watch calls it periodically; late is set if the call is late, so that other goroutines
// may not have run either. If Recv has waited since the last call and frames have been ready all that time, look wakes it
// by another channel.
func (r *receiver) look(late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waited := r.armed && r.taken == r.looked && !late
	r.looked = r.taken
	switch {
	case !waited || !r.ready():
		r.overdue = false
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

// harvest takes received frames. If there are none, it unmasks the interrupt. ready means that frames arrived in the
// meantime.
func (r *receiver) harvest(fs []*link.Frame) (n int, ready bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.queue.device
	if err := d.state(); err != nil {
		return 0, false, err
	}
	bytes := 0
	// A card that reports descriptors again and again must not keep the driver here.
	for budget := r.size; n < len(fs) && budget > 0; budget-- {
		f, ok, err := r.take()
		if err != nil {
			d.stop(err)
			break
		}
		if !ok {
			break
		}
		if f != nil {
			fs[n] = f
			n++
			bytes += f.Len()
		}
		// A few descriptors at a time are enough: each write to a register of an emulated card ends the guest's turn.
		const batch = 32
		if r.owed >= batch {
			r.release()
		}
	}
	if n > 0 {
		r.queue.counters.Received(n, bytes)
		return n, false, nil // if the device has failed, the next call returns the reason
	}
	if err := d.state(); err != nil {
		return 0, false, err
	}
	r.release()
	r.arm()
	return 0, r.ready(), nil
}

// arm unmasks the interrupt, unless an interrupt is still to come. A cause that was set by frames taken since the last
// interrupt is cleared first. Frames that arrive between the two writes cause an interrupt. The caller then calls ready,
// because earlier frames cause none.
func (r *receiver) arm() {
	if r.armed {
		return
	}
	d := r.queue.device
	r.armed = true
	d.unmask(d.causes.receive)
}

// take empties the next descriptor. It returns the frame that ends in it; nil if none does, or if the frame is damaged.
// ok is false if the card has not filled the descriptor. An error means that the card can no longer be used.
func (r *receiver) take() (f *link.Frame, ok bool, err error) {
	// this word is read once, so that a card cannot change it after the checks
	v := word(r.ring.Bytes, r.next*receiveDescriptors+8).Load()
	if v&receivedDone == 0 {
		return nil, false, nil
	}
	n := int(v & receivedLenMask)
	if n > receiveSlot {
		return nil, false, fmt.Errorf("%w: %d bytes in a buffer of %d", ErrNonsense, n, receiveSlot)
	}
	f = r.assemble(r.slots.Bytes[r.next*receiveSlot:][:n], v)
	r.reset(r.next)
	r.next = (r.next + 1) % r.size
	r.owed++
	r.taken++
	return f, true, nil
}

// maxLen returns the length in bytes of the longest frame that is delivered.
func (r *receiver) maxLen() int { return r.queue.device.info.MaxLen() + 2*wire.VLANTagLen }

// assemble returns the frame that ends with the bytes b, whose descriptor has the word v. It returns nil if the frame
// does not end there, or is damaged.
func (r *receiver) assemble(b []byte, v uint64) *link.Frame {
	if r.part == nil && !r.discard && v&receivedLast != 0 { // the usual case: the frame is in one slot
		if len(b) < wire.EthernetLen || len(b) > r.maxLen() || v&receivedBadFrame != 0 {
			r.queue.counters.RxError()
			return nil
		}
		f := link.FrameOf(b)
		f.ChecksumValid = validSum(v)
		return f
	}
	if !r.discard && r.part == nil {
		r.part, r.filled = link.NewFrame(r.maxLen()), 0
	}
	if r.part != nil {
		if r.filled+len(b) > r.part.Len() {
			r.drop()
		} else {
			r.filled += copy(r.part.Bytes()[r.filled:], b)
		}
	}
	if v&receivedLast == 0 {
		return nil
	}
	f := r.part
	r.part, r.discard = nil, false
	switch {
	case f == nil: // it was too long
		r.queue.counters.RxError()
		return nil
	case r.filled < wire.EthernetLen || v&receivedBadFrame != 0:
		f.Free()
		r.queue.counters.RxError()
		return nil
	}
	f.Resize(r.filled)
	f.ChecksumValid = validSum(v)
	return f
}

// drop drops the frame that is being assembled, and the rest of it that is still to come.
func (r *receiver) drop() {
	r.part.Free()
	r.part, r.discard = nil, true
}

// validSum reports whether the card has found the checksum of TCP or UDP to be correct. If the card has found it wrong,
// the stack checks again, and counts the error.
func validSum(v uint64) bool {
	return v&(receivedNoSums|receivedSum|receivedBadSum) == receivedSum
}

// free frees the memory. The card must be off.
func (r *receiver) free(m driver.Machine) {
	if r.part != nil {
		r.part.Free()
		r.part = nil
	}
	freeBuffer(m, &r.ring)
	freeBuffer(m, &r.slots)
}

// freeBuffer frees the memory of b, if it has any.
func freeBuffer(m driver.Machine, b *driver.Buffer) {
	if b.Bytes != nil {
		m.Free(*b)
		*b = driver.Buffer{}
	}
}
