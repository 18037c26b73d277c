package model

import (
	"encoding/binary"
	"sync/atomic"
)

// Queue is the device's side of a split virtqueue (virtio 1.2 section 2.7). One
// goroutine of the device uses it.
type Queue struct {
	device *Device
	index  int

	// What the driver has set up; guarded by device.mu until the device runs.
	size              int
	desc, avail, used uint64
	enabled           bool
	vector            uint16

	ring  *rings // made when the device starts
	taken uint16 // available index up to which chains were taken
	chain Chain  // what Take returned last
	done  uint16 // used index
}

// rings are the parts of the queue as memory.
type rings struct {
	desc, availRing, usedRing []byte
	availIndex, usedIndex     *atomic.Uint32
	usedEvent, availEvent     *atomic.Uint32
}

// Chain is a chain of descriptors that the device works on, until the next is taken.
type Chain struct {
	Head uint16
	Out  [][]byte // to read
	In   [][]byte // to write
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

// Take returns the next chain that the driver has made available; nil if there is
// none, and then the driver will notify.
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
	c.Head, c.Out, c.In = head, c.Out[:0], c.In[:0]
	q.walk(c, r.desc, head)
	return c
}

// Untake makes the n chains that were taken last available again.
func (q *Queue) Untake(n int) { q.taken -= uint16(n) }

// Flags of a descriptor.
const (
	next     = 1
	write    = 2
	indirect = 4
)

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

// Put gives chains back, of each the head and how many bytes were written, and
// interrupts if the driver wants that.
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

// Done gives one chain back.
func (q *Queue) Done(c *Chain, written int) { q.Put([]uint16{c.Head}, []uint32{uint32(written)}) }

// element writes an element of the used ring, the i-th behind the index.
func (q *Queue) element(i int, id, written uint32) {
	e := q.ring.usedRing[8*((int(q.done)+i)%q.size):]
	le.PutUint32(e, id)
	le.PutUint32(e[4:], written)
}

// move moves the used index.
func (q *Queue) move(n int) {
	q.done += uint16(n)
	q.ring.usedIndex.Swap(uint32(q.done)<<16 | q.ring.usedIndex.Load()&0xffff)
}

// advance moves the used index and interrupts.
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

// Gather copies what the device reads of a chain, from an offset on.
func (c *Chain) Gather(from int, p []byte) (n int) { return transfer(c.Out, from, p, false) }

// Scatter writes to what the device writes of a chain, from an offset on.
func (c *Chain) Scatter(from int, p []byte) (n int) { return transfer(c.In, from, p, true) }

func transfer(pieces [][]byte, from int, p []byte, in bool) (n int) {
	for _, b := range pieces {
		if from >= len(b) {
			from -= len(b)
			continue
		}
		if in {
			n += copy(b[from:], p[n:])
		} else {
			n += copy(p[n:], b[from:])
		}
		from = 0
	}
	return n
}

// OutLen and InLen are how many bytes the device reads and writes.
func (c *Chain) OutLen() int { return total(c.Out) }

// InLen is how many bytes there is room for.
func (c *Chain) InLen() int { return total(c.In) }

func total(pieces [][]byte) (n int) {
	for _, b := range pieces {
		n += len(b)
	}
	return n
}

// Shrink has the queue offer room for n descriptors only.
func (q *Queue) Shrink(n int) { q.size = n }
