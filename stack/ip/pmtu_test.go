package ip

import (
	"net/netip"
	"testing"
	"time"
)

func wantPath(t *testing.T, sentence string, p *PathMTUs, now time.Duration, want PathMTU) {
	t.Helper()
	if got, ok := p.Lookup(now, addr("192.0.2.1")); got != want || ok != (want.MTU != 0) {
		t.Errorf("%s: the path is %+v (%v), want %+v", sentence, got, ok, want)
	}
}

func TestPathMTUIsLearntAndForgotten(t *testing.T) {
	var p PathMTUs
	dst, now := addr("192.0.2.1"), time.Hour
	wantPath(t, "nothing is known", &p, now, PathMTU{})
	if !p.Learn(now, dst, 1400, 1500) {
		t.Error("the first message is not believed")
	}
	wantPath(t, "learnt", &p, now, PathMTU{MTU: 1400})
	wantPath(t, "just before ten minutes are over", &p, now+10*time.Minute-1, PathMTU{MTU: 1400})
	wantPath(t, "RFC 1191 6.3: after ten minutes", &p, now+10*time.Minute, PathMTU{})
	if len(p.table) != 0 || p.byUse.Len() != 0 {
		t.Error("what is forgotten is still held")
	}
	if _, ok := p.Next(); ok {
		t.Error("there is something to forget where nothing is known")
	}
	p.Learn(now, dst, 1400, 1500)
	p.Learn(now+time.Minute, addr("192.0.2.2"), 1400, 1500)
	if at, ok := p.Next(); !ok || at != now+10*time.Minute {
		t.Errorf("the next to forget is at %v", at)
	}
	p.Expire(now + 10*time.Minute)
	if at, ok := p.Next(); !ok || at != now+11*time.Minute || len(p.table) != 1 {
		t.Errorf("then %v, of %d", at, len(p.table))
	}
}

func TestPathMTUIsOnlyLowered(t *testing.T) {
	var p PathMTUs
	dst := addr("192.0.2.1")
	p.Learn(0, dst, 1400, 1500)
	if p.Learn(0, dst, 1450, 1500) || p.Learn(0, dst, 1400, 1500) {
		t.Error("a message raises the MTU or repeats it, and is believed")
	}
	wantPath(t, "a late message of an earlier router", &p, 0, PathMTU{MTU: 1400})
	if !p.Learn(time.Minute, dst, 1280, 1400) {
		t.Error("a lower MTU is not believed")
	}
	wantPath(t, "lowered, and the time begins anew", &p, 10*time.Minute, PathMTU{MTU: 1280})
	if c := p.Counters(); c.Learned != 2 || c.Higher != 2 {
		t.Errorf("counters %+v", c)
	}
}

func TestPathMTUOfAnOldRouter(t *testing.T) {
	for length, want := range map[int]int{65535: 32000, 1500: 1492, 1492: 1006, 1006: 508, 69: 68, 68: 68} {
		if got := Plateau(length); got != want {
			t.Errorf("a packet of %d bytes is guessed to exceed %d, want %d", length, got, want)
		}
	}
	var p PathMTUs
	p.Learn(0, addr("192.0.2.1"), 0, 1500)
	wantPath(t, "RFC 1191 section 7.1", &p, 0, PathMTU{MTU: 1492})
}

func TestPathMTUHasAFloor(t *testing.T) {
	var p PathMTUs
	p.Learn(0, addr("192.0.2.1"), 68, 1500)
	wantPath(t, "nobody makes us send tiny packets", &p, 0, PathMTU{MinPathMTU, true})
	if p.Learn(0, addr("192.0.2.1"), 296, MinPathMTU) {
		t.Error("below the floor there is nothing to learn")
	}
}

func TestPathMTUNarrowAtTheFloorIsNews(t *testing.T) {
	var p PathMTUs
	p.Learn(0, addr("192.0.2.1"), MinPathMTU, 1500)
	wantPath(t, "just the floor", &p, 0, PathMTU{MTU: MinPathMTU})
	if !p.Learn(0, addr("192.0.2.1"), 500, MinPathMTU) {
		t.Error("that not even the floor fits is not believed")
	}
	wantPath(t, "narrower", &p, 0, PathMTU{MinPathMTU, true})
}

func TestPathMTUImplausible(t *testing.T) {
	var p PathMTUs
	for _, mtu := range []int{1500, 9000, 65535} {
		if p.Learn(0, addr("192.0.2.1"), mtu, 1500) {
			t.Errorf("a packet of 1500 bytes cannot exceed %d", mtu)
		}
	}
	if p.Learn(0, addr("192.0.2.1"), 0, 60) {
		t.Error("a packet of 60 bytes exceeds nothing")
	}
	if p.Counters().Implausible != 4 {
		t.Errorf("counters %+v", p.Counters())
	}
}

func TestPathMTUsAreBounded(t *testing.T) {
	var p PathMTUs
	host := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	p.Learn(0, host(0), 1400, 1500)
	for i := 1; i <= maxPathMTUs; i++ {
		p.Lookup(0, host(0)) // marks the entry as recently used
		p.Learn(0, host(i), 1400, 1500)
	}
	if len(p.table) != maxPathMTUs {
		t.Errorf("%d paths are held", len(p.table))
	}
	if _, ok := p.Lookup(0, host(0)); !ok {
		t.Error("a path in use gave way")
	}
	if _, ok := p.Lookup(0, host(1)); ok {
		t.Error("the least recently used path did not give way")
	}
}
