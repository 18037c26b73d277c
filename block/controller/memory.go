package controller

import (
	"fmt"

	"loam/block"
	"loam/driver"
)

// memory is the memory that the hardware uses for the data of requests: the user's own memory, or a
// copy. Data is copied if the hardware cannot reach the heap, or does not support the alignment or
// number of the pieces.
type memory struct {
	machine driver.Machine
	direct  bool // the hardware can reach the heap, so that requests need no copy
	fits    func([]driver.Segment) bool
	most    int // maximum number of bytes of a request
	slots   []slotMemory
}

// slotMemory is the memory of one slot, which holds one command with its data.
type slotMemory struct {
	bounce   driver.Buffer // memory for copies of data that the hardware cannot reach; allocated at the first use, and kept
	copied   bool
	segments []driver.Segment // room for as many as the hardware supports
}

func newMemory(m driver.Machine, slots, segments, most int, fits func([]driver.Segment) bool) *memory {
	x := &memory{machine: m, fits: fits, most: most, slots: make([]slotMemory, slots)}
	for i := range x.slots {
		x.slots[i].segments = make([]driver.Segment, segments)
	}
	var probe [2]driver.Segment
	_, x.direct = m.Segments(make([]byte, 512), probe[:])
	return x
}

// prepare returns the memory segments for a Read or Write in a slot, and whether they are a copy.
func (m *memory) prepare(slot int, r *block.Request) (pieces []driver.Segment, copied bool, err error) {
	at := &m.slots[slot]
	at.copied = false
	if m.direct {
		if pieces, ok := m.find(at.segments, r.Data); ok && m.fits(pieces) {
			return pieces, false, nil
		}
	}
	if at.bounce.Bytes == nil {
		if at.bounce, err = m.machine.Allocate(m.most, pageSize); err != nil {
			return nil, false, fmt.Errorf("%w: no memory that the device reaches: %w", block.ErrIO, err)
		}
	}
	at.copied = true
	n := 0
	for _, p := range r.Data {
		if r.Op == block.Write {
			copy(at.bounce.Bytes[n:], p)
		}
		n += len(p)
	}
	at.segments[0] = driver.Segment{Address: at.bounce.Address, Size: n}
	return at.segments[:1], true, nil
}

const pageSize = 4096

// find translates the user's memory into segments of device addresses.
func (m *memory) find(dst []driver.Segment, data [][]byte) ([]driver.Segment, bool) {
	n := 0
	for _, p := range data {
		k, ok := m.machine.Segments(p, dst[n:])
		if !ok {
			return nil, false
		}
		n += k
	}
	return dst[:n], true
}

// finish copies the data of a Read to the user.
func (m *memory) finish(slot int, r *block.Request) {
	at := &m.slots[slot]
	if !at.copied || r.Op != block.Read {
		return
	}
	from := at.bounce.Bytes
	for _, p := range r.Data {
		from = from[copy(p, from):]
	}
}

func (m *memory) free() {
	for i := range m.slots {
		if at := &m.slots[i]; at.bounce.Bytes != nil {
			m.machine.Free(at.bounce)
			at.bounce = driver.Buffer{}
		}
	}
}
