package virtio

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"loam/driver"
)

// peer is the device's side of a ring. It accesses the ring's memory by the offsets of virtio 1.2 section 2.7, and
// not by the code under test.
type peer struct {
	r          *Ring
	size       int
	taken      uint16
	used       uint16
	eventIndex bool
}

func newPair(size int, eventIndex, indirect bool) (*Ring, *peer) {
	var tables driver.Buffer
	if indirect {
		tables = driver.Buffer{Bytes: make([]byte, indirectBytes(size, indirectLen)), Address: 1 << 20}
	}
	r := newRing(size, MaxSegments, make([]byte, ringBytes(size)), tables, eventIndex)
	return r, &peer{r: r, size: size, eventIndex: eventIndex}
}

// take returns the head and the segments of the next chain; ok is false if there is none.
func (p *peer) take() (head uint16, out, in []driver.Segment, ok bool) {
	avail := p.r.memory[16*p.size:]
	if le.Uint16(avail[2:]) == p.taken {
		return 0, nil, nil, false
	}
	head = le.Uint16(avail[4+2*(int(p.taken)%p.size):])
	p.taken++
	table, at := p.r.memory, head
	if d := p.r.memory[16*int(head):]; le.Uint16(d[12:])&descriptorIndirect != 0 {
		table, at = p.r.indirect[le.Uint64(d)-p.r.indirectAt:][:le.Uint32(d[8:])], 0
	}
	for {
		d := table[16*int(at):]
		s := driver.Segment{Address: le.Uint64(d), Size: int(le.Uint32(d[8:]))}
		if flags := le.Uint16(d[12:]); flags&descriptorWrite != 0 {
			in = append(in, s)
		} else {
			out = append(out, s)
		}
		if le.Uint16(d[12:])&descriptorNext == 0 {
			return head, out, in, true
		}
		at = le.Uint16(d[14:])
	}
}

// put completes a chain.
func (p *peer) put(id, written uint32) {
	used := p.r.memory[usedAt(p.size):]
	e := used[4+8*(int(p.used)%p.size):]
	le.PutUint32(e, id)
	le.PutUint32(e[4:], written)
	p.jump(1)
}

// jump advances the used index.
func (p *peer) jump(n int) {
	p.used += uint16(n)
	le.PutUint16(p.r.memory[usedAt(p.size)+2:], p.used)
}

// wantsInterrupt reports whether a device would interrupt after it has advanced the index by n.
func (p *peer) wantsInterrupt(n int) bool {
	avail := p.r.memory[16*p.size:]
	if !p.eventIndex {
		return le.Uint16(avail)&1 == 0
	}
	event := le.Uint16(avail[4+2*p.size:])
	return p.used-event-1 < uint16(n)
}

func segments(n int, from uint64) (s []driver.Segment) {
	for i := range n {
		s = append(s, driver.Segment{Address: from + uint64(i)<<12, Size: 100 + i})
	}
	return s
}

// Chains of every shape reach the device as they were added, and are returned in the order in which the device
// completes them.
func TestRing(t *testing.T) {
	for _, eventIndex := range []bool{false, true} {
		for _, indirect := range []bool{false, true} {
			r, p := newPair(8, eventIndex, indirect)
			rng := rand.New(rand.NewPCG(1, 2))
			type flight struct {
				head    uint16
				out     []driver.Segment
				writeIn []driver.Segment
			}
			var there []flight
			for range 100_000 { // long enough for the index to wrap around
				n, m := rng.IntN(4), rng.IntN(4)
				if n+m > 0 && r.Fits(n+m) {
					f := flight{out: segments(n, 1<<30), writeIn: segments(m, 1<<31)}
					f.head = r.Add(f.out, f.writeIn)
					r.Publish()
					head, out, in, ok := p.take()
					if !ok || head != f.head || !slices.Equal(out, f.out) || !slices.Equal(in, f.writeIn) {
						t.Fatalf("the device sees chain %d: %v, %v, %v; want %+v", head, out, in, ok, f)
					}
					there = append(there, f)
					continue
				}
				if len(there) == 0 {
					continue
				}
				i := rng.IntN(len(there))
				f := there[i]
				there = slices.Delete(there, i, i+1)
				written := 0
				for _, s := range f.writeIn {
					written += s.Size
				}
				p.put(uint32(f.head), uint32(written))
				head, got, ok, err := r.Take()
				if head != f.head || int(got) != written || !ok || err != nil {
					t.Fatalf("Take = %d, %d, %v, %v; want %d, %d", head, got, ok, err, f.head, written)
				}
			}
			if r.Held() != len(there) {
				t.Errorf("the device holds %d, want %d", r.Held(), len(there))
			}
		}
	}
}

