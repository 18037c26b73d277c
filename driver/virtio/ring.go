package virtio

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"loam/driver"
)

// A Ring is the driver's side of a split virtqueue (section 2.7), over a piece of
// memory that the device sees too. It is pure: no goroutine, clock or register.
//
//	descriptor table   the driver writes: where a piece of memory is
//	available ring     the driver writes: which chains of descriptors to work on
//	used ring          the device writes: which chains it is done with
//
// A chain is named by its head, the index of its first descriptor. What the ring
// must remember of a chain is kept in memory of its own, never read back from the
// table: a device may scribble over that. So whatever the device writes, no index
// leaves its array, and no chain is returned that was not given to the device or
// was returned already.
//
// Both sides look at the other's index while it changes. Each index shares four
// aligned bytes with a flags field of the same writer, and is read and written with
// them, atomically: whoever sees the index sees what was written before it. Where a
// load of the other side's word follows, as in section 2.7.13.4.1, the word is
// swapped, not stored: under the race detector, a store to memory outside Go's heap
// is a plain one, which the load may overtake.
type Ring struct {
	size       int
	memory     []byte
	indirect   []byte // one table of indirectLen descriptors for every head; nil: none
	indirectAt uint64 // its device address
	eventIndex bool

	availIndex *atomic.Uint32 // flags, index
	usedEvent  *atomic.Uint32 // interrupt when the used index passes it
	usedIndex  *atomic.Uint32 // flags, index
	availEvent *atomic.Uint32 // notify when the available index passes it
	availRing  []byte
	usedRing   []byte

	next     []uint16 // of each descriptor, the one behind it in its chain or in the free list
	chains   []chain  // by head
	freeHead uint16
	free     int // descriptors
	held     int // chains that the device has

	added     uint16 // available index, with chains that are not published yet
	published uint16
	taken     uint16 // used index up to which completions were returned
	err       error  // ErrNonsense: the ring is over

	counters RingCounters
}

// chain is what the ring knows of a chain that the device has. descriptors is 0 if
// it has none of that head.
type chain struct {
	descriptors uint16
	writable    uint32 // bytes that the device may write
}

// RingCounters count since the ring was made.
type RingCounters struct {
	Added     uint64 // chains given to the device
	Completed uint64 // chains that came back
	Published uint64 // times that the device was shown new chains
	Notified  uint64 // times that it wanted to be told
	Nonsense  uint64 // completions that made no sense; the first ends the ring
}

// Sizes of the parts (section 2.7).
const (
	descriptorLen = 16
	usedLen       = 8
	indirectLen   = 20 // descriptors of an indirect table: a GSO frame in pages

	// MinRing and MaxRing bound the number of descriptors, a power of two. A queue
	// of one has no room for words where its event would be.
	MinRing = 2
	MaxRing = 32768

	// MaxSegments is the most that Add takes.
	MaxSegments = indirectLen
)

// Flags.
const (
	descriptorNext     = 1
	descriptorWrite    = 2
	descriptorIndirect = 4

	noInterrupt = 1 // of the available ring
	noNotify    = 1 // of the used ring
)

var le = binary.LittleEndian

// Places of the parts in the memory of a ring of size descriptors. Behind each
// ring is its event word.
func availAt(size int) int       { return size * descriptorLen }
func usedAt(size int) int        { return availAt(size) + 4 + 2*size + 4 }
func ringBytes(size int) int     { return usedAt(size) + 4 + usedLen*size + 4 }
func indirectBytes(size int) int { return size * indirectLen * descriptorLen }

// RingAlign is what the device address of a ring is a multiple of.
const RingAlign = 16

// newRing makes a ring of size descriptors in memory of ringBytes(size) zeros.
// indirect is empty or of indirectBytes(size).
func newRing(size int, memory []byte, indirect driver.Buffer, eventIndex bool) *Ring {
	avail, used := availAt(size), usedAt(size)
	r := &Ring{
		size: size, memory: memory, indirect: indirect.Bytes, indirectAt: indirect.Address, eventIndex: eventIndex,
		availIndex: word(memory, avail), usedEvent: word(memory, avail+4+2*size), availRing: memory[avail+4:][:2*size],
		usedIndex: word(memory, used), availEvent: word(memory, used+4+usedLen*size), usedRing: memory[used+4:][:usedLen*size],
		next: make([]uint16, size), chains: make([]chain, size), free: size,
	}
	for i := range r.next {
		r.next[i] = uint16(i + 1) // the last is never followed: free counts
	}
	return r
}

// Size is how many descriptors there are: heads are below it.
func (r *Ring) Size() int { return r.size }

// Held is how many chains the device has.
func (r *Ring) Held() int { return r.held }

// Counters are those of the ring.
func (r *Ring) Counters() RingCounters { return r.counters }

// Fits reports whether there is room for a chain of n segments.
func (r *Ring) Fits(n int) bool {
	return r.err == nil && n <= MaxSegments && (n <= r.free || r.indirect != nil && r.free > 0)
}

