package virtio

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"loam/driver"
)

// Ring is the driver's side of a split virtqueue (virtio 1.2 section 2.7), in memory that driver and device share. It
// uses no goroutines, clocks or registers.
//
//	descriptor table   written by the driver: addresses of memory
//	available ring     written by the driver: chains of descriptors for the device
//	used ring          written by the device: chains that it has completed
//
// A chain is identified by its head, the index of its first descriptor. The driver keeps the state of a chain in memory
// of its own. It never reads the state from the descriptor table, which a device could overwrite. So whatever the
// device writes, no index is out of range, and Take returns only chains that the device has.
//
// Driver and device read each other's index while it may change. Each index is in an aligned 32-bit word with a flags
// field that the same side writes. The word is read and written atomically, so a reader that sees an index also sees
// all earlier writes. In some cases a store to the driver's word must precede a load of the device's word (section
// 2.7.13.4.1). The store is then an atomic swap: under the race detector, an atomic store to memory outside of Go's
// heap is an ordinary store, and the load could be executed before it.
type Ring struct {
	size       int
	memory     []byte
	indirect   []byte // for each head, an indirect table with room for a chain of the largest size; nil: indirect tables are not used
	most       int    // maximum number of segments in a chain
	indirectAt uint64 // device address of indirect
	eventIndex bool

	availIndex *atomic.Uint32 // flags in the lower half, index in the upper half
	usedEvent  *atomic.Uint32 // the device interrupts when the used index passes this value
	usedIndex  *atomic.Uint32 // flags in the lower half, index in the upper half
	availEvent *atomic.Uint32 // the driver notifies when the available index passes this value
	availRing  []byte
	usedRing   []byte

	next     []uint16 // for each descriptor, the next one in its chain or in the free list
	chains   []chain  // state of each chain, by its head
	freeHead uint16
	free     int // number of free descriptors
	held     int // number of chains that the device has and has not completed

	added     uint16 // available index after the last added chain, published or not
	published uint16
	taken     uint16 // used index after the last completion that Take has returned
	err       error  // ErrNonsense: the ring is disabled

	counters RingCounters
}

// chain is the state of a chain that the device has. If descriptors is 0, the device has no chain with that head.
type chain struct {
	descriptors uint16
	writable    uint32 // number of bytes that the device may write
}

// RingCounters counts events since the ring was created.
type RingCounters struct {
	Added     uint64 // chains passed to the device
	Completed uint64 // chains that the device has completed
	Published uint64 // times that new chains were published
	Notified  uint64 // times that new chains were published and the device had requested a notification
	Nonsense  uint64 // invalid completions; the first one disables the ring
}

// Sizes of the parts of a ring in bytes (virtio 1.2 section 2.7).
const (
	descriptorLen = 16
	usedLen       = 8
	indirectLen   = 20 // default size of an indirect table, in segments: enough for a GSO frame in one segment for each page

	// MinRing and MaxRing are the minimum and maximum number of descriptors of a ring, which is a power of two. In a
	// ring with one descriptor, the event words would not fit.
	MinRing = 2
	MaxRing = 32768

	// MaxSegments is the maximum number of segments in a call of Add, unless QueueSpec.Segments is larger.
	MaxSegments = indirectLen
)

// Flags of a descriptor, and of the two rings that driver and device use to notify each other.
const (
	descriptorNext     = 1
	descriptorWrite    = 2
	descriptorIndirect = 4

	noInterrupt = 1 // flag of the available ring: the driver needs no interrupts
	noNotify    = 1 // flag of the used ring: the device needs no notifications
)

var le = binary.LittleEndian

// These functions return the offsets, in bytes, of the parts of a ring with the given
// number of descriptors. The available ring and the used ring are each followed by an
// event word.
func availAt(size int) int             { return size * descriptorLen }
func usedAt(size int) int              { return availAt(size) + 4 + 2*size + 4 }
func ringBytes(size int) int           { return usedAt(size) + 4 + usedLen*size + 4 }
func indirectBytes(size, most int) int { return size * most * descriptorLen }

// RingAlign is the alignment of a ring's device address.
const RingAlign = 16

