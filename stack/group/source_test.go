package group

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/wire"
)

// Reports of sources: the state of an interface (RFC 9776 section 3.2), and the reports after changes and
// queries (sections 5.1, 5.2 and 7.2.1). The sets A and B of the RFC's tables are lists of numbers here.

// sources returns addresses with consecutive numbers. The parameter from is the first
// number, and the parameter to is the number after the last.
func (s *script) sources(from, to byte) (list []netip.Addr) {
	for ; from < to; from++ {
		list = append(list, s.source(from))
	}
	return list
}

// in and ex return INCLUDE and EXCLUDE filters of the sources with these numbers.
func (s *script) in(numbers ...byte) Filter { return Filter{Sources: s.listed(numbers)} }
func (s *script) ex(numbers ...byte) Filter { return Filter{Exclude: true, Sources: s.listed(numbers)} }

func (s *script) listed(numbers []byte) (list []netip.Addr) {
	for _, n := range numbers {
		list = append(list, s.source(n))
	}
	return list
}

// report returns the text of a report with one record of the first group for each part: the name of its type,
// followed by the numbers of its sources.
func (s *script) report(parts ...string) string {
	for i, part := range parts {
		name, numbers, _ := strings.Cut(part, " ")
		text := fmt.Sprint(name, " ", s.group(1))
		if f := strings.Fields(numbers); len(f) > 0 {
			var list []netip.Addr
			for _, n := range f {
				list = append(list, s.source(n[0]-'0'))
			}
			text += fmt.Sprint(" ", list)
		}
		parts[i] = text
	}
	return s.to() + strings.Join(parts, ", ")
}

// listen sets the filter of the first group.
func (s *script) listen(f Filter) { s.Listen(s.now, s.group(1), f) }

// The test follows the examples and rules of RFC 9776 section 3.2.
func TestReception(t *testing.T) {
	both(t, func(s *script) {
		for _, c := range []struct {
			sockets []Filter
			want    Filter
		}{
			{nil, s.in()},
			{[]Filter{s.ex(1, 2, 3, 4), s.ex(2, 3, 4, 5), s.in(4, 5, 6)}, s.ex(2, 3)},
			{[]Filter{s.in(1, 2, 3), s.in(2, 3, 4), s.in(5, 6)}, s.in(1, 2, 3, 4, 5, 6)},
			{[]Filter{s.ex(1), s.ex(2)}, s.ex()},
			{[]Filter{s.in(1), s.ex()}, s.ex()},
			{[]Filter{s.in(1), s.ex(1, 2)}, s.ex(2)},
			{[]Filter{s.in(2, 1, 2)}, s.in(1, 2)},
		} {
			var r Reception
			for _, f := range c.sockets {
				r.Enter(f)
			}
			got := r.Filter()
			if !got.equal(c.want) || r.Users() != len(c.sockets) {
				t.Errorf("%v: %v of %d, want %v", c.sockets, got, r.Users(), c.want)
			}
			for n := range byte(9) {
				if r.Accepts(s.source(n)) != c.want.Accepts(s.source(n)) {
					t.Errorf("%v: source %d is received: %v", c.sockets, n, r.Accepts(s.source(n)))
				}
			}
			for i, f := range c.sockets {
				r.Change(f, s.in(9))
				if i%2 == 0 {
					r.Leave(s.in(9))
				} else {
					r.Change(s.in(9), Everyone)
					r.Leave(Everyone)
				}
			}
			if !r.Filter().None() || r.Users() != 0 || len(r.Sources()) != 0 {
				t.Errorf("%v: %+v is left", c.sockets, r)
			}
		}
		var r Reception
		r.Enter(s.in(1))
		r.Enter(s.ex(1))
		r.Enter(s.ex(1))
		if got := r.Sources()[s.source(1)]; got != (Mentions{1, 2}) {
			t.Errorf("who names the source: %+v", got)
		}
	})
}

