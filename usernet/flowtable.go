package usernet

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// A flowTable limits UDP flows in number and idle time. UDP does not mark the end of a
// conversation. So a flow ends when it has been idle for some time, or when a new flow
// needs its place and it has been idle longest.
//
// A datagram does not access the table; it only stores the time in the flow (flow.used).
// The table keeps the flows in the order of its last inspection, and inspects the oldest
// when it is due. A flow that has not been used since is ended; any other moves to the
// back. A flow therefore ends between one and two idle times after its last datagram.
//
// Times are relative to an epoch chosen by the caller.
type flowTable struct {
	limit int
	idle  time.Duration

	mu     sync.Mutex // guards the fields below
	flows  map[flowKey]*list.Element
	order  list.List // of *flow, the flow whose last inspection is longest ago first
	closed bool
}

// flowKey identifies a flow: the address that began it, and its destination.
type flowKey struct{ from, to netip.AddrPort }

func newFlowTable(limit int, idle time.Duration) *flowTable {
	return &flowTable{limit: limit, idle: idle, flows: make(map[flowKey]*list.Element)}
}

// get returns the flow with key k, or nil.
func (t *flowTable) get(k flowKey) *flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.flows[k]; e != nil {
		return e.Value.(*flow)
	}
	return nil
}

// add inserts a flow used at time now. It may remove another flow, which the caller must
// close: the flow with the same key or, if the table is full, the flow that was idle
// longest. It returns false if the table is closed.
func (t *flowTable) add(now time.Duration, f *flow) (evicted *flow, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, false
	}
	if e := t.flows[f.key]; e != nil {
		evicted = t.take(e)
	} else if len(t.flows) >= t.limit {
		evicted = t.take(t.idlest(now))
	}
	f.used.Store(int64(now))
	f.seen = now
	t.flows[f.key] = t.order.PushBack(f)
	return evicted, true
}

// idlest returns the flow to evict: the first one in order that has not been used since
// its last inspection, or the first if all have been used. A flow is skipped only if it
// was used since it was last skipped, so the cost is bounded by the number of datagrams.
func (t *flowTable) idlest(now time.Duration) *list.Element {
	for range len(t.flows) {
		e := t.order.Front()
		f := e.Value.(*flow)
		if time.Duration(f.used.Load()) <= f.seen {
			return e
		}
		f.seen = now
		t.order.MoveToBack(e)
	}
	return t.order.Front()
}

// take removes an element and returns its flow.
func (t *flowTable) take(e *list.Element) *flow {
	f := t.order.Remove(e).(*flow)
	delete(t.flows, f.key)
	return f
}

// remove removes a flow that has ended by itself, if it is still in the table.
func (t *flowTable) remove(f *flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.flows[f.key]; e != nil && e.Value.(*flow) == f {
		t.take(e)
	}
}

// expire removes the flows that have been idle too long. The caller must close them.
func (t *flowTable) expire(now time.Duration) (expired []*flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range len(t.flows) {
		e := t.order.Front()
		f := e.Value.(*flow)
		if now-f.seen < t.idle {
			break
		}
		if time.Duration(f.used.Load()) <= f.seen {
			expired = append(expired, t.take(e))
			continue
		}
		f.seen = now
		t.order.MoveToBack(e)
	}
	return expired
}

// len returns the number of flows.
func (t *flowTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flows)
}

// close removes all flows, which the caller must close, and rejects new ones.
func (t *flowTable) close() (all []*flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for t.order.Len() > 0 {
		all = append(all, t.take(t.order.Front()))
	}
	return all
}