// newRing creates a ring; the parameter size is the number of its descriptors. The memory
// is zeroed and has ringBytes(size) bytes. The buffer indirect is empty, or has
// indirectBytes(size, most) bytes. The parameter most is the maximum number of segments
// of a chain.
func newRing(size, most int, memory []byte, indirect driver.Buffer, eventIndex bool) *Ring {
	avail, used := availAt(size), usedAt(size)
	r := &Ring{
		size: size, memory: memory, indirect: indirect.Bytes, indirectAt: indirect.Address, most: most, eventIndex: eventIndex,
		availIndex: word(memory, avail), usedEvent: word(memory, avail+4+2*size), availRing: memory[avail+4:][:2*size],
		usedIndex: word(memory, used), availEvent: word(memory, used+4+usedLen*size), usedRing: memory[used+4:][:usedLen*size],
		next: make([]uint16, size), chains: make([]chain, size), free: size,
	}
	for i := range r.next {
		r.next[i] = uint16(i + 1) // the last link is never followed, because free counts the free descriptors
	}
	return r
}

// Size returns the number of descriptors. Every head is less than Size.
func (r *Ring) Size() int { return r.size }

// Held returns the number of chains that the device has and has not completed.
func (r *Ring) Held() int { return r.held }

// Counters returns the counters of the ring.
func (r *Ring) Counters() RingCounters { return r.counters }

// Fits reports whether Add has room for a chain of n segments.
func (r *Ring) Fits(n int) bool {
	return r.err == nil && n <= r.most && (n <= r.free || r.indirect != nil && r.free > 0)
}

// Add adds a chain. The first list (out) contains the segments that the device reads, the
// second list (in) those that it writes. Together they must have at least one segment.
// Add panics if there is no room: see Fits. The device sees the chain after Publish. The
// memory belongs to the device until the chain is completed.
func (r *Ring) Add(out, in []driver.Segment) (head uint16) {
	n := len(out) + len(in)
	if n == 0 || !r.Fits(n) {
		panic(fmt.Sprintf("virtio: chain of %d segments, room for %d", n, r.free))
	}
	head = r.freeHead
	c := &r.chains[head]
	if n > 1 && r.indirect != nil {
		table := int(head) * r.most * descriptorLen
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

// fill writes descriptors into a table. If the list next is nil it uses consecutive
// descriptors, otherwise descriptors from the free list. It returns the number of bytes
// that the device may write.
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

// put writes one descriptor.
func (r *Ring) put(b []byte, s driver.Segment, flags, next uint16) {
	le.PutUint64(b, s.Address)
	le.PutUint32(b[8:], uint32(s.Size))
	le.PutUint16(b[12:], flags)
	le.PutUint16(b[14:], next)
}

// Publish makes the added chains visible to the device. It reports whether the device has requested to be notified of
// them (virtio 1.2 sections 2.7.13.3 and 2.7.10.1).
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

// Ready reports whether Take would return a chain or an error.
func (r *Ring) Ready() bool { return r.err != nil || uint16(r.usedIndex.Load()>>16) != r.taken }

// Take returns a chain that the device has completed: its head, and the number of bytes that the device has written,
// from the start of the writable segments. ok is false if there is no such chain. If a completion is invalid, Take
// returns ErrNonsense, and so does every later call.
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
	// Read the element only once, since the device may change it at any time.
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

// release adds the descriptors of a chain to the free list.
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

// nonsense disables the ring and returns the error that describes the invalid completion.
func (r *Ring) nonsense(format string, args ...any) error {
	r.counters.Nonsense++
	r.err = fmt.Errorf("%w: %s", ErrNonsense, fmt.Sprintf(format, args...))
	return r.err
}

// Arm requests an interrupt after n more completions. It reports whether that many have already occurred; in this case
// the interrupt may not be raised.
func (r *Ring) Arm(n int) (already bool) {
	n = max(1, min(n, r.held))
	if r.eventIndex {
		r.usedEvent.Swap(uint32(r.taken + uint16(n) - 1))
	} else {
		r.availIndex.Swap(r.availIndex.Load() &^ noInterrupt)
	}
	return r.err != nil || uint16(r.usedIndex.Load()>>16)-r.taken >= uint16(n)
}

// Disarm asks the device not to interrupt. Some interrupts may still be raised.
func (r *Ring) Disarm() {
	if r.eventIndex {
		r.usedEvent.Store(uint32(r.taken - 1)) // the used index has already passed this value
	} else {
		r.availIndex.Store(r.availIndex.Load() | noInterrupt)
	}
}