// The four rows of the table in RFC 9776 section 5.1.
func TestSourceChanges(t *testing.T) {
	both(t, func(s *script) {
		for _, c := range []struct {
			row      string
			from, to Filter
			want     []string
		}{
			{"INCLUDE (A) to INCLUDE (B)", s.in(1, 2), s.in(2, 3), []string{"ALLOW 3", "BLOCK 1"}},
			{"EXCLUDE (A) to EXCLUDE (B)", s.ex(1, 2), s.ex(2, 3), []string{"ALLOW 1", "BLOCK 3"}},
			{"INCLUDE (A) to EXCLUDE (B)", s.in(1, 2), s.ex(3), []string{"TO_EX 3"}},
			{"EXCLUDE (A) to INCLUDE (B)", s.ex(1, 2), s.in(3), []string{"TO_IN 3"}},
			{"what was not heard", s.in(), s.in(1), []string{"ALLOW 1"}},
			{"likewise", s.in(), s.ex(1), []string{"TO_EX 1"}},
			{"what is not heard any more", s.in(1, 2), s.in(), []string{"BLOCK 1 2"}},
			{"likewise", s.ex(1), s.in(), []string{"TO_IN"}},
			{"an empty record is left out", s.in(1), s.in(1, 2), []string{"ALLOW 2"}},
			{"likewise", s.ex(1), s.ex(1, 2), []string{"BLOCK 2"}},
			{"no change", s.ex(1), s.ex(1), nil},
		} {
			s.listen(c.from)
			s.advance(time.Minute)
			s.listen(c.to)
			if c.want == nil {
				s.wantWithin(c.row, time.Minute)
				continue
			}
			report := s.report(c.want...)
			s.wantNow(c.row, report)
			s.wantWithin(c.row+", once more", time.Second, report)
			s.listen(s.in())
			s.advance(time.Minute)
			if len(s.members) != 0 || s.Deadline() != Never {
				t.Errorf("%s: %+v is left, for %v", c.row, s.members, s.Deadline())
			}
		}
	})
}

// The test follows RFC 9776 section 5.1, from "If more changes to the same per-interface state occur" on.
func TestSourceChangesMeet(t *testing.T) {
	both(t, func(s *script) {
		s.listen(s.in(1))
		s.wantNow("a source", s.report("ALLOW 1"))
		s.listen(s.in(1, 2))
		s.wantNow("what is new, and what is still to be repeated", s.report("ALLOW 1 2"))
		s.wantWithin("each is told as often as the robustness says", time.Minute, s.report("ALLOW 2"))

		s.listen(s.in(1, 2, 3))
		s.advance(0)
		s.listen(s.in(1, 2))
		s.wantNow("a source that was allowed and is blocked now is only blocked", s.report("BLOCK 3"))
		s.wantWithin("twice", time.Minute, s.report("BLOCK 3"))

		s.listen(s.ex(4))
		s.wantNow("another mode", s.report("TO_EX 4"))
		s.listen(s.ex(5))
		s.wantNow("is told again, with the sources as they are by now", s.report("TO_EX 5"))
		s.wantWithin("and only then the sources", time.Minute, s.report("ALLOW 4", "BLOCK 5"))

		s.listen(s.in(1))
		s.advance(0)
		s.listen(s.in())
		s.wantNow("leaving meanwhile is in the record of the mode", s.report("TO_IN"))
		s.wantWithin("and then in one of the source", time.Minute, s.report("BLOCK 1"))
		s.listen(s.in(1))
		s.advance(time.Minute)
		s.listen(s.in(2))
		s.advance(0)
		s.listen(s.ex())
		s.wantWithin("a change of the mode ends the reports of sources", time.Minute, s.report("TO_EX"), s.report("TO_EX"))
		s.listen(s.in())
		s.advance(0)
		s.listen(s.in(1))
		s.wantNow("who comes back while it is told that nobody is there", s.report("TO_IN 1"))
		s.wantWithin("is told of like others", time.Minute, s.report("ALLOW 1"))
	})
}

