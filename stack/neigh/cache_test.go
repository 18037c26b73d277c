package neigh

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

func TestResolution(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.wantLookup("resolved", peer, peerMAC, Found)
	s.wantIdle("resolved")
	if c := s.Counters(); c.Resolved != 1 || c.Solicited != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestSecondLookupWaitsForTheSameAnswer(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.wantRequest("first use", us, peer, wire.Broadcast)
	s.wantLookup("second use", peer, wire.MAC{}, Pending)
	s.wantIdle("RFC 1122 2.3.2.1: not more than one request a second")
}

func TestNoAnswer(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	for range 3 {
		s.wantRequest("three times", us, peer, wire.Broadcast)
		s.advance(time.Second - time.Millisecond)
		s.wantIdle("less than a second later")
		s.advance(2 * time.Millisecond)
	}
	s.wantEvent("three times without an answer", Failed, peer, wire.MAC{})
	s.wantLookup("right after that", peer, wire.MAC{}, Unreachable)
	s.wantIdle("right after that")
	s.advance(3*time.Second + time.Millisecond)
	s.wantNoEntry("when the failure is forgotten", peer)
	s.wantLookup("when the failure is forgotten", peer, wire.MAC{}, Pending)
	s.wantRequest("when the failure is forgotten", us, peer, wire.Broadcast)
}

func TestLateAnswerRevivesAFailedEntry(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	for range 3 {
		s.wantRequest("three times", us, peer, wire.Broadcast)
		s.advance(time.Second + time.Millisecond)
	}
	s.wantEvent("no answer", Failed, peer, wire.MAC{})
	s.reply(peerMAC, peer)
	s.wantLookup("the answer came late", peer, peerMAC, Found)
	s.wantState("it answers no question any more", peer, Delay)
}

func TestADeviceWithoutRoomDelaysTheClock(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.advance(time.Minute) // the device has no room meanwhile, so the test does not poll requests
	s.wantRequest("as soon as there is room", us, peer, wire.Broadcast)
	s.advance(time.Second + time.Millisecond)
	s.wantRequest("a second after it was sent", us, peer, wire.Broadcast)
}

func TestReachableTurnsStaleAndIsProbedOnUse(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.advance(14 * time.Second)
	s.wantState("half of the mean time has not passed", peer, Reachable)
	s.advance(32 * time.Second)
	s.wantState("half as much again has passed", peer, Stale)
	s.wantIdle("nobody uses it")
	s.wantLookup("use", peer, peerMAC, Found)
	s.wantState("use", peer, Delay)
	s.advance(5*time.Second + time.Millisecond)
	s.wantState("no confirmation", peer, Probe)
	s.wantLookup("meanwhile", peer, peerMAC, Found)
	s.wantRequest("RFC 1122 2.3.2.1: unicast poll", us, peer, peerMAC)
	s.reply(peerMAC, peer)
	s.wantState("answer", peer, Reachable)
	s.wantIdle("answer")
}

func TestProbeWithoutAnswer(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.advance(time.Minute)
	s.wantLookup("use", peer, peerMAC, Found)
	s.advance(5*time.Second + time.Millisecond)
	for range 3 {
		s.wantRequest("three times", us, peer, peerMAC)
		s.advance(time.Second + time.Millisecond)
	}
	s.wantEvent("no answer", Failed, peer, wire.MAC{})
	s.wantNoEntry("no answer", peer)
	s.wantLookup("it may have moved", peer, wire.MAC{}, Pending)
	s.wantRequest("it may have moved", us, peer, wire.Broadcast)
	s.reply(otherMAC, peer)
	s.wantEvent("it has moved", Resolved, peer, otherMAC)
}

func TestConfirmationFromAbove(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.Confirm(s.now, peer)
	s.wantNoEntry("a confirmation makes no entry", peer)
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.Confirm(s.now, peer)
	s.wantState("a confirmation says nothing of the MAC", peer, Incomplete)
	s.wantRequest("first use", us, peer, wire.Broadcast)
	s.reply(peerMAC, peer)
	s.wantEvent("answer", Resolved, peer, peerMAC)
	for range 20 {
		s.advance(10 * time.Second)
		s.Confirm(s.now, peer)
		s.wantState("a flow that makes progress", peer, Reachable)
		s.wantIdle("a flow that makes progress")
	}
	s.advance(time.Minute)
	s.wantLookup("use after a pause", peer, peerMAC, Found)
	s.advance(time.Second)
	s.Confirm(s.now, peer)
	s.wantState("confirmed before the delay is over", peer, Reachable)
}

func TestUnusedEntryIsForgotten(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.advance(11 * time.Minute)
	s.wantNoEntry("ten minutes after the last use", peer)
	s.wantEvent("copies are void", Gone, peer, peerMAC)
	s.wantIdle("nothing waited for it")
	if s.Deadline() != Never {
		t.Errorf("an empty table waits until %v", s.Deadline())
	}
}

func TestStaticEntry(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.Set(peer, peerMAC)
	s.wantEvent("what waits can go", Resolved, peer, peerMAC)
	s.wantIdle("nothing more to ask")
	s.request(otherMAC, peer, us)
	s.wantReply("a request is answered whoever sends it", peer, otherMAC)
	s.wantLookup("news does not change it", peer, peerMAC, Found)
	s.advance(time.Hour)
	s.wantState("time does not change it", peer, Static)
	s.Set(peer, otherMAC)
	s.wantEvent("set again", Changed, peer, otherMAC)
	s.Remove(peer)
	s.wantEvent("removed", Gone, peer, otherMAC)
	s.wantNoEntry("removed", peer)
	if s.Counters().Locked != 1 {
		t.Error("the refused news was not counted")
	}
}

func TestSetReplacesWhatWasLearnt(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	s.Set(peer, otherMAC)
	s.wantEvent("set", Changed, peer, otherMAC)
	s.wantLookup("set", peer, otherMAC, Found)
	s.advance(time.Hour)
	s.wantState("no timer is left", peer, Static)
}

func TestRemoveFailsWhatWaits(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.wantLookup("first use", peer, wire.MAC{}, Pending)
	s.Remove(peer)
	s.Remove(peer)
	s.wantEvent("removed", Failed, peer, wire.MAC{})
	s.wantIdle("removed")
}

func addrAt(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }

func TestNewsEvictsOnlyItsOwnKind(t *testing.T) {
	s := settledScript(t, ARPConfig{Config: Config{Size: 4}})
	s.resolve()                                     // peer is reachable (proven)
	s.wantLookup("use", other, wire.MAC{}, Pending) // other is being resolved (wanted)
	s.Set(addrAt(4), wire.MAC{2, 4})                // the entry is static
	for i := 10; i < 100; i++ {
		s.request(wire.MAC{2, byte(i)}, addrAt(i), us)
		s.wantReply("asked", addrAt(i), wire.MAC{2, byte(i)})
	}
	s.wantState("it answers us", peer, Reachable)
	s.wantState("we want to know", other, Incomplete)
	s.wantState("static", addrAt(4), Static)
	s.wantState("the last to ask", addrAt(99), Stale)
	if n := len(s.Entries()); n != 5 {
		t.Errorf("%d entries, want four and the static one", n)
	}
	if c := s.Counters(); c.Evicted != 88 || c.Refused != 0 {
		t.Errorf("counters %+v", c)
	}
}

func TestNewsIsRefusedWhenAllElseIsWorthMore(t *testing.T) {
	s := settledScript(t, ARPConfig{Config: Config{Size: 1}})
	s.resolve()
	s.request(otherMAC, other, us)
	s.wantNoEntry("told", other)
	s.wantState("proven", peer, Reachable)
	if s.Counters().Refused != 1 {
		t.Error("the refusal was not counted")
	}
}

func TestLookupsEvictTheLeastRecentlyUsed(t *testing.T) {
	s := settledScript(t, ARPConfig{Config: Config{Size: 3}})
	for i := 10; i < 13; i++ {
		s.wantLookup("use", addrAt(i), wire.MAC{}, Pending)
	}
	s.wantLookup("use again", addrAt(10), wire.MAC{}, Pending)
	s.wantLookup("a fourth", addrAt(13), wire.MAC{}, Pending)
	s.wantEvent("the oldest gives way", Failed, addrAt(11), wire.MAC{})
	s.wantNoEntry("the oldest gives way", addrAt(11))
	s.wantRequest("the rest is asked for", us, addrAt(10), wire.Broadcast)
	s.wantRequest("the rest is asked for", us, addrAt(12), wire.Broadcast)
	s.wantRequest("the rest is asked for", us, addrAt(13), wire.Broadcast)
	s.wantIdle("what gave way is not asked for")
}

func TestWantedEvictsProvenLast(t *testing.T) {
	s := settledScript(t, ARPConfig{Config: Config{Size: 2}})
	s.resolve()
	for i := 10; i < 50; i++ {
		s.wantLookup("a scan of the subnet", addrAt(i), wire.MAC{}, Pending)
	}
	s.wantState("it answers us", peer, Reachable)
}

// TestTableStaysBounded makes random calls to a small cache and checks invariants after each.
func TestTableStaysBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := NewCache(Config{Size: 8})
	pending := map[netip.Addr]bool{}
	copied := map[netip.Addr]wire.MAC{} // a copy of the table, as an owner that publishes MACs keeps it
	now := time.Duration(0)
	for range 50000 {
		addr, mac := addrAt(r.IntN(30)), wire.MAC{2, byte(r.IntN(4))}
		switch r.IntN(10) {
		case 0, 1, 2:
			switch mac, a := c.Lookup(now, addr); a {
			case Pending:
				pending[addr] = true
			case Found:
				copied[addr] = mac
			}
		case 3, 4:
			c.Learn(now, addr, mac, Evidence(r.IntN(3)))
		case 5:
			c.Confirm(now, addr)
		case 6:
			if r.IntN(20) == 0 {
				c.Set(addr, mac)
			}
		case 7:
			if r.IntN(5) == 0 {
				c.Remove(addr)
			}
		case 8:
			for r.IntN(4) != 0 {
				c.Solicit(now)
			}
		case 9:
			now += time.Duration(r.Int64N(int64(3 * time.Second)))
			c.Advance(now)
		}
		for e, ok := c.Event(); ok; e, ok = c.Event() {
			delete(pending, e.Addr)
			delete(copied, e.Addr)
			if e.Kind == Resolved || e.Kind == Changed {
				copied[e.Addr] = e.MAC
			}
		}
		checkCache(t, c, pending, copied)
	}
	if c := c.Counters(); c.Evicted == 0 || c.Refused == 0 || c.Failed == 0 || c.Changed == 0 || c.Locked == 0 {
		t.Errorf("the test did not come by everything: %+v", c)
	}
}

