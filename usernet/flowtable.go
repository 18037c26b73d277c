package usernet

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// A flowTable limits the number and the idle time of UDP flows. UDP does not mark the end of a conversation. So a flow
// ends when it has been idle for some time. If the table is full, a new flow replaces the one that has been idle
// longest.
//
// A datagram does not access the table; it only stores the time in its flow (flow.used). The table keeps the flows
// ordered by the time of their last inspection. When the inspection of the first flow is due, the table ends the flow
// if it has not been used since its last inspection; otherwise the flow moves to the end of the order. So a flow ends
// between one and two idle times after its last datagram.
//
// Times are durations since a start that the caller chooses.
type flowTable struct {
	limit int
	idle  time.Duration

	mu     sync.Mutex // guards the fields below
	flows  map[flowKey]*list.Element
	order  list.List // list of *flow; the flow whose last inspection is longest ago is first
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

// add inserts a flow that was used at time now. evicted is a flow that add has removed and that the caller must close,
// or nil: the flow with the same key or, if the table is full, the flow that was idle longest. ok is false if the table
// is closed.
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

// idlest returns the flow to evict: the first flow in order that has not been used since its last inspection, or the
// first of all if every flow has been used. idlest moves each used flow that it passes to the end. So its total cost is
// bounded by the number of datagrams.
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

// take removes a list element and returns its flow.
func (t *flowTable) take(e *list.Element) *flow {
	f := t.order.Remove(e).(*flow)
	delete(t.flows, f.key)
	return f
}

// remove removes a flow that has ended for another reason, if it is still in the table.
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
