package virtioblk

import (
	"encoding/binary"
	"fmt"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
	"loam/driver/virtio"
)

// types are the numbers of the operations (section 5.2.6).
var types = [block.Ops]uint32{block.Read: 0, block.Write: 1, block.Flush: 4, block.Discard: 11, block.WriteZeroes: 13}

// Offsets in the memory of a slot.
const (
	atHeader = 0
	atRange  = 16 // atRange is the range of a Discard or WriteZeroes
	atStatus = 32
	slotLen  = 64

	headerLen = 16
	rangeLen  = 16

	flagUnmap   = 1 // flag of a WriteZeroes range: the space may be freed
	notAnswered = 0xff
)

// ring is a queue of the virtio device. It implements controller.Ring.
type ring struct {
	queue   *virtio.Queue
	memory  driver.Buffer // memory of the slots, slotLen bytes each
	slots   []int         // slot numbers by the head of the descriptor chain
	out, in [mostPieces + 2]driver.Segment
}

func (d *disk) newRing(q *virtio.Queue, slots int) (*ring, error) {
	b, err := d.v.Machine().Allocate(slots*slotLen, slotLen)
	if err != nil {
		return nil, err
	}
	d.memory = append(d.memory, b)
	return &ring{queue: q, memory: b, slots: make([]int, q.Size())}, nil
}

// C implements controller.Ring.
func (r *ring) C() <-chan struct{} { return r.queue.C() }

// Call implements driver.Caller.
func (r *ring) Call(f func()) { r.queue.Call(f) }

// Acknowledge implements controller.Ring. It does nothing, because package virtio acknowledges
// interrupts.
func (r *ring) Acknowledge() {}

// Start implements controller.Ring. The chain of a request is the header, the data, and room for
// the status (section 5.2.6).
func (r *ring) Start(s controller.Step, data []driver.Segment) {
	b, at := r.memory.Bytes[s.Slot*slotLen:][:slotLen], r.memory.Address+uint64(s.Slot*slotLen)
	le := binary.LittleEndian
	le.PutUint32(b[atHeader:], types[s.Op])
	le.PutUint32(b[atHeader+4:], 0)
	le.PutUint64(b[atHeader+8:], 0)
	b[atStatus] = notAnswered
	out := append(r.out[:0], driver.Segment{Address: at + atHeader, Size: headerLen})
	in := r.in[:0]
	switch s.Op {
	case block.Read:
		le.PutUint64(b[atHeader+8:], uint64(s.Request.Offset/sectorSize))
		in = append(in, data...)
	case block.Write:
		le.PutUint64(b[atHeader+8:], uint64(s.Request.Offset/sectorSize))
		out = append(out, data...)
	case block.Discard, block.WriteZeroes:
		setRange(b[atRange:], s.Request)
		out = append(out, driver.Segment{Address: at + atRange, Size: rangeLen})
	}
	in = append(in, driver.Segment{Address: at + atStatus, Size: 1})
	r.slots[r.queue.Add(out, in)] = s.Slot
}

// setRange writes the single range of a Discard or WriteZeroes.
func setRange(b []byte, r *block.Request) {
	le := binary.LittleEndian
	le.PutUint64(b, uint64(r.Offset/sectorSize))
	le.PutUint32(b[8:], uint32(r.Length/sectorSize))
	flags := uint32(0)
	if r.Op == block.WriteZeroes && r.Flags&block.KeepAllocated == 0 {
		flags = flagUnmap
	}
	le.PutUint32(b[12:], flags)
}

// Kick implements controller.Ring.
func (r *ring) Kick() { r.queue.Kick() }

// Take implements controller.Ring.
func (r *ring) Take() (c controller.Completion, ok bool, fatal error) {
	for {
		head, _, ok, err := r.queue.Take()
		if err != nil {
			return c, false, err
		}
		if ok {
			slot := r.slots[head]
			return controller.Completion{Slot: slot, Err: statusError(r.memory.Bytes[slot*slotLen+atStatus])}, true, nil
		}
		if !r.queue.Arm(1) {
			return c, false, nil
		}
	}
}

// statusError converts the status byte of a request, which the device wrote, to an error.
func statusError(status uint8) error {
	switch status {
	case 0:
		return nil
	case 1:
		return block.ErrIO
	case 2:
		return block.ErrUnsupported
	}
	return fmt.Errorf("%w: status %d", block.ErrIO, status)
}