func checkCache(t *testing.T, c *Cache, pending map[netip.Addr]bool, copied map[netip.Addr]wire.MAC) {
	t.Helper()
	for addr, mac := range copied {
		if n := c.table[addr]; n == nil || n.mac != mac {
			t.Fatalf("%v is not at %v any more, and no event said so", addr, mac)
		}
	}
	static, ranked := 0, 0
	for _, n := range c.table {
		if n.state == Static {
			static++
		}
		if n.state == Incomplete && !n.turn.Listed() && !n.timer.Scheduled() {
			t.Fatalf("%v is asked for, and nothing will come of it", n.addr)
		}
	}
	for i := range c.ranks {
		for n := range c.ranks[i].All {
			if ranked++; c.table[n.addr] != n {
				t.Fatalf("%v is on a list and not in the table", n.addr)
			}
		}
	}
	if static != c.static || static+ranked != len(c.table) || ranked > c.cfg.Size {
		t.Fatalf("%d entries, %d static (counted as %d), %d on lists", len(c.table), static, c.static, ranked)
	}
	for addr := range pending {
		if n := c.table[addr]; n == nil || n.state != Incomplete {
			t.Fatalf("%v is waited for, and no event came", addr)
		}
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	s := settledScript(t, ARPConfig{})
	s.resolve()
	if n := testing.AllocsPerRun(100, func() {
		s.Lookup(s.now, peer)
		s.Confirm(s.now, peer)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	c := NewCache(Config{})
	for i := range 1000 {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		c.Learn(0, addr, peerMAC, Asked)
	}
	addr := netip.AddrFrom4([4]byte{10, 0, 1, 1})
	for b.Loop() {
		c.Lookup(0, addr)
	}
}
