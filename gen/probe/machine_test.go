package probe

import (
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"loam/gen/probe/target"
	"loam/internal/siphash"
	"loam/wire"
)

// Tests of plan, throttle, space and form, which have no clock.

// A plan yields every position (the number of a probe) once. Then it yields the unanswered positions again. It ends
// early if all are answered.
func TestPlan(t *testing.T) {
	s := newSeen(200)
	p := plan{size: 200, passes: 3, seen: s}
	all := func() (got []uint64) {
		batch := make([]uint64, 7)
		for n := p.take(batch); n > 0; n = p.take(batch) {
			got = append(got, batch[:n]...)
		}
		return got
	}
	first := all()
	if len(first) != 200 || first[0] != 0 || first[199] != 199 || !slices.IsSorted(first) {
		t.Errorf("first pass: %d", first)
	}
	for at := range uint64(200) {
		if at != 5 && at != 70 && at != 199 && !s.add(at) {
			t.Errorf("%d was marked before", at)
		}
	}
	if s.add(0) || s.len() != 197 {
		t.Errorf("%d marked, want 197", s.len())
	}
	if !p.turn() || !slices.Equal(all(), []uint64{5, 70, 199}) {
		t.Error("the second pass is not those that are left")
	}
	for _, at := range []uint64{5, 70, 199} {
		s.add(at)
	}
	if p.turn() {
		t.Error("a third pass over nobody")
	}
}

func TestPlanResumes(t *testing.T) {
	p := plan{size: 200, passes: 2, seen: newSeen(200)}
	p.from(&Checkpoint{Pass: 1, Next: 198})
	batch := make([]uint64, 7)
	if n := p.take(batch); n != 2 || batch[0] != 198 || p.turn() {
		t.Errorf("took %d from %d", n, batch[0])
	}
}

// After a loss the rate falls below the achieved rate. Then it grows until it no longer limits the sending.
func TestThrottle(t *testing.T) {
	th := newThrottle(0)
	if n, _ := th.allow(0, 64); n != 64 {
		t.Errorf("without a limit %d may go of 64", n)
	}
	now, sent := checkEvery, uint64(50_000)
	th.check(now, sent, 0)
	if th.rate != 0 {
		t.Errorf("a limit of %.0f without a loss", th.rate)
	}
	now, sent = now+checkEvery, sent+50_000
	th.check(now, sent, 1)
	if math.Abs(th.rate-375_000) > 1 || th.decreased != 1 {
		t.Errorf("after a loss at 500,000 a second the rate is %.0f", th.rate)
	}
	for i := 0; th.rate != 0; i++ {
		now, sent = now+checkEvery, sent+20_000
		if th.check(now, sent, 1); i > 1000 {
			t.Fatal("the limit never goes away")
		}
	}
}

func TestThrottleKeepsTheUsersRate(t *testing.T) {
	th := newThrottle(1000)
	th.check(checkEvery, 100, 1)
	if th.rate != 750 {
		t.Errorf("after a loss: %.0f", th.rate)
	}
	for i := range uint64(100) {
		th.check(checkEvery*time.Duration(i+2), 100*(i+2), 1)
	}
	if th.rate != 1000 {
		t.Errorf("later: %.0f", th.rate)
	}
	total := 0
	for now := time.Duration(0); now <= time.Second; now += 100 * time.Microsecond {
		n, _ := th.allow(now, 64)
		th.spend(n)
		total += n
	}
	if total < 999 || total > 1002 {
		t.Errorf("%d in a second at a rate of 1000", total)
	}
	// The throttle does not accumulate permits to send while nothing is sent.
	if n, _ := th.allow(time.Hour, 64); n > 2 {
		t.Errorf("%d at once after an hour", n)
	}
}

// Every probe has a position in exactly one shard, and the space finds the position of a probe.
func TestSpace(t *testing.T) {
	set := addresses(t, "10.0.0.0/25", "10.0.1.7")
	seen := map[question]int{}
	for shard := range uint64(4) {
		s, err := newSpace(set, []uint16{80, 22, 443, 80}, 9, shard, 4)
		if err != nil {
			t.Fatal(err)
		}
		for p := range s.size {
			q := s.at(p)
			seen[q]++
			if at, ok := s.position(q); !ok || at != p {
				t.Fatalf("shard %d: %v has position %d, %v; want %d", shard, q, at, ok, p)
			}
		}
	}
	if len(seen) != 129*3 {
		t.Errorf("%d questions, want %d", len(seen), 129*3)
	}
	s, _ := newSpace(set, []uint16{80}, 9, 0, 1)
	for _, q := range []question{{netip.MustParseAddr("10.0.1.8"), 80}, {netip.MustParseAddr("10.0.1.7"), 81}} {
		if at, ok := s.position(q); ok {
			t.Errorf("%v, which nobody asks, has position %d", q, at)
		}
	}
}

func TestSpaceIsBounded(t *testing.T) {
	set := addresses(t, "0.0.0.0/0")
	if _, err := newSpace(set, []uint16{1, 2}, 0, 0, 1); err != nil {
		t.Errorf("two ports of every address: %v", err)
	}
	if _, err := newSpace(set, []uint16{1, 2, 3}, 0, 0, 1); err == nil {
		t.Error("three ports of every address are too many for one run")
	}
	if _, err := newSpace(set, []uint16{1, 2, 3}, 0, 1, 2); err != nil {
		t.Errorf("and fit two shards: %v", err)
	}
}