// Add makes a chain of what the device reads and then what it writes, one segment
// at least. There is room: see Fits. The device learns of it by Publish. The memory
// is the device's until the chain comes back.
func (r *Ring) Add(out, in []driver.Segment) (head uint16) {
	n := len(out) + len(in)
	if n == 0 || !r.Fits(n) {
		panic(fmt.Sprintf("virtio: chain of %d segments, room for %d", n, r.free))
	}
	head = r.freeHead
	c := &r.chains[head]
	if n > 1 && r.indirect != nil {
		table := int(head) * indirectLen * descriptorLen
		c.writable = r.fill(r.indirect[table:], out, in, nil)
		r.put(r.memory[int(head)*descriptorLen:], driver.Segment{Address: r.indirectAt + uint64(table), Size: n * descriptorLen}, descriptorIndirect, 0)
		c.descriptors = 1
		r.freeHead = r.next[head]
	} else {
		c.writable = r.fill(r.memory, out, in, r.next)
		c.descriptors = uint16(n)
	}
	r.free -= int(c.descriptors)
	r.held++
	le.PutUint16(r.availRing[2*(int(r.added)&(r.size-1)):], head)
	r.added++
	r.counters.Added++
	return head
}

// fill writes descriptors into a table: one behind the other or, if next is given,
// from the free list. It returns how many bytes can be written.
func (r *Ring) fill(table []byte, out, in []driver.Segment, next []uint16) (writable uint32) {
	at, left := uint16(0), len(out)+len(in)
	if next != nil {
		at = r.freeHead
	}
	step := func(s driver.Segment, flags uint16) {
		left--
		following := at + 1
		if next != nil {
			following = next[at]
		}
		if left > 0 {
			flags |= descriptorNext
		}
		r.put(table[int(at)*descriptorLen:], s, flags, following)
		at = following
	}
	for _, s := range out {
		step(s, 0)
	}
	for _, s := range in {
		step(s, descriptorWrite)
		writable += uint32(s.Size)
	}
	if next != nil {
		r.freeHead = at
	}
	return writable
}

func (r *Ring) put(b []byte, s driver.Segment, flags, next uint16) {
	le.PutUint64(b, s.Address)
	le.PutUint32(b[8:], uint32(s.Size))
	le.PutUint16(b[12:], flags)
	le.PutUint16(b[14:], next)
}

// Publish shows the device the chains that were added, and reports whether it
// wants to be notified of them (sections 2.7.13.3 and 2.7.10.1).
func (r *Ring) Publish() (notify bool) {
	from, to := r.published, r.added
	if from == to {
		return false
	}
	r.published = to
	r.counters.Published++
	r.availIndex.Swap(r.availIndex.Load()&0xffff | uint32(to)<<16)
	if r.eventIndex {
		event := uint16(r.availEvent.Load())
		notify = to-event-1 < to-from
	} else {
		notify = r.usedIndex.Load()&noNotify == 0
	}
	if notify {
		r.counters.Notified++
	}
	return notify
}

// Ready reports whether Take has something to return.
func (r *Ring) Ready() bool { return r.err != nil || uint16(r.usedIndex.Load()>>16) != r.taken }

// Take returns a chain that the device is done with: its head, and how many bytes
// the device has written from the front of what it may write. ok is false if there
// is none. After an error, which is ErrNonsense, there will be none.
func (r *Ring) Take() (head uint16, written uint32, ok bool, err error) {
	if r.err != nil {
		return 0, 0, false, r.err
	}
	waiting := uint16(r.usedIndex.Load()>>16) - r.taken
	if waiting == 0 {
		return 0, 0, false, nil
	}
	if int(waiting) > r.held {
		return 0, 0, false, r.nonsense("%d completions of %d chains", waiting, r.held)
	}
	// The element is read once: the device may change it still.
	e := r.usedRing[usedLen*(int(r.taken)&(r.size-1)):]
	id, written := le.Uint32(e), le.Uint32(e[4:])
	if id >= uint32(r.size) {
		return 0, 0, false, r.nonsense("chain %d of %d", id, r.size)
	}
	c := &r.chains[id]
	switch {
	case c.descriptors == 0:
		return 0, 0, false, r.nonsense("chain %d, which it does not have", id)
	case written > c.writable:
		return 0, 0, false, r.nonsense("chain %d, with %d bytes in room for %d", id, written, c.writable)
	}
	r.taken++
	r.release(uint16(id), c)
	return uint16(id), written, true, nil
}

// release puts the descriptors of a chain into the free list.
func (r *Ring) release(head uint16, c *chain) {
	last := head
	for range c.descriptors - 1 {
		last = r.next[last]
	}
	r.next[last] = r.freeHead
	r.freeHead = head
	r.free += int(c.descriptors)
	r.held--
	c.descriptors = 0
	r.counters.Completed++
}

func (r *Ring) nonsense(format string, args ...any) error {
	r.counters.Nonsense++
	r.err = fmt.Errorf("%w: %s", ErrNonsense, fmt.Sprintf(format, args...))
	return r.err
}

// Arm asks for an interrupt when n more chains have come back, and reports whether
// they have already: then none may come.
func (r *Ring) Arm(n int) (already bool) {
	n = max(1, min(n, r.held))
	if r.eventIndex {
		r.usedEvent.Swap(uint32(r.taken + uint16(n) - 1))
	} else {
		r.availIndex.Swap(r.availIndex.Load() &^ noInterrupt)
	}
	return r.err != nil || uint16(r.usedIndex.Load()>>16)-r.taken >= uint16(n)
}

// Disarm says that interrupts are of no use now. Some may still come.
func (r *Ring) Disarm() {
	if r.eventIndex {
		r.usedEvent.Store(uint32(r.taken - 1)) // it has passed already
	} else {
		r.availIndex.Store(r.availIndex.Load() | noInterrupt)
	}
}
