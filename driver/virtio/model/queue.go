package model

import (
	"encoding/binary"
	"sync/atomic"
)

// Queue is the device's side of a split virtqueue (virtio 1.2 section 2.7). Only the device's goroutine may use it.
type Queue struct {
	device *Device
	index  int

	// Set by the driver. device.mu guards these fields until the device runs.
	size              int
	desc, avail, used uint64
	enabled           bool
	vector            uint16

	ring  *rings // created when the device starts
	taken uint16 // available index of the next chain to take
	chain Chain  // the chain that the last Take returned
	done  uint16 // used index: number of completed chains, modulo 2^16
}

// rings holds the parts of the queue that are in memory.
type rings struct {
	desc, availRing, usedRing []byte
	availIndex, usedIndex     *atomic.Uint32
	usedEvent, availEvent     *atomic.Uint32
}

// Chain is a chain of descriptors that the device has taken from a queue. It is valid until the next Take.
type Chain struct {
	Head uint16
	Out  [][]byte // segments that the device reads
	In   [][]byte // segments that the device writes

	hostile bool // the driver may be using the memory again, because the device has completed this chain in place of another
}

var le = binary.LittleEndian

// open finds the rings in memory.
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

// Take returns the next available chain, or nil if there is none. In that case, it also requests that the driver notify
// the device of the next chain.
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

// Untake returns the last n chains to the queue, so that Take returns them again.
func (q *Queue) Untake(n int) { q.taken -= uint16(n) }

// Flags of a descriptor.
const (
	next     = 1
	write    = 2
	indirect = 4
)

// walk adds the segments of a chain to c, starting at the descriptor with the index at.
// It panics if the chain is invalid, since that is a bug in the driver.
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

// Put completes chains. Each is given by its head, and by the number of bytes that the device has written to it. Put
// interrupts the driver if the driver has requested it.
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

// Done completes one chain. written is the number of bytes that the device has written to it.
func (q *Queue) Done(c *Chain, written int) { q.Put([]uint16{c.Head}, []uint32{uint32(written)}) }

// element writes an element of the used ring: the i-th after the used index.
func (q *Queue) element(i int, id, written uint32) {
	e := q.ring.usedRing[8*((int(q.done)+i)%q.size):]
	le.PutUint32(e, id)
	le.PutUint32(e[4:], written)
}

// move advances the used index by n.
func (q *Queue) move(n int) {
	q.done += uint16(n)
	q.ring.usedIndex.Swap(uint32(q.done)<<16 | q.ring.usedIndex.Load()&0xffff)
}

// advance advances the used index by n, and interrupts the driver if the driver has requested it.
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

// Gather copies data that the driver has provided to p, from an offset in the chain. It returns the number of bytes
// copied.
func (c *Chain) Gather(from int, p []byte) (n int) {
	return transfer(c.Out, from, p, func(segment, p []byte) int { return copy(p, segment) })
}

// Scatter copies p to the memory of the chain that the device may write, from an offset. It returns the number of bytes
// copied.
func (c *Chain) Scatter(from int, p []byte) (n int) {
	if c.hostile {
		return transfer(c.In, from, p, overwrite)
	}
	return transfer(c.In, from, p, func(segment, p []byte) int { return copy(segment, p) })
}

// transfer calls the function move for each segment, beginning at an offset, with the
// remaining part of p. That function returns the number of bytes that it has copied.
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

// Shrink limits the queue to n descriptors.
func (q *Queue) Shrink(n int) { q.size = n }
