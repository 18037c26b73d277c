package shape

import (
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/relay"
)

// machine is one direction of one queue.
type machine struct {
	rate  uint64
	burst time.Duration // how far ahead of its time a frame may leave
	limit int           // bytes in line

	line    relay.FIFO[entry]
	bytes   int           // in line
	busy    time.Duration // until when the link is busy with what has left
	rest    uint64        // of the last division by rate, so that nothing is rounded away
	dropped atomic.Uint64
}

// entry is a frame in line.
type entry struct {
	frame   *link.Frame
	bytes   int
	arrived time.Duration
}

// Bytes.
const (
	defaultBurst = 64 << 10
	maxBurst     = 1 << 30
)

func newMachine(l Limit) *machine {
	if l.Burst <= 0 {
		l.Burst = defaultBurst
	}
	if l.QueueTime <= 0 {
		l.QueueTime = 100 * time.Millisecond
	}
	if l.Queue <= 0 {
		l.Queue = int(float64(l.Rate) / 8 * l.QueueTime.Seconds())
	}
	m := &machine{rate: uint64(l.Rate), limit: l.Queue}
	m.burst, _ = m.cost(min(l.Burst, maxBurst), 0)
	return m
}

// cost is how long the link takes for n bytes, and what is left of the division.
// n is at most maxBurst, so that it fits.
func (m *machine) cost(n int, rest uint64) (time.Duration, uint64) {
	v := uint64(n)*8*uint64(time.Second) + rest
	return time.Duration(v / m.rate), v % m.rate
}

// Room implements relay.Machine. There is always room: what is too much is
// dropped.
func (m *machine) Room() int { return link.BatchSize }

// Push implements relay.Machine.
func (m *machine) Push(now time.Duration, f *link.Frame) {
	n := f.WireLen()
	if m.line.Len() > 0 && m.bytes+n > m.limit {
		m.dropped.Add(1)
		f.Free()
		return
	}
	m.bytes += n
	m.line.Push(entry{frame: f, bytes: n, arrived: now})
}

// Pop implements relay.Machine.
func (m *machine) Pop(now time.Duration, fs []*link.Frame) (n int) {
	for n < len(fs) {
		at, ok := m.Next()
		if !ok || at > now {
			break
		}
		e := m.line.Pop()
		m.bytes -= e.bytes
		cost, rest := m.cost(e.bytes, m.rest)
		m.busy, m.rest = max(m.busy, e.arrived)+cost, rest
		fs[n] = e.frame
		n++
	}
	return n
}

// Next implements relay.Machine. The bucket must hold the tokens for the whole
// frame; a frame larger than the bucket leaves when that is full.
func (m *machine) Next() (at time.Duration, ok bool) {
	if m.line.Len() == 0 {
		return 0, false
	}
	e := m.line.Front()
	cost, _ := m.cost(e.bytes, 0)
	return max(e.arrived, m.busy-max(0, m.burst-cost)), true
}

// Discard implements relay.Machine.
func (m *machine) Discard() {
	for m.line.Len() > 0 {
		m.line.Pop().frame.Free()
	}
	m.bytes = 0
}

// Dropped implements relay.Machine.
func (m *machine) Dropped() uint64 { return m.dropped.Load() }
