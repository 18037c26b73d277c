package fault

import (
	"math/rand/v2"
	"slices"
	"time"

	"loam/block"
)

// machine decides which faults requests get, and when they are executed. It is pure, except that drain returns requests to
// their users.
type machine struct {
	Config
	sector    int // sector size in bytes
	rng       *rand.Rand
	used      []int // for each rule, the number of requests that matched it
	held      []entry
	reordered uint64
}

// entry is a request that has not been started.
type entry struct {
	request *block.Request
	queue   int
	err     error // the error to return; nil: the request succeeds
	sectors int   // the write is torn after this number of sectors; 0: it is not torn
	due     time.Time
	yield   int // number of later requests that may still overtake this one
	release time.Time
	moved   bool // at least one later request has overtaken this one
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

// push queues a request. It always draws the same number of random numbers, so that changing one
// rate does not change which requests the other rates hit.
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

// pop returns the first request that is due and does not wait to be overtaken. A flush starts after
// all requests that were submitted before it, and before all later ones.
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

// beforeFlush returns the first request that is due among the n requests before a flush. A flush ends the reordering of
// requests: none of them is held back any longer to let later ones pass.
func (m *machine) beforeFlush(now time.Time, n int) (entry, bool) {
	for i := range n {
		m.held[i].yield = 0
		if !m.held[i].due.After(now) {
			return m.take(i), true
		}
	}
	return entry{}, false
}

// take removes a request, and counts it as overtaking the requests before it.
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

// wait returns the time until a request is due.
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

// drain returns all requests to their users.
func (m *machine) drain(err error) {
	for _, e := range m.held {
		e.request.Complete(err)
	}
	m.held = nil
}
