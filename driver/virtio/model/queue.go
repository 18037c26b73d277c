package model

import (
	"encoding/binary"
	"sync/atomic"
)

// Queue is the device's side of a split virtqueue (virtio 1.2 section 2.7). Only one goroutine of the device may
// use it.
type Queue struct {
	device *Device
	index  int

	// Set by the driver; guarded by device.mu until the device runs.
	size              int
	desc, avail, used uint64
	enabled           bool
	vector            uint16

	ring  *rings // created when the device starts
	taken uint16 // available index up to which chains have been taken
	chain Chain  // result of the last Take
	done  uint16 // used index
}

// rings are the parts of the queue in memory.
type rings struct {
	desc, availRing, usedRing []byte
	availIndex, usedIndex     *atomic.Uint32
	usedEvent, availEvent     *atomic.Uint32
}

// Chain is a chain of descriptors that the device works on. It is valid until the next Take.
type Chain struct {
	Head uint16
	Out  [][]byte // the device reads
	In   [][]byte // the device writes

	hostile bool // the driver may be using the memory already, because the device has completed another chain wrongly
}

var le = binary.LittleEndian

// open locates the rings in memory.
func (q *Queue) open() {
	m := q.device.machine
	avail, used := m.at(q.avail, 4+2*q.size+4), m.at(q.used, 4+8*q.size+4)
	q.ring = &rings{
		desc: m.at(q.desc, 16*q.size), availRing: avail[4:], usedRing: used[4:],
		availIndex: word(avail, 0), usedEvent: word(avail, 4+2*q.size),
		usedIndex: word(used, 0), availEvent: word(used, 4+8*q.size),
	}
	q.taken, q.done = 0, 0
}

// Take returns the next available chain; nil if there is none. In that case the driver will notify the device of
// the next one.
func (q *Queue) Take() *Chain {
	r := q.ring
	if r == nil {
		return nil
	}
	if q.device.has(featureEventIndex) {
		r.availEvent.Store(uint32(q.taken))
	}
	if uint16(r.availIndex.Load()>>16) == q.taken {
		return nil
	}
	head := le.Uint16(r.availRing[2*(int(q.taken)%q.size):])
	q.taken++
	c := &q.chain
	c.Head, c.Out, c.In, c.hostile = head, c.Out[:0], c.In[:0], q.device.Hostile != nil
	q.walk(c, r.desc, head)
	return c
}

// Untake makes the last n chains that were taken available again.
func (q *Queue) Untake(n int) { q.taken -= uint16(n) }

// Flags of a descriptor.
const (
	next     = 1
	write    = 2
	indirect = 4
)

// walk adds the segments of a chain from descriptor at on to c. It panics if the chain is invalid, since that is a
// bug in the driver.
func (q *Queue) walk(c *Chain, table []byte, at uint16) {
	for range len(table) / 16 {
		d := table[int(at)*16:][:16]
		address, size, flags := le.Uint64(d), int(le.Uint32(d[8:])), le.Uint16(d[12:])
		if flags&indirect != 0 {
			q.walk(c, q.device.machine.at(address, size), 0)
			return
		}
		b := q.device.machine.at(address, size)
		if flags&write != 0 {
			c.In = append(c.In, b)
		} else {
			if len(c.In) > 0 {
				panic("model: what a device reads stands behind what it writes (section 2.7.4.2)")
			}
			c.Out = append(c.Out, b)
		}
		if flags&next == 0 {
			return
		}
		at = le.Uint16(d[14:])
	}
	panic("model: a chain does not end")
}

// Put completes chains, given their heads and the numbers of bytes written, and interrupts the driver if it has
// requested that.
func (q *Queue) Put(heads []uint16, written []uint32) {
	if h := q.device.Hostile; h != nil {
		q.lie(h, heads, written)
		return
	}
	for i, head := range heads {
		q.element(i, uint32(head), written[i])
	}
	q.advance(len(heads))
}

// Done completes one chain.
func (q *Queue) Done(c *Chain, written int) { q.Put([]uint16{c.Head}, []uint32{uint32(written)}) }

// element writes the i-th element after the used index.
func (q *Queue) element(i int, id, written uint32) {
	e := q.ring.usedRing[8*((int(q.done)+i)%q.size):]
	le.PutUint32(e, id)
	le.PutUint32(e[4:], written)
}

// move advances the used index.
func (q *Queue) move(n int) {
	q.done += uint16(n)
	q.ring.usedIndex.Swap(uint32(q.done)<<16 | q.ring.usedIndex.Load()&0xffff)
}

// advance advances the used index and interrupts the driver if it has requested that.
func (q *Queue) advance(n int) {
	r, old := q.ring, q.done
	q.move(n)
	wanted := r.availIndex.Load()&1 == 0
	if q.device.has(featureEventIndex) {
		event := uint16(r.usedEvent.Load())
		wanted = q.done-event-1 < q.done-old
	}
	if wanted {
		q.device.interrupt(q.vector, isrQueue)
	}
}

// Gather copies data that the device reads to p, from an offset in the chain. It returns the bytes copied.
func (c *Chain) Gather(from int, p []byte) (n int) {
	return transfer(c.Out, from, p, func(segment, p []byte) int { return copy(p, segment) })
}

// Scatter copies p to memory that the device writes, from an offset in the chain. It returns the bytes copied.
func (c *Chain) Scatter(from int, p []byte) (n int) {
	if c.hostile {
		return transfer(c.In, from, p, overwrite)
	}
	return transfer(c.In, from, p, func(segment, p []byte) int { return copy(segment, p) })
}

// transfer calls move for each segment from an offset in the segments, with the rest of p. move returns the number of
// bytes that it copied.
func transfer(pieces [][]byte, from int, p []byte, move func(segment, p []byte) int) (n int) {
	for _, b := range pieces {
		if from >= len(b) {
			from -= len(b)
			continue
		}
		n += move(b[from:], p[n:])
		from = 0
	}
	return n
}

// OutLen returns the number of bytes that the device reads.
func (c *Chain) OutLen() int { return total(c.Out) }

// InLen returns the number of bytes that the device may write.
func (c *Chain) InLen() int { return total(c.In) }

func total(pieces [][]byte) (n int) {
	for _, b := range pieces {
		n += len(b)
	}
	return n
}

// Shrink makes the queue offer room for only n descriptors.
func (q *Queue) Shrink(n int) { q.size = n }
