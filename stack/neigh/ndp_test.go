package neigh

import (
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

// Neighbour Discovery and duplicate address detection, following the text of RFC 4861 section 7.2 and RFC
// 4862 section 5.4.

var (
	ours6   = netip.MustParsePrefix("2001:db8::a/64")
	theirs6 = netip.MustParseAddr("2001:db8::b")
	here    = wire.MAC{2, 0, 0, 0, 0, 0xa}
	there   = wire.MAC{2, 0, 0, 0, 0, 0xb}
	third   = wire.MAC{2, 0, 0, 0, 0, 0xc}
)

// settledNDP returns an NDP with an address that has passed its test.
func settledNDP(t *testing.T) *NDP {
	t.Helper()
	n := NewNDP(NDPConfig{MAC: here})
	n.Add(0, ours6, Untried)
	if e, ok := n.Event(); !ok || e.Kind != Ready || e.Addr != ours6.Addr() {
		t.Fatalf("the address is ready at once: %+v, %v", e, ok)
	}
	return n
}

// next6 returns the next message to send.
func next6(n *NDP, now time.Duration) *Message {
	var m Message
	if !n.Poll(now, &m) {
		return nil
	}
	return &m
}

func ask(src netip.Addr, linkAddr wire.MAC) *Message {
	return &Message{Neighbor: wire.Neighbor{Target: ours6.Addr(), LinkAddr: linkAddr}, Src: src, Dst: wire.SolicitedNode(ours6.Addr()), MAC: there}
}

func tell(target netip.Addr, mac wire.MAC, solicited, override bool) *Message {
	return &Message{Neighbor: wire.Neighbor{Advertisement: true, Target: target, LinkAddr: mac, Solicited: solicited, Override: override}, Src: target, Dst: ours6.Addr(), MAC: mac}
}

func TestNDPDetection(t *testing.T) {
	n := NewNDP(NDPConfig{MAC: here})
	n.Add(0, ours6, Tentative)
	if m := next6(n, 0); m != nil || n.Deadline() >= time.Second {
		t.Fatalf("it waits for up to a second, not %v, and then says %+v", n.Deadline(), m)
	}
	now := n.Deadline()
	n.Advance(now)
	m := next6(n, now)
	if m == nil || m.Advertisement || m.Target != ours6.Addr() || m.Src != nobody || m.Dst != wire.SolicitedNode(ours6.Addr()) || !m.LinkAddr.IsZero() {
		t.Fatalf("then it asks whether somebody has the address, from nobody: %+v", m)
	}
	n.Receive(now, ask(theirs6, there))
	if m := next6(n, now); m != nil {
		t.Errorf("a tentative address does not answer: %+v", m)
	}
	if _, ok := n.Event(); ok {
		t.Error("nothing has happened yet")
	}
	now += time.Second
	n.Advance(now)
	if e, ok := n.Event(); !ok || e.Kind != Ready {
		t.Errorf("without an answer for a second it is ours: %+v, %v", e, ok)
	}
	n.Receive(now, ask(theirs6, there))
	if m := next6(n, now); m == nil || !m.Advertisement || m.Dst != theirs6 {
		t.Errorf("and answers: %+v", m)
	}
}

// An optimistic address is used only as RFC 4429 section 3.3 allows.
func TestNDPOptimistic(t *testing.T) {
	n := NewNDP(NDPConfig{MAC: here})
	n.Add(0, ours6, Optimistic)
	if m := next6(n, 0); m == nil || m.Target != ours6.Addr() || m.Src != nobody || !m.LinkAddr.IsZero() {
		t.Fatalf("the question whether somebody has the address is not put off: %+v", m)
	}
	n.Receive(0, ask(theirs6, there))
	want := Message{Neighbor: wire.Neighbor{Advertisement: true, Target: ours6.Addr(), LinkAddr: here, Solicited: true}, Src: ours6.Addr(), Dst: theirs6, MAC: there}
	if m := next6(n, 0); m == nil || *m != want {
		t.Errorf("who asks is answered, without the override flag: %+v", m)
	}
	if mac, a := n.Lookup(0, theirs6); a != Found || mac != there {
		t.Errorf("and is known: %v, %v", mac, a)
	}
	other := netip.MustParseAddr("2001:db8::c")
	if _, a := n.Lookup(0, other); a != Pending || n.Deadline() != time.Second {
		t.Errorf("another is waited for: %v until %v", a, n.Deadline())
	}
	if m := next6(n, 0); m != nil {
		t.Errorf("an optimistic address is no source of solicitations: %+v", m)
	}
	now := n.Deadline()
	n.Advance(now)
	if e, ok := n.Event(); !ok || e.Kind != Ready {
		t.Errorf("without an answer for a second the address is ours: %+v, %v", e, ok)
	}
	if m := next6(n, now); m == nil || m.Target != other || m.Src != ours6.Addr() || m.LinkAddr != here {
		t.Errorf("and those that were waited for are asked for: %+v", m)
	}
	n.Receive(now, ask(theirs6, there))
	if m := next6(n, now); m == nil || !m.Override {
		t.Errorf("answers override from then on: %+v", m)
	}
}

// If an optimistic address turns out to be a duplicate, waiting packets fail.
func TestNDPOptimisticConflict(t *testing.T) {
	n := NewNDP(NDPConfig{MAC: here})
	n.Add(0, ours6, Optimistic)
	next6(n, 0)
	n.Lookup(0, theirs6)
	n.Receive(0, tell(ours6.Addr(), there, false, true))
	if e, ok := n.Event(); !ok || e.Kind != Conflict {
		t.Fatalf("somebody has it: %+v, %v", e, ok)
	}
	for now := time.Duration(0); now != Never; now = n.Deadline() {
		n.Advance(now)
		if m := next6(n, now); m != nil {
			t.Fatalf("something is asked from nowhere: %+v", m)
		}
		if e, ok := n.Event(); ok && e == (Event{Kind: Failed, Addr: theirs6}) {
			return
		}
	}
	t.Error("who waits for a neighbour is not told that it cannot be asked for")
}

// If another own address is usable, that address is used as the source at once.
func TestNDPOptimisticBeside(t *testing.T) {
	n := settledNDP(t)
	n.Add(0, netip.MustParsePrefix("2001:db8:1::a/64"), Optimistic)
	next6(n, 0)
	n.Lookup(0, netip.MustParseAddr("2001:db8:1::c"))
	if m := next6(n, 0); m == nil || m.Src != ours6.Addr() {
		t.Errorf("asked: %+v", m)
	}
}

func TestNDPDuplicates(t *testing.T) {
	for sentence, c := range map[string]struct {
		m    *Message
		want bool
	}{
		"somebody has the address":                     {tell(ours6.Addr(), there, false, true), true},
		"somebody tries it, too":                       {ask(nobody, wire.MAC{}), true},
		"our own question comes back":                  {&Message{Neighbor: wire.Neighbor{Target: ours6.Addr()}, Src: nobody, Dst: wire.SolicitedNode(ours6.Addr()), MAC: here}, false},
		"somebody looks for it":                        {ask(theirs6, there), false},
		"a question from nobody that says where it is": {ask(nobody, there), false},
		"a question from nobody to another group":      {&Message{Neighbor: wire.Neighbor{Target: ours6.Addr()}, Src: nobody, Dst: allNodes, MAC: there}, false},
		"an advertisement to all that says it answers": {&Message{Neighbor: wire.Neighbor{Advertisement: true, Solicited: true, Target: ours6.Addr(), LinkAddr: there}, Src: theirs6, Dst: allNodes, MAC: there}, false},
	} {
		for _, trial := range []Trial{Tentative, Optimistic} {
			n := NewNDP(NDPConfig{MAC: here})
			n.Add(0, ours6, trial)
			n.Receive(0, c.m)
			e, ok := n.Event()
			if got := ok && e.Kind == Conflict; got != c.want || c.want && (n.find(ours6.Addr()) != nil) {
				t.Errorf("%s: %+v, %v", sentence, e, ok)
			}
		}
	}
}

func TestNDPAnswers(t *testing.T) {
	n := settledNDP(t)
	n.Receive(0, ask(theirs6, there))
	want := Message{Neighbor: wire.Neighbor{Advertisement: true, Target: ours6.Addr(), LinkAddr: here, Solicited: true, Override: true}, Src: ours6.Addr(), Dst: theirs6, MAC: there}
	if m := next6(n, 0); m == nil || *m != want {
		t.Errorf("who asks is told: %+v, want %+v", m, want)
	}
	if mac, a := n.Lookup(0, theirs6); a != Found || mac != there {
		t.Errorf("and is known: %v, %v", mac, a)
	}
	n.Receive(0, ask(nobody, wire.MAC{}))
	if m := next6(n, 0); m == nil || m.Solicited || m.Dst != allNodes || m.MAC != wire.MulticastMAC6(allNodes) {
		t.Errorf("who tries our address hears it with all others: %+v", m)
	}
	n.Receive(0, ask(theirs6, wire.MAC{}))
	if m := next6(n, 0); m == nil || m.MAC != there {
		t.Errorf("who does not say where it is is answered there: %+v", m)
	}
	q := ask(theirs6, there)
	q.Target = theirs6
	n.Receive(0, q)
	if m := next6(n, 0); m != nil {
		t.Errorf("a question about another: %+v", m)
	}
	for range 100 {
		n.Receive(0, ask(theirs6, there))
	}
	if n.NDPCounters().Unsaid != 100-64 {
		t.Errorf("%d answers were not kept", n.NDPCounters().Unsaid)
	}
}

func TestNDPResolves(t *testing.T) {
	n := settledNDP(t)
	n.Receive(0, tell(theirs6, there, false, true))
	if _, a := n.Lookup(0, theirs6); a != Pending {
		t.Errorf("news that nobody asked for make no entry: %v", a)
	}
	m := next6(n, 0)
	if m == nil || m.Target != theirs6 || m.Src != ours6.Addr() || m.Dst != wire.SolicitedNode(theirs6) || m.LinkAddr != here {
		t.Fatalf("it asks: %+v", m)
	}
	n.Receive(0, tell(theirs6, there, true, true))
	if e, ok := n.Event(); !ok || e != (Event{Resolved, theirs6, there}) {
		t.Errorf("the answer: %+v, %v", e, ok)
	}
	if s := n.Entries()[0].State; s != Reachable {
		t.Errorf("the neighbour is %v", s)
	}
	n.Receive(1, tell(theirs6, third, false, false))
	if e := n.Entries()[0]; e.MAC != there || e.State != Stale {
		t.Errorf("what does not override makes doubt only: %+v", e)
	}
	n.Receive(2, tell(theirs6, third, false, true))
	if e := n.Entries()[0]; e.MAC != third || e.State != Stale {
		t.Errorf("what overrides is believed, and to be tried: %+v", e)
	}
	n.Event()
	n.Lookup(2, theirs6)
	now := 6 * time.Second
	n.Advance(now)
	if m := next6(n, now); m == nil || m.Dst != theirs6 || m.MAC != third {
		t.Fatalf("it is asked itself: %+v", m)
	}
	n.Receive(now, &Message{Neighbor: wire.Neighbor{Advertisement: true, Solicited: true, Target: theirs6}, Src: theirs6, Dst: ours6.Addr(), MAC: third})
	if e := n.Entries()[0]; e.State != Reachable {
		t.Errorf("an answer may leave out where it is from: %+v", e)
	}
}

func TestNDPConflictLater(t *testing.T) {
	n := settledNDP(t)
	n.Receive(0, tell(ours6.Addr(), there, false, true))
	if e, ok := n.Event(); !ok || e != (Event{Conflict, ours6.Addr(), there}) || n.find(ours6.Addr()) == nil {
		t.Errorf("who claims an address that we have is reported, and we stay: %+v, %v", e, ok)
	}
}

// A persistent claim is reported once, so that it cannot flood a log.
func TestNDPConflictsReported(t *testing.T) {
	n := settledNDP(t)
	for _, claim := range []struct {
		at   time.Duration
		want bool
	}{
		{0, true}, {0, false}, {5 * time.Second, false}, {14 * time.Second, false}, {24 * time.Second, true}, {25 * time.Second, false},
	} {
		n.Receive(claim.at, tell(ours6.Addr(), there, false, true))
		if _, ok := n.Event(); ok != claim.want {
			t.Errorf("a claim at %v is reported: %v, want %v", claim.at, ok, claim.want)
		}
	}
	if got := n.NDPCounters().Conflicts; got != 6 {
		t.Errorf("%d claims are counted", got)
	}
}

// RFC 4861 section 6.3.4: routers set the retransmission and reachable times.
func TestNDPTimes(t *testing.T) {
	n := settledNDP(t)
	n.SetTimes(0, 5*time.Second)
	n.SetTimes(10*time.Minute, 0)
	n.Lookup(0, theirs6)
	for _, question := range []struct {
		at   time.Duration
		want bool
	}{{0, true}, {4990 * time.Millisecond, false}, {5010 * time.Millisecond, true}} {
		n.Advance(question.at)
		if m := next6(n, question.at); (m != nil) != question.want {
			t.Errorf("at %v there is the question %+v", question.at, m)
		}
	}
	n.Receive(6*time.Second, tell(theirs6, there, true, true))
	n.Advance(5 * time.Minute)
	if s := n.Entries()[0].State; s != Reachable {
		t.Errorf("half of the mean time has not passed, and the neighbour is %v", s)
	}
	n.Advance(15*time.Minute + 7*time.Second)
	if s := n.Entries()[0].State; s != Stale {
		t.Errorf("half as much again has passed, and the neighbour is %v", s)
	}
	n.Add(time.Hour, netip.MustParsePrefix("2001:db8::c/64"), Optimistic)
	next6(n, time.Hour)
	n.Advance(time.Hour + 4*time.Second)
	if e, ok := n.Event(); ok && e.Kind == Ready {
		t.Error("an address is tried for as long as an answer may take (RFC 4862 section 5.4)")
	}
}
