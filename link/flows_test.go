package link_test

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"loam/link"
)

func newFlows() *link.Flows {
	return link.NewFlows(make([]atomic.Uint32, link.FlowWords), link.FlowKeys{1, 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb})
}

func randomFlow(rng *rand.Rand) link.Flow {
	return link.Flow{Src: rng.Uint32(), Dst: rng.Uint32(), SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32())}
}

func TestFlowOf(t *testing.T) {
	a, b := netip.MustParseAddrPort("192.0.2.1:80"), netip.MustParseAddrPort("198.51.100.7:4096")
	if f, ok := link.FlowOf(a, b); !ok || f != (link.Flow{Src: 0xc0000201, Dst: 0xc6336407, SrcPort: 80, DstPort: 4096}) {
		t.Errorf("FlowOf = %+v, %v", f, ok)
	}
	if _, ok := link.FlowOf(a, netip.MustParseAddrPort("[2001:db8::1]:80")); ok {
		t.Error("an IPv6 connection has a flow")
	}
}

// While goroutines change a set of flows, the set reports every flow that is in it as present, and few others.
func TestFlows(t *testing.T) {
	s := newFlows()
	const each, goroutines = 5000, 4
	var workers sync.WaitGroup
	for i := range goroutines {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			flows := make([]link.Flow, each)
			for i := range flows {
				flows[i] = randomFlow(rng)
				s.Add(flows[i])
				s.Add(flows[i])
			}
			for _, f := range flows {
				s.Remove(f)
				if !s.Has(f) {
					t.Errorf("%+v is missing", f)
				}
			}
			for _, f := range flows[each/2:] {
				s.Remove(f)
			}
		})
	}
	workers.Wait()
	rng := rand.New(rand.NewPCG(7, 7))
	foreign := 0
	for range 10_000 {
		if s.Has(randomFlow(rng)) {
			foreign++
		}
	}
	if foreign > 200 { // 10,000 flows occupy one bucket in 105
		t.Errorf("the set has %d of 10,000 foreign flows", foreign)
	}
}

// A counter at its maximum keeps its value, and the counters next to it do not change.
func TestFlowsFull(t *testing.T) {
	s := newFlows()
	f := link.Flow{Src: 1}
	for range 300 {
		s.Add(f)
	}
	for range 300 {
		s.Remove(f)
	}
	if !s.Has(f) {
		t.Error("the set has lost a flow whose counter was full")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		if g := randomFlow(rng); s.Has(g) {
			t.Errorf("%+v has appeared", g)
		}
	}
}

func TestFlowsAllocate(t *testing.T) {
	s := newFlows()
	f := link.Flow{Src: 1}
	if n := testing.AllocsPerRun(100, func() { s.Add(f); s.Remove(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
