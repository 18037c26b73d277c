package fault

import (
	"math/rand/v2"
	"slices"
	"time"

	"loam/block"
)

// machine decides what happens to requests, and when. It is pure but for sending back
// what is drained.
type machine struct {
	Config
	sector    int // in bytes
	rng       *rand.Rand
	used      []int // of each rule, how often it matched
	held      []entry
	reordered uint64
}

// entry is a request that has not begun.
type entry struct {
	request *block.Request
	queue   int
	err     error // it fails with this; nil: it does not
	sectors int   // it is torn after as many; 0: it is not
	due     time.Time
	yield   int // later requests that may still overtake it
	release time.Time
	moved   bool // one has
}

func newMachine(c Config, sector int) *machine {
	if c.ReorderDistance <= 0 {
		c.ReorderDistance = 4
	}
	if c.ReorderTime <= 0 {
		c.ReorderTime = 10 * time.Millisecond
	}
	return &machine{Config: c, sector: sector, rng: rand.New(rand.NewPCG(c.Seed, 0)), used: make([]int, len(c.Rules))}
}

// push takes a request. The dice are thrown in the same number for each, so that one
// rate does not change what the others hit.
func (m *machine) push(now time.Time, r *block.Request, queue int) {
	fails, torn, reorders := m.rng.Float64() < m.Fail[r.Op], m.rng.Float64() < m.Tear, m.rng.Float64() < m.Reorder
	distance, part, jitter := m.rng.Float64(), m.rng.Float64(), m.rng.Float64()
	e := entry{request: r, queue: queue, due: now.Add(m.Delay + time.Duration(jitter*float64(m.Jitter)))}
	e.err = m.rule(r)
	if fails && e.err == nil {
		e.err = block.ErrIO
	}
	if n := int(r.Bytes()) / m.sector; torn && r.Op == block.Write && n > 1 {
		e.sectors = 1 + int(part*float64(n-1))
	}
	if reorders && r.Op != block.Flush {
		e.yield, e.release = 1+int(distance*float64(m.ReorderDistance)), e.due.Add(m.ReorderTime)
	}
	m.held = append(m.held, e)
}

// rule returns the error of the first rule that fails the request.
func (m *machine) rule(r *block.Request) (err error) {
	for i := range m.Rules {
		u := &m.Rules[i]
		if !u.matches(r) {
			continue
		}
		m.used[i]++
		if n := m.used[i] - u.Skip; err == nil && n > 0 && (u.Times == 0 || n <= u.Times) {
			if err = u.Err; err == nil {
				err = block.ErrIO
			}
		}
	}
	return err
}

// pop returns a request that is due: the first that has nobody to yield to. A flush
// begins behind all that were submitted before it, and before all others.
func (m *machine) pop(now time.Time) (e entry, ok bool) {
	for i, e := range m.held {
		if e.request.Op == block.Flush && i > 0 {
			return m.beforeFlush(now, i)
		}
		if !e.due.After(now) && (e.yield <= 0 || !now.Before(e.release)) {
			return m.take(i), true
		}
	}
	return entry{}, false
}

// beforeFlush returns the first request that is due, of the n in front of a flush: none
// of them yields any more.
func (m *machine) beforeFlush(now time.Time, n int) (entry, bool) {
	for i := range n {
		m.held[i].yield = 0
		if !m.held[i].due.After(now) {
			return m.take(i), true
		}
	}
	return entry{}, false
}

// take removes a request, which overtakes those in front of it.
func (m *machine) take(i int) entry {
	e := m.held[i]
	for k := range m.held[:i] {
		m.held[k].yield--
		m.held[k].moved = true
	}
	m.held = slices.Delete(m.held, i, i+1)
	if e.moved {
		m.reordered++
	}
	return e
}

// wait returns how long it is until a request is due.
func (m *machine) wait(now time.Time) time.Duration {
	wait := time.Hour
	for _, e := range m.held {
		at := e.due
		if e.yield > 0 {
			at = e.release
		}
		wait = min(wait, at.Sub(now))
	}
	return wait
}

// drain sends all requests back.
func (m *machine) drain(err error) {
	for _, e := range m.held {
		e.request.Complete(err)
	}
	m.held = nil
}