func testForm(t testing.TB, kind Kind) (*Config, *form) {
	c := config(t, kind, "10.0.0.0/24")
	return c, newForm(c, tagger{c.Key, kind})
}

// A tag is not valid for another run, kind, address or port.
func TestTagsDiffer(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	one := tagger{siphash.Key{K0: 1}, SYN}
	tags := map[uint64]bool{}
	for _, g := range []tagger{one, {siphash.Key{K0: 2}, SYN}, {siphash.Key{K0: 1}, UDP}} {
		for _, q := range []question{{a, 1}, {a, 2}, {b, 1}, {a.Next(), 1}} {
			tags[g.tag(q)] = true
		}
	}
	if len(tags) != 12 {
		t.Errorf("%d tags for 12 questions", len(tags))
	}
}

// An answer with any bit of its tag changed is rejected.
func TestEveryBitOfTheTagCounts(t *testing.T) {
	for _, kind := range []Kind{Echo, SYN, UDP} {
		c, f := testForm(t, kind)
		h := host{t: t}
		q := question{c.Addresses.At(9), 0}
		if kind != Echo {
			q.port = c.Ports[0]
		}
		probe := make([]byte, f.len())
		f.put(probe, q, 1000)
		answer := h.reply(probe)[0]
		if _, v := f.read(answer, 2000); v != genuine {
			t.Fatalf("%v: the answer is %d", kind, v)
		}
		body := wire.EthernetLen + wire.IPv4MinLen
		from, to := map[Kind]int{Echo: body + 4, SYN: body, UDP: body}[kind], map[Kind]int{Echo: len(answer), SYN: body + 4, UDP: body + 4}[kind]
		bits := []int{}
		for i := from * 8; i < to*8; i++ {
			bits = append(bits, i)
		}
		if kind == SYN {
			for i := (body + 8) * 8; i < (body+12)*8; i++ { // the bits of the acknowledgment number
				bits = append(bits, i)
			}
		}
		for _, i := range bits {
			answer[i/8] ^= 1 << (i % 8)
			if _, v := f.read(answer, 2000); v == genuine {
				t.Errorf("%v: genuine with bit %d of byte %d changed", kind, i%8, i/8)
			}
			answer[i/8] ^= 1 << (i % 8)
		}
	}
}

// A host that does not return the echo data, as RFC 1122 requires, still counts as up.
func TestShortEcho(t *testing.T) {
	c, f := testForm(t, Echo)
	q := question{c.Addresses.At(3), 0}
	short := packet(q.addr, f.Source, wire.ProtoICMP, icmp4(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(f.id, sequence(f.tags.tag(q)))}, nil))
	if r, v := f.read(short, 5); v != genuine || r.rtt != -1 || r.addr != q.addr {
		t.Errorf("%+v, %d", r, v)
	}
}

// The time in TCP timestamps wraps after 71 minutes.
func TestTimestampWraps(t *testing.T) {
	now := int64(1<<32-10) * timestampUnit
	if rtt, ok := roundTrip(now+20*timestampUnit, timestamp(now)); !ok || rtt != 20*timestampUnit {
		t.Errorf("%d, %v", rtt, ok)
	}
	if rtt, ok := roundTrip(now, timestamp(now)+1); ok {
		t.Errorf("from the future: %d", rtt)
	}
}

func TestProbesDoNotAllocate(t *testing.T) {
	for _, kind := range []Kind{Echo, SYN, UDP} {
		c, f := testForm(t, kind)
		s, err := newSpace(c.Addresses, c.Ports, 1, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		r := run{Config: *c, space: s, form: f, seen: newSeen(s.size), start: time.Now()}
		r.Reset = true
		l := r.newLane(0, nil, nil)
		probe := make([]byte, f.len())
		f.put(probe, s.at(7), 1)
		answer := (&host{t: t}).reply(probe)[0]
		if n := testing.AllocsPerRun(100, func() {
			f.put(probe, s.at(7), 1)
			l.take(answer, 0)
			for l.writeReset(probe) > 0 {
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", kind, n)
		}
	}
}

func BenchmarkProbe(b *testing.B) {
	set, _ := target.NewSet([]target.Range{target.RangeOf(netip.MustParsePrefix("10.0.0.0/9"))}, nil)
	c, f := testForm(b, Echo)
	s, _ := newSpace(set, nil, c.Seed, 0, 1)
	probe := make([]byte, f.len())
	at := uint64(0)
	for b.Loop() {
		f.put(probe, s.at(at%s.size), 1)
		at++
	}
}

// FuzzRead checks that no frame causes a panic and only the right answer is genuine.
func FuzzRead(f *testing.F) {
	for _, kind := range []Kind{Echo, SYN, UDP} {
		c, form := testForm(f, kind)
		q := question{c.Addresses.At(1), 0}
		if kind != Echo {
			q.port = c.Ports[0]
		}
		probe := make([]byte, form.len())
		form.put(probe, q, 1)
		f.Add(uint8(kind), probe)
		f.Add(uint8(kind), unreachable(q.addr, form.Source, 1, probe[wire.EthernetLen:]))
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		c, form := testForm(t, Kind(kind%3))
		if r, v := form.read(b, 1); v == genuine {
			if !r.addr.IsValid() || !r.from.IsValid() || r.rtt < -1 {
				t.Errorf("%+v", r)
			}
			s, err := newSpace(c.Addresses, c.Ports, 1, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			s.position(r.question)
		}
	})
}