// The answers to a query for sources are as in table 5 of RFC 9776 section 5.2. The answers to a general query are
// checked too.
func TestSourceAnswers(t *testing.T) {
	both(t, func(s *script) {
		for _, c := range []struct {
			row   string
			state Filter
			asked []byte
			want  string
		}{
			{"INCLUDE (A), all", s.in(1, 2), nil, "IS_IN 1 2"},
			{"EXCLUDE (A), all", s.ex(1, 2), nil, "IS_EX 1 2"},
			{"INCLUDE (A), B: A*B", s.in(1, 2), []byte{2, 3}, "IS_IN 2"},
			{"EXCLUDE (A), B: B-A", s.ex(1, 2), []byte{2, 3}, "IS_IN 3"},
			{"nothing is not said", s.in(1, 2), []byte{3}, ""},
			{"likewise", s.ex(1, 2), []byte{1, 2}, ""},
		} {
			s.listen(c.state)
			s.advance(time.Minute)
			var want []string
			if c.want != "" {
				want = []string{s.report(c.want)}
			}
			s.query(wire.GroupMessage{Group: s.group(1), Sources: s.listed(c.asked), MaxDelay: time.Second})
			s.wantNow("no answer comes at once")
			s.wantWithin(c.row, time.Minute, want...)
			if c.asked == nil {
				s.query(wire.GroupMessage{})
				s.wantWithin(c.row+" of all groups", time.Minute, want...)
			}
		}
		s.listen(s.in(1, 2))
		s.advance(time.Minute)
		s.query(wire.GroupMessage{Group: s.group(1), Sources: s.listed([]byte{1}), MaxDelay: time.Second})
		s.listen(s.in(2))
		said, _ := s.advance(time.Minute)
		if slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "IS_IN") }) {
			t.Errorf("the answer is by what is heard when it comes: %q", said)
		}
	})
}

// RFC 3590: Renew repeats the reports of a join.
func TestRenewSources(t *testing.T) {
	s := newScript(t, wire.MLD)
	s.listen(s.in(1, 2))
	s.advance(time.Minute)
	s.Renew(s.now)
	s.wantWithin("sources", time.Minute, s.report("ALLOW 1 2"), s.report("ALLOW 1 2"))
}

// RFC 9776 section 7.2.1: in the older versions a group is either received or not.
func TestSourcesOlder(t *testing.T) {
	for _, p := range []wire.GroupProtocol{wire.IGMP, wire.MLD} {
		s := older(t, p, p.Newest()-1)
		one := s.group(1)
		member := fmt.Sprintf("v%d to %v: member of %v", p.Newest()-1, one, one)
		s.listen(s.in(1))
		s.wantWithin("hearing one source is a join", time.Minute, member, member)
		s.listen(s.in(1, 2))
		s.wantWithin("another source is no change", time.Minute)
		s.listen(s.ex(1))
		s.wantWithin("nor is another mode", time.Minute)
		s.query(wire.GroupMessage{Version: p.Newest() - 1})
		s.wantWithin("a query is answered", time.Minute, member)
		s.query(wire.GroupMessage{Group: one, Sources: s.listed([]byte{1}), MaxDelay: time.Second})
		s.wantWithin("one about sources, too", time.Minute, member)
		s.listen(s.in())
		if said, _ := s.advance(time.Minute); len(said) != 1 || !strings.Contains(said[0], "left") {
			t.Errorf("hearing none is a leave: %q", said)
		}
		s = newScript(t, p)
		s.listen(s.in(1))
		s.advance(0)
		s.query(wire.GroupMessage{Version: p.Newest() - 1, MaxDelay: time.Hour})
		s.listen(s.in(2))
		for v := range s.older {
			s.older[v] = min(s.older[v], s.now+1)
		}
		s.schedule()
		s.wantWithin("what changed meanwhile is not told when the newest version is back", 2*time.Hour)
	}
}

