package shape

import (
	"sync/atomic"
	"time"

	"loam/link"
	"loam/link/relay"
)

// machine limits the rate of one direction of one queue (relay.Machine).
type machine struct {
	rate  uint64
	burst time.Duration // time by which a frame may leave earlier than the rate allows
	limit int           // maximum number of bytes in the queue line

	line    relay.FIFO[entry]
	bytes   int           // number of bytes in the queue line
	busy    time.Duration // time at which the link has finished transmitting the frames that have left
	rest    uint64        // remainder of the last division by rate, so that rounding loses nothing
	dropped atomic.Uint64
}

// entry is a frame in the queue.
type entry struct {
	frame   *link.Frame
	bytes   int
	arrived time.Duration
}

// Values of Limit.Burst in bytes: the default, and the largest that is used.
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

// cost returns how long the link takes for n bytes, and the remainder of the division by the rate.
// rest is the previous remainder. n is at most maxBurst, so that the product fits into 64 bits.
func (m *machine) cost(n int, rest uint64) (time.Duration, uint64) {
	v := uint64(n)*8*uint64(time.Second) + rest
	return time.Duration(v / m.rate), v % m.rate
}

// Room implements relay.Machine. There is always room: Push drops frames that do not fit.
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

// Next implements relay.Machine. A frame leaves when the bucket holds the tokens for the whole
// frame, or is full if the frame is larger than the bucket.
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
