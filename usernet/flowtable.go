package usernet

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// A flowTable bounds UDP flows, in number and in time. UDP does not say when a
// conversation is over, so a flow ends when it has been idle for a while, or
// when there is no room for a new one and it is the one that has been idle
// longest.
//
// Datagrams do not touch the table: they note the time in the flow (flow.used),
// an atomic store. The table keeps flows in the order in which it last looked
// at them, and looks again when the oldest is due: it ends a flow that has not
// been used since, and puts any other to the back. So a flow ends between one
// and two idle times after its last datagram.
//
// Times are counted from an epoch that the caller chose.
type flowTable struct {
	limit int
	idle  time.Duration

	mu     sync.Mutex // guards what follows
	flows  map[flowKey]*list.Element
	order  list.List // of *flow, the one that was looked at longest ago first
	closed bool
}

// flowKey names a flow: who began it, and to where.
type flowKey struct{ from, to netip.AddrPort }

func newFlowTable(limit int, idle time.Duration) *flowTable {
	return &flowTable{limit: limit, idle: idle, flows: make(map[flowKey]*list.Element)}
}

// get finds a flow, nil if there is none.
func (t *flowTable) get(k flowKey) *flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.flows[k]; e != nil {
		return e.Value.(*flow)
	}
	return nil
}

// add enters a flow that is being used now. What is in its way, the flow that
// was idle longest in a full table or one with the same key, is taken out for
// the caller to close. It returns false when the table has been closed.
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

// idlest finds the flow to end when there is no room: the first in order that
// has not been used since it was looked at, or just the first if all have been.
// Each flow that is passed over has been used since it was passed over before,
// so this costs no more than the datagrams did.
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

// remove takes out a flow that has ended by itself, if it is still there.
func (t *flowTable) remove(f *flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.flows[f.key]; e != nil && e.Value.(*flow) == f {
		t.take(e)
	}
}

// expire takes out the flows that have been idle for too long, for the caller to
// close.
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

// len is how many flows there are.
func (t *flowTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flows)
}

// close takes out all flows, for the caller to close, and lets no more in.
func (t *flowTable) close() (all []*flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for t.order.Len() > 0 {
		all = append(all, t.take(t.order.Front()))
	}
	return all
}