// RFC 9776 section 4.2.17, RFC 9777 section 5.2.16: long source lists are split, except in an EXCLUDE
// filter, which cannot be.
func TestManySources(t *testing.T) {
	both(t, func(s *script) {
		const sources = 250
		all := s.sources(1, 1+sources)
		said := func() (records, named int) {
			t.Helper()
			for m, ok := s.Poll(s.now); ok; m, ok = s.Poll(s.now) {
				if m.Len() > s.cfg.Room {
					t.Fatalf("a report of %d bytes", m.Len())
				}
				for _, r := range m.Records {
					records++
					named += len(r.Sources)
				}
			}
			return records, named
		}
		s.cfg.Room = 548
		if s.cfg.Protocol == wire.MLD {
			s.cfg.Room = 1232
		}
		size := s.group(1).BitLen() / 8
		most := (s.cfg.Room - 8 - 4 - size) / size
		s.listen(Filter{Sources: all})
		if records, named := said(); named != sources || records != (sources+most-1)/most {
			t.Errorf("%d records of %d sources are allowed", records, named)
		}
		s.advance(time.Minute)
		s.query(wire.GroupMessage{})
		s.now = s.Deadline()
		s.Advance(s.now)
		if records, named := said(); named != sources || records != (sources+most-1)/most {
			t.Errorf("%d records of %d sources are the answer", records, named)
		}
		s.listen(Filter{Exclude: true, Sources: all})
		if records, named := said(); named != most || records != 1 {
			t.Errorf("%d records of %d sources are excluded", records, named)
		}
		s.advance(time.Minute)
		s.join(s.group(2))
		s.listen(Filter{Exclude: true})
		if records, named := said(); named != sources || records != (sources+most-1)/most+1 {
			t.Errorf("%d records of %d sources are told with another group", records, named)
		}
	})
}

// A router that processes reports as in RFC 9776 section 6.4 ends up with the correct state, even if every
// other report of a group is lost.
func TestRouterAgrees(t *testing.T) {
	both(t, func(s *script) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			router := Filter{}
			lose := random.IntN(2) == 0
			hear := func() {
				for m, ok := s.Poll(s.now); ok; m, ok = s.Poll(s.now) {
					if lose = !lose; lose {
						continue
					}
					for _, r := range m.Records {
						router = routed(router, r)
					}
				}
			}
			var want Filter
			for range 1 + random.IntN(6) {
				want = Filter{Exclude: random.IntN(2) == 0}
				for n := range byte(5) {
					if random.IntN(2) == 0 {
						want.Sources = append(want.Sources, s.source(n))
					}
				}
				s.listen(want)
				hear()
			}
			for s.Deadline() != Never {
				s.now = s.Deadline()
				s.Advance(s.now)
				hear()
			}
			slices.SortFunc(router.Sources, netip.Addr.Compare)
			if !router.equal(want) {
				t.Fatalf("the router knows %v, want %v", router, want)
			}
			s.listen(Filter{})
			s.advance(time.Minute)
		}
	})
}

// routed returns the filter of a router that knows a single listener, with filter f, after it has processed the record
// r.
func routed(f Filter, r wire.GroupRecord) Filter {
	more := append(slices.Clone(f.Sources), minus(r.Sources, f.Sources)...)
	switch r.Type {
	case wire.ChangeToInclude, wire.ModeIsInclude:
		return Filter{Sources: slices.Clone(r.Sources)}
	case wire.ChangeToExclude, wire.ModeIsExclude:
		return Filter{Exclude: true, Sources: slices.Clone(r.Sources)}
	}
	if (r.Type == wire.AllowNewSources) == f.Exclude {
		return Filter{f.Exclude, minus(f.Sources, r.Sources)}
	}
	return Filter{f.Exclude, more}
}
