package fault

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/relay"
)

// machine is one direction of one queue. Frames wait in line, ordered by the time at which they are due. When a frame
// that must be reordered is due, it moves from line to aside. It leaves after the last frame that overtakes it.
type machine struct {
	Direction
	medium  link.Medium
	limit   int
	rng     *rand.Rand
	counts  *counters
	dropped atomic.Uint64

	line     relay.FIFO[entry] // frames in the order in which they are due
	aside    []entry           // frames held back to be overtaken, in the order in which they left line
	held     int               // bytes of the buffers of the frames in the fields line and aside
	lastDue  time.Duration
	segments [link.BatchSize]*link.Frame
}

// entry is a frame that the machine holds.
type entry struct {
	frame *link.Frame
	// due is the time, since the creation of the device, at which the frame is due. In aside, it is the time at which
	// the frame stops waiting to be overtaken.
	due   time.Duration
	yield int  // number of frames that may still overtake this frame
	moved bool // at least one frame has overtaken this frame
}

func newMachine(d Direction, m link.Medium, limit int, source rand.Source, counts *counters) *machine {
	if d.ReorderDistance <= 0 {
		d.ReorderDistance = 3
	}
	if d.ReorderTime <= 0 {
		d.ReorderTime = 10 * time.Millisecond
	}
	return &machine{Direction: d, medium: m, limit: limit, rng: rand.New(source), counts: counts}
}

// fate is the random decision about a frame. The same number of random values is drawn for every
// frame, so changing one rate does not change which frames the other rates select.
type fate struct {
	lose, double, corrupt, reorder bool
	distance                       int
	jitter                         time.Duration
	bit                            uint32
}

// throw draws the fate of one frame.
func (m *machine) throw() (f fate) {
	f.lose = m.rng.Float64() < m.Loss
	f.double = m.rng.Float64() < m.Duplicate
	f.corrupt = m.rng.Float64() < m.Corrupt
	f.reorder = m.rng.Float64() < m.Reorder
	f.distance = 1 + int(m.rng.Float64()*float64(m.ReorderDistance))
	f.jitter = time.Duration(m.rng.Float64() * float64(m.Jitter))
	f.bit = m.rng.Uint32()
	return f
}

// Room implements relay.Machine.
func (m *machine) Room() int {
	if m.held >= m.limit {
		return 0
	}
	return link.BatchSize
}

// Push implements relay.Machine.
func (m *machine) Push(now time.Duration, f *link.Frame) {
	fate := m.throw()
	m.counts.frames.Add(1)
	if fate.lose {
		m.counts.lost.Add(1)
		m.dropped.Add(1)
		f.Free()
		return
	}
	var double *link.Frame
	if fate.double {
		m.counts.duplicated.Add(1)
		double = clone(f)
	}
	if fate.corrupt {
		m.counts.corrupted.Add(1)
		f = m.corrupt(f, fate.bit)
	}
	e := entry{frame: f, due: max(now+m.Delay+fate.jitter, m.lastDue)}
	if fate.reorder {
		e.yield = fate.distance
	}
	m.push(e)
	if double != nil {
		m.push(entry{frame: double, due: e.due})
	}
}

func (m *machine) push(e entry) {
	m.held += e.frame.Cap()
	m.lastDue = e.due
	m.line.Push(e)
}

// corrupt flips a bit of f, or of one of its segments if f is a GSO frame. It pushes all segments
// except the last, which it returns.
func (m *machine) corrupt(f *link.Frame, bit uint32) *link.Frame {
	victim := int(bit) % f.Segments()
	for f.GSO != link.GSONone {
		n, ok := link.Segment(m.medium, f, m.segments[:])
		if !ok { // the device will reject the frame
			return f
		}
		for _, s := range m.segments[:n] {
			if victim == 0 {
				m.flip(s, bit)
			}
			victim--
			m.push(entry{frame: s, due: m.lastDue})
		}
	}
	f.FinishChecksum()
	if victim == 0 {
		m.flip(f, bit)
	}
	return f
}

// flip flips one bit of f after its link-layer header.
func (m *machine) flip(f *link.Frame, bit uint32) {
	b := f.Bytes()
	if h := m.medium.HeaderLen(); len(b) > h {
		b = b[h:]
	}
	at := bit % uint32(8*len(b))
	b[at/8] ^= 1 << (at % 8)
	f.ChecksumValid = false
}

func clone(f *link.Frame) *link.Frame {
	c := link.NewFrame(f.Len())
	copy(c.Bytes(), f.Bytes())
	c.Offload = f.Offload
	return c
}

// Pop implements relay.Machine.
func (m *machine) Pop(now time.Duration, fs []*link.Frame) (n int) {
	for n < len(fs) {
		if i := m.released(now); i >= 0 {
			e := m.aside[i]
			m.aside = append(m.aside[:i], m.aside[i+1:]...)
			if e.moved {
				m.counts.reordered.Add(1)
			}
			fs[n] = m.release(e)
			n++
			continue
		}
		if m.line.Len() == 0 || m.line.Front().due > now {
			break
		}
		e := m.line.Pop()
		if e.yield > 0 {
			e.due += m.ReorderTime
			m.aside = append(m.aside, e)
			continue
		}
		for i := range m.aside {
			m.aside[i].yield--
			m.aside[i].moved = true
		}
		fs[n] = m.release(e)
		n++
	}
	return n
}

// released returns the index in aside of a frame that has been overtaken or has waited long enough,
// or -1 if there is none.
func (m *machine) released(now time.Duration) int {
	for i, e := range m.aside {
		if e.yield <= 0 || e.due <= now {
			return i
		}
	}
	return -1
}

func (m *machine) release(e entry) *link.Frame {
	m.held -= e.frame.Cap()
	return e.frame
}

// Next implements relay.Machine.
func (m *machine) Next() (at time.Duration, ok bool) {
	if m.line.Len() > 0 {
		at, ok = m.line.Front().due, true
	}
	for _, e := range m.aside {
		if !ok || e.due < at {
			at, ok = e.due, true
		}
	}
	return at, ok
}

// Discard implements relay.Machine.
func (m *machine) Discard() {
	for m.line.Len() > 0 {
		m.line.Pop().frame.Free()
	}
	for _, e := range m.aside {
		e.frame.Free()
	}
	m.aside, m.held = nil, 0
}

// Dropped implements relay.Machine.
func (m *machine) Dropped() uint64 { return m.dropped.Load() }
