package usernet

import (
	"net/netip"
	"testing"
	"time"
)

// flowFrom returns a flow identified by a port.
func flowFrom(port uint16) *flow {
	a := netip.MustParseAddr("10.0.2.15")
	return &flow{key: flowKey{from: netip.AddrPortFrom(a, port)}}
}

func (f *flow) port() uint16 { return f.key.from.Port() }

func TestFlowTableEndsFlowsThatAreIdle(t *testing.T) {
	const idle = time.Minute
	table := newFlowTable(10, idle)
	a, b := flowFrom(1), flowFrom(2)
	table.add(0, a)
	table.add(time.Second, b)
	a.used.Store(int64(50 * time.Second))

	if gone := table.expire(idle - 1); gone != nil {
		t.Errorf("%d flows ended before their time", len(gone))
	}
	if gone := table.expire(idle + time.Second); len(gone) != 1 || gone[0] != b {
		t.Errorf("the flow that has not been used does not end")
	}
	if gone := table.expire(2*idle + time.Second); len(gone) != 1 || gone[0] != a {
		t.Errorf("the flow that was used once does not end within twice the idle time")
	}
	if table.len() != 0 {
		t.Errorf("%d flows are left", table.len())
	}
}

func TestFlowTableKeepsFlowsThatAreUsed(t *testing.T) {
	table := newFlowTable(10, time.Minute)
	f := flowFrom(1)
	table.add(0, f)
	for now := time.Duration(0); now < time.Hour; now += 30 * time.Second {
		f.used.Store(int64(now))
		if table.expire(now) != nil {
			t.Fatalf("a flow ended at %v although it was being used", now)
		}
	}
}

func TestFlowTableMakesRoomByEndingTheFlowThatWasIdleLongest(t *testing.T) {
	table := newFlowTable(3, time.Minute)
	flows := []*flow{flowFrom(1), flowFrom(2), flowFrom(3)}
	for _, f := range flows {
		table.add(time.Second, f)
	}
	flows[0].used.Store(int64(2 * time.Second))
	evicted, ok := table.add(3*time.Second, flowFrom(4))
	if !ok || evicted != flows[1] {
		t.Errorf("a new flow takes the place of %v", evicted)
	}
	if table.len() != 3 {
		t.Errorf("there are %d flows, the limit is 3", table.len())
	}

	for _, p := range []uint16{1, 3, 4} { // all flows except 2 have been used since, so 2 is the one to evict
		table.get(flowFrom(p).key).used.Store(int64(4 * time.Second))
	}
	if evicted, _ = table.add(5*time.Second, flowFrom(5)); evicted == nil || table.len() != 3 {
		t.Errorf("a full table lets a flow in and ends none")
	}
}

func TestFlowTableReplacesAFlowOfTheSameKey(t *testing.T) {
	table := newFlowTable(3, time.Minute)
	first, second := flowFrom(1), flowFrom(1)
	table.add(0, first)
	if evicted, _ := table.add(0, second); evicted != first {
		t.Errorf("the first one is not ended")
	}
	table.remove(first) // has no effect, because first is no longer in the table
	if table.get(first.key) != second {
		t.Errorf("the second one is not there")
	}
	table.remove(second)
	if table.get(first.key) != nil || table.len() != 0 {
		t.Errorf("a flow that was removed is there")
	}
}

func TestFlowTableClosedRejectsFlows(t *testing.T) {
	table := newFlowTable(3, time.Minute)
	table.add(0, flowFrom(1))
	table.add(0, flowFrom(2))
	if all := table.close(); len(all) != 2 || all[0].port() != 1 {
		t.Errorf("closing gives back %d flows", len(all))
	}
	if _, ok := table.add(0, flowFrom(3)); ok {
		t.Errorf("a closed table takes a flow")
	}
}
