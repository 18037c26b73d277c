package ip

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"loam/wire"
)

func TestFragmentsInAnyOrder(t *testing.T) {
	type fragment struct{ from, to int }
	all := []fragment{{0, 1480}, {1480, 2960}, {2960, 4440}, {4440, 5000}}
	permute(len(all), func(order []int) {
		s := newScript(t, ReassemblyConfig{})
		for i, f := range order {
			if i < len(order)-1 {
				s.wantNone("pieces are missing", all[f].from, all[f].to, f < 3)
			} else {
				s.wantWhole("the last piece", all[f].from, all[f].to, f < 3, 5000)
			}
		}
	})
}

func permute(n int, f func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var walk func(int)
	walk = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			walk(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	walk(0)
}

func TestHeaderIsThatOfTheFirstFragment(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.header.TTL = 10
	s.wantNone("last", 8, 20, false)
	s.header.TTL = 20
	s.header.Options = []byte{uint8(wire.OptRouterAlert), 4, 0, 0}
	h := s.wantWhole("first", 0, 8, true, 20)
	s.header.Options[0] = 0xee // overwrites the options, as when the frame is reused
	if h.TTL != 20 || !bytes.Equal(h.Options, []byte{uint8(wire.OptRouterAlert), 4, 0, 0}) {
		t.Errorf("the header is %+v, want the first fragment's", h)
	}
}

func TestDatagramsAreKeptApart(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("first half", 0, 800, true)
	original := s.header
	for what, change := range map[string]func(*wire.IPv4){
		"identification": func(h *wire.IPv4) { h.ID++ },
		"protocol":       func(h *wire.IPv4) { h.Protocol = wire.ProtoTCP },
		"source":         func(h *wire.IPv4) { h.Src = addr("192.0.2.9") },
		"destination":    func(h *wire.IPv4) { h.Dst = addr("192.0.2.9") },
	} {
		s.header = original
		change(&s.header)
		s.wantNone("second half with another "+what, 800, 1000, false)
	}
	s.header = original
	s.wantWhole("second half", 800, 1000, false, 1000)
}

func TestAtomicFragmentStandsForItself(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("first half", 0, 800, true)
	s.wantWhole("RFC 6946: a whole datagram under the same key", 0, 100, false, 100)
	s.wantWhole("second half", 800, 1000, false, 1000)
	s.memory.refuse = true
	s.wantNone("no memory", 0, 100, false)
	s.wantCounters(ReassemblyCounters{Complete: 2, OutOfSpace: 1})
}

func TestDuplicateIsHarmless(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("middle", 800, 1600, true)
	s.wantNone("middle again", 800, 1600, true)
	s.wantNone("end", 1600, 2000, false)
	s.wantNone("end again", 1600, 2000, false)
	s.wantNone("part of it, cut up differently", 808, 1000, true)
	s.wantWhole("first", 0, 800, true, 2000)
	s.wantCounters(ReassemblyCounters{Complete: 1, Duplicate: 3})
}

func TestOverlapRefusesTheDatagram(t *testing.T) {
	overlaps := map[string]struct {
		from, to int
		more     bool
	}{
		"over the end":       {1400, 2000, true},
		"over the beginning": {400, 808, true},
		"around":             {400, 2000, true},
		"over two pieces":    {1400, 2408, true},
		"joining and over":   {1600, 2408, true},
	}
	for sentence, f := range overlaps {
		s := newScript(t, ReassemblyConfig{})
		s.wantNone("a piece", 800, 1600, true)
		s.wantNone("another", 2400, 3200, true)
		s.wantNone(sentence, f.from, f.to, f.more)
		if s.memory.outstanding != 0 {
			t.Errorf("%s: a refused datagram holds a buffer", sentence)
		}
		s.wantNone("the rest", 0, 800, true)
		s.wantNone("the rest", 1600, 2400, true)
		s.wantNone("the rest", 3200, 4000, false)
		s.wantCounters(ReassemblyCounters{Overlap: 1, Absorbed: 3})
		s.now += 30 * time.Second
		for range s.r.Expire(s.now) {
			t.Errorf("%s: a refused datagram is reported", sentence)
		}
		s.wantNone("the same identification later", 0, 800, true)
		s.wantWhole("the same identification later", 800, 1600, false, 1600)
	}
}

func TestOtherBytesInTheSamePlaceAreAnOverlap(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("a piece", 0, 800, true)
	if _, ok := s.addBytes(0, make([]byte, 800), true); ok {
		t.Error("complete")
	}
	s.wantNone("the rest", 800, 1000, false)
	s.wantCounters(ReassemblyCounters{Overlap: 1, Absorbed: 1})
}

func TestContradictions(t *testing.T) {
	type fragment struct {
		from, to int
		more     bool
	}
	for sentence, f := range map[string][]fragment{
		"two ends":               {{800, 1000, false}, {1000, 1200, false}},
		"an earlier end":         {{800, 1600, true}, {400, 800, false}},
		"bytes behind the end":   {{800, 1000, false}, {1600, 2400, true}},
		"more at the end":        {{800, 1600, false}, {800, 1600, true}},
		"an empty last fragment": {{0, 800, true}, {800, 800, false}},
	} {
		s := newScript(t, ReassemblyConfig{})
		for _, f := range f {
			s.wantNone(sentence, f.from, f.to, f.more)
		}
		s.wantNone(sentence, 0, 8, true)
		s.wantCounters(ReassemblyCounters{Malformed: 1, Absorbed: 1})
	}
}

func TestOversizeIsRefused(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("the ping of death", 65528, 65536, false)
	s.wantCounters(ReassemblyCounters{Oversize: 1})

	s = newScript(t, ReassemblyConfig{})
	s.wantNone("just what fits behind 20 bytes of header", 65480, 65515, false)
	s.header.Options = make([]byte, 4)
	s.wantNone("but the header of the first is longer", 0, 65480, true)
	s.wantCounters(ReassemblyCounters{Oversize: 1})

	s = newScript(t, ReassemblyConfig{})
	s.wantNone("the longest datagram", 65480, 65515, false)
	s.wantWhole("the longest datagram", 0, 65480, true, 65515)
}

func TestScatteredIsRefused(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	for i := range maxPieces {
		s.wantNone("pieces", 16*i, 16*i+8, true)
	}
	s.wantNone("they may grow", 8, 16, true)
	s.wantNone("and there is room for one more", 16*maxPieces, 16*maxPieces+8, true)
	s.wantNone("but not for two", 16*maxPieces+16, 16*maxPieces+24, true)
	s.wantCounters(ReassemblyCounters{Scattered: 1})
}

func TestECN(t *testing.T) {
	const not, ect1, ect0, ce = 0, 1, 2, 3
	for _, test := range []struct {
		first, second, want uint8
		bad                 bool
	}{
		{first: not, second: not, want: not},
		{first: ect0, second: ect0, want: ect0},
		{first: ect1, second: ect1, want: ect1},
		{first: ect0, second: ce, want: ce},
		{first: ce, second: ect1, want: ce},
		{first: ce, second: ce, want: ce},
		{first: not, second: ce, bad: true},
		{first: ect0, second: not, bad: true},
	} {
		s := newScript(t, ReassemblyConfig{})
		const dscp = 0xb8
		s.header.TOS = dscp | test.first
		s.wantNone("first", 0, 800, true)
		s.header.TOS = dscp | test.second
		if test.bad {
			s.wantNone("RFC 3168 section 5.3", 800, 1000, false)
			s.wantCounters(ReassemblyCounters{BadECN: 1})
			continue
		}
		if h := s.wantWhole("second", 800, 1000, false, 1000); h.TOS != dscp|test.want {
			t.Errorf("codepoints %d and %d make TOS %#x, want codepoint %d", test.first, test.second, h.TOS, test.want)
		}
	}
}

func TestTimeout(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.header.Options = []byte{uint8(wire.OptRouterAlert), 4, 0, 0}
	s.wantNone("first", 0, 800, true)
	if s.r.Deadline() != s.now+30*time.Second {
		t.Errorf("deadline in %v, want 30 s", s.r.Deadline()-s.now)
	}
	s.now += 29 * time.Second
	s.wantNone("a later fragment does not prolong it", 1600, 2400, true)
	s.header.ID++
	s.wantNone("a datagram without its first fragment", 800, 1600, true)
	s.header.ID--
	for range s.r.Expire(s.now) {
		t.Error("expired too early")
	}
	s.now += time.Second
	seen := 0
	for d := range s.r.Expire(s.now) {
		seen++
		if !bytes.Equal(d.Payload.Bytes(), bytesOf(800)) || !d.Header.MoreFragment ||
			d.Header.PayloadLen != 800 || !bytes.Equal(d.Header.Options, s.header.Options) {
			t.Errorf("expired: %+v, want the first fragment as it came", d.Header)
		}
		d.Payload.Free()
	}
	s.now += 29 * time.Second
	for range s.r.Expire(s.now) {
		seen++
	}
	if seen != 1 {
		t.Errorf("%d first fragments, want one", seen)
	}
	s.wantCounters(ReassemblyCounters{Timeout: 2})
}

func TestExpireMayBeStopped(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	for range 3 {
		s.header.ID++
		s.wantNone("first", 0, 800, true)
	}
	s.now += time.Minute
	for d := range s.r.Expire(s.now) {
		d.Payload.Free()
		break
	}
	left := 0
	for d := range s.r.Expire(s.now) {
		d.Payload.Free()
		left++
	}
	if left != 2 {
		t.Errorf("%d are left, want two", left)
	}
}

func TestNoMemory(t *testing.T) {
	s := newScript(t, ReassemblyConfig{})
	s.wantNone("first", 0, 800, true)
	s.memory.refuse = true
	s.wantNone("no memory to grow", 800, 8000, true)
	s.memory.refuse = false
	s.wantNone("it stays refused", 8000, 8008, false)
	s.wantCounters(ReassemblyCounters{OutOfSpace: 1, Absorbed: 1})
}

func TestLargerThanTheLimitOfASource(t *testing.T) {
	s := newScript(t, ReassemblyConfig{Source: 10000})
	s.wantNone("first", 0, 800, true)
	s.wantNone("beyond the limit", 800, 16000, true)
	s.wantCounters(ReassemblyCounters{OutOfSpace: 1})
}

func TestTheLeastRecentlyUsedGivesWay(t *testing.T) {
	const cost = assemblyCost + 800
	s := newScript(t, ReassemblyConfig{Memory: 3*cost + 8, Source: 3*cost + 8})
	for id := range uint16(3) {
		s.header.ID = id
		s.wantNone("as many as there is room for", 0, 800, true)
	}
	s.header.ID = 0
	s.wantNone("used again", 0, 800, true)
	s.header.ID = 3
	s.wantNone("one more", 0, 800, true)
	s.header.ID = 0
	s.wantWhole("the one that was used again", 800, 808, false, 808)
	s.header.ID = 1
	s.wantNone("the one that was not", 800, 808, false)
	s.wantCounters(ReassemblyCounters{Complete: 1, Duplicate: 1, Evicted: 1})
}

func TestASourceEvictsItsOwnFirst(t *testing.T) {
	s := newScript(t, ReassemblyConfig{Memory: 100_000, Source: 20_000})
	s.wantNone("the victim's", 0, 800, true)
	victim := s.header
	s.header.Src = addr("203.0.113.66")
	for range 1000 {
		s.header.ID++
		s.wantNone("a flood", 0, 800, true)
		if s.r.sources[s.header.Src].cost > 20_000 {
			t.Fatal("a source holds more than its limit")
		}
	}
	s.header = victim
	s.wantWhole("the victim's", 800, 1000, false, 1000)
}

func TestAFloodFromManySourcesIsBounded(t *testing.T) {
	s := newScript(t, ReassemblyConfig{Memory: 100_000, Source: 20_000})
	for i := range 5000 {
		s.header.Src = netip.AddrFrom4([4]byte{203, byte(i >> 8), byte(i), 1})
		s.wantNone("a flood", 8*(i%100), 8*(i%100)+8, true)
		if s.r.Cost() > 100_000 || len(s.r.table) > 100_000/assemblyCost {
			t.Fatalf("%d bytes are held", s.r.Cost())
		}
	}
}