// An invalid completion disables the ring, and Take returns no chain for it.
func TestRingNonsense(t *testing.T) {
	for name, lie := range map[string]func(p *peer, head uint16){
		"an id out of range":          func(p *peer, head uint16) { p.put(8, 0) },
		"an id far out of range":      func(p *peer, head uint16) { p.put(1<<31, 0) },
		"a chain it does not have":    func(p *peer, head uint16) { p.put(uint32(head+1)%8, 0) },
		"the middle of a chain":       func(p *peer, head uint16) { p.put(uint32(p.r.next[head]), 0) },
		"too many bytes":              func(p *peer, head uint16) { p.put(uint32(head), 202) },
		"far too many bytes":          func(p *peer, head uint16) { p.put(uint32(head), 1<<32-1) },
		"an index that jumps":         func(p *peer, head uint16) { p.jump(2) },
		"an index that goes back":     func(p *peer, head uint16) { p.jump(-1) },
		"the same chain, two times":   func(p *peer, head uint16) { p.put(uint32(head), 0); p.put(uint32(head), 0); p.r.Take() },
		"more than it can ever have":  func(p *peer, head uint16) { p.jump(9) },
		"another that was never made": func(p *peer, head uint16) { p.put(7, 0) },
	} {
		for _, eventIndex := range []bool{false, true} {
			r, p := newPair(8, eventIndex, false)
			head := r.Add(segments(1, 1), segments(2, 2)[:2])
			r.Publish()
			lie(p, head)
			if _, _, ok, err := r.Take(); ok || !errors.Is(err, ErrNonsense) {
				t.Errorf("%s: Take = %v, %v; want ErrNonsense", name, ok, err)
			}
			if _, _, ok, err := r.Take(); ok || !errors.Is(err, ErrNonsense) {
				t.Errorf("%s: later, Take = %v, %v; want ErrNonsense", name, ok, err)
			}
			if r.Fits(1) || !r.Arm(1) || r.Counters().Nonsense != 1 {
				t.Errorf("%s: the ring is still in use", name)
			}
		}
	}
}

// A device that overwrites the descriptor table does not affect the ring's state.
func TestRingScribble(t *testing.T) {
	r, p := newPair(8, true, false)
	head := r.Add(segments(3, 1), nil)
	r.Publish()
	for i := range 8 * descriptorLen {
		r.memory[i] = 0xff
	}
	p.put(uint32(head), 0)
	if _, _, ok, err := r.Take(); !ok || err != nil {
		t.Fatalf("Take: %v, %v", ok, err)
	}
	if !r.Fits(8) {
		t.Error("descriptors are lost")
	}
}

// Notifications and interrupts occur only when they were requested (virtio 1.2 sections 2.7.7 and 2.7.10).
func TestRingEvents(t *testing.T) {
	for _, eventIndex := range []bool{false, true} {
		r, p := newPair(8, eventIndex, false)
		setWanted := func(on bool) {
			switch {
			case eventIndex && on:
				r.availEvent.Store(uint32(r.published))
			case eventIndex:
				r.availEvent.Store(uint32(r.published - 1))
			case on:
				r.usedIndex.Store(r.usedIndex.Load() &^ noNotify)
			default:
				r.usedIndex.Store(r.usedIndex.Load() | noNotify)
			}
		}
		if r.Publish() {
			t.Error("nothing was added, and the device is notified")
		}
		for _, wanted := range []bool{true, false} {
			setWanted(wanted)
			r.Add(segments(1, 1), nil)
			r.Add(segments(1, 1), nil)
			if got := r.Publish(); got != wanted {
				t.Errorf("event index %v: notify = %v, want %v", eventIndex, got, wanted)
			}
		}
		r.usedIndex.Store(0) // clears the flags
		r.Disarm()
		p.put(0, 0)
		if p.wantsInterrupt(1) {
			t.Errorf("event index %v: an interrupt after Disarm", eventIndex)
		}
		r.Take()
		if r.Arm(2) {
			t.Errorf("event index %v: Arm(2) says that two are back", eventIndex)
		}
		p.put(1, 0)
		if eventIndex && p.wantsInterrupt(1) {
			t.Error("an interrupt for the first of two")
		}
		p.put(2, 0)
		if !p.wantsInterrupt(1) {
			t.Errorf("event index %v: no interrupt for the second of two", eventIndex)
		}
		if !r.Arm(2) {
			t.Errorf("event index %v: Arm(2) does not say that two are back", eventIndex)
		}
	}
}

func TestRingAllocs(t *testing.T) {
	r, p := newPair(8, true, true)
	out, in := segments(2, 1), segments(2, 1)
	if n := testing.AllocsPerRun(100, func() {
		head := r.Add(out, in)
		r.Publish()
		p.put(uint32(head), 7)
		r.Take()
		r.Arm(1)
		r.Disarm()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The device writes arbitrary values: Take returns only chains that the device has, and no index is out of range.
func FuzzRing(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 1, 0, 1, 1, 2, 3, 3, 9})
	f.Add([]byte{0x80, 3, 0, 3, 1, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) < 1 {
			return
		}
		r, p := newPair(4, ops[0]&0x40 != 0, ops[0]&0x80 != 0)
		there := map[uint16]bool{}
		for ; len(ops) >= 2; ops = ops[2:] {
			v := uint32(ops[1])
			switch ops[0] % 6 {
			case 0:
				if n := int(v)%3 + 1; r.Fits(n + 1) {
					there[r.Add(segments(n, 1), segments(1, 1))] = true
					r.Publish()
				}
			case 1:
				p.put(v%8, v%128)
			case 2:
				p.jump(int(int8(v)))
			case 3:
				copy(r.memory[int(v)%len(r.memory):], ops) // the device writes to an arbitrary position of the ring's memory
			case 4:
				r.Arm(int(v))
			default:
				head, written, ok, err := r.Take()
				if ok && err != nil {
					t.Fatal("a chain and an error")
				}
				if ok && (!there[head] || written > 100) {
					t.Fatalf("chain %d with %d bytes; there are %v", head, written, there)
				}
				if ok {
					delete(there, head)
				}
			}
		}
		if r.Held() != len(there) {
			t.Fatalf("held are %d, want %d", r.Held(), len(there))
		}
	})
}
