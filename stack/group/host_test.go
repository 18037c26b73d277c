package group

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"loam/wire"
)

// The reports of a host, following the text of RFC 9776 section 5 and RFC 9777 section 6. A script plays the
// querier. Time passes only during calls of the method advance. Messages are written as text, with the RFCs'
// names for records:
//
//	v3 to 224.0.0.22: TO_EX 239.1.2.3, IS_IN 239.1.2.4 [192.0.2.1]
//	v2 to 239.1.2.3: member of 239.1.2.3
//	v1 to ff02::2: left ff0e::1

type script struct {
	*Host
	t   *testing.T
	now time.Duration
}

// group returns a group of the script's protocol.
func (s *script) group(n byte) netip.Addr {
	if s.cfg.Protocol == wire.IGMP {
		return netip.AddrFrom4([4]byte{239, 1, 2, n})
	}
	return netip.AddrFrom16([16]byte{0xff, 0x0e, 15: n})
}

// source returns an address of the script's protocol.
func (s *script) source(n byte) netip.Addr {
	if s.cfg.Protocol == wire.IGMP {
		return netip.AddrFrom4([4]byte{192, 0, 2, n})
	}
	return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n})
}

func newScript(t *testing.T, p wire.GroupProtocol) *script {
	return &script{Host: NewHost(Config{Protocol: p, Room: 1232, Seed: 1}), t: t, now: time.Hour}
}

// join makes the host receive a group from all sources, and leave makes it receive the
// group from none.
func (s *script) join(g netip.Addr)  { s.Listen(s.now, g, Everyone) }
func (s *script) leave(g netip.Addr) { s.Listen(s.now, g, Filter{}) }

// both runs a script for IGMP and for MLD.
func both(t *testing.T, run func(s *script)) {
	for _, p := range []wire.GroupProtocol{wire.IGMP, wire.MLD} {
		t.Run(p.String(), func(t *testing.T) { run(newScript(t, p)) })
	}
}

// to returns, as text, the destination and the version of reports in the newest protocol
// version. routers returns the same for leave messages.
func (s *script) to() string {
	return map[wire.GroupProtocol]string{wire.IGMP: "v3 to 224.0.0.22: ", wire.MLD: "v2 to ff02::16: "}[s.cfg.Protocol]
}

// advance lets the time d pass. It returns the messages sent meanwhile, each with the
// time since the beginning.
func (s *script) advance(d time.Duration) (said []string, when []time.Duration) {
	began, end := s.now, s.now+d
	for {
		for m, ok := s.Poll(s.now); ok; m, ok = s.Poll(s.now) {
			said, when = append(said, describe(&m)), append(when, s.now-began)
		}
		if s.Deadline() > end {
			s.now = end
			return said, when
		}
		s.now = max(s.now, s.Deadline())
		s.Advance(s.now)
	}
}

// describe returns a message as text.
func describe(m *Message) string {
	head := fmt.Sprintf("v%d to %v: ", m.Version, m.Dst)
	switch m.Kind {
	case wire.GroupMember:
		return fmt.Sprintf("%smember of %v", head, m.Group)
	case wire.GroupLeave:
		return fmt.Sprintf("%sleft %v", head, m.Group)
	}
	var records []string
	for _, r := range m.Records {
		text := fmt.Sprintf("%s %v", map[wire.RecordType]string{
			wire.ModeIsInclude: "IS_IN", wire.ModeIsExclude: "IS_EX", wire.ChangeToInclude: "TO_IN", wire.ChangeToExclude: "TO_EX",
			wire.AllowNewSources: "ALLOW", wire.BlockOldSources: "BLOCK",
		}[r.Type], r.Group)
		if len(r.Sources) > 0 {
			text += fmt.Sprint(" ", r.Sources)
		}
		records = append(records, text)
	}
	return head + strings.Join(records, ", ")
}

// wantNow checks the messages sent now.
func (s *script) wantNow(sentence string, want ...string) {
	s.t.Helper()
	s.wantWithin(sentence, 0, want...)
}

// wantWithin checks the messages sent within d from now. It returns their times.
func (s *script) wantWithin(sentence string, d time.Duration, want ...string) []time.Duration {
	s.t.Helper()
	said, when := s.advance(d)
	if !slices.Equal(said, want) {
		s.t.Errorf("%s:\n  %s\nwant\n  %s", sentence, strings.Join(said, "\n  "), strings.Join(want, "\n  "))
	}
	return when
}

// settle joins groups and lets all resulting reports pass.
func (s *script) settle(groups ...netip.Addr) {
	for _, g := range groups {
		s.join(g)
	}
	s.advance(time.Minute)
}

// query makes the querier send q. Fields that q omits get the values of a general query of the newest version with
// a delay of 10 seconds.
func (s *script) query(q wire.GroupMessage) {
	q.Protocol, q.Kind = s.cfg.Protocol, wire.GroupQuery
	if q.Version == 0 {
		q.Version = q.Protocol.Newest()
	}
	if !q.Group.IsValid() {
		q.Group = netip.IPv6Unspecified()
		if q.Protocol == wire.IGMP {
			q.Group = netip.IPv4Unspecified()
		}
	}
	if q.MaxDelay == 0 {
		q.MaxDelay = 10 * time.Second
	}
	s.Receive(s.now, &q)
}

// Reports after changes of membership: RFC 9776 section 5.1, RFC 9777 section 6.1.
func TestChanges(t *testing.T) {
	both(t, func(s *script) {
		one := s.group(1)
		s.join(one)
		s.wantNow("a change is told at once", s.to()+"TO_EX "+one.String())
		s.wantWithin("and as many times as the robustness says, but one, within a second", time.Second, s.to()+"TO_EX "+one.String())
		s.wantWithin("and no more", time.Hour)
		s.join(one)
		s.wantWithin("what is no change is not told", time.Hour)
		s.leave(one)
		s.wantNow("leaving is a change", s.to()+"TO_IN "+one.String())
		s.wantWithin("told as often", time.Second, s.to()+"TO_IN "+one.String())
		s.wantWithin("and then it is forgotten", time.Hour)
		s.leave(one)
		s.wantWithin("who is not there does not leave", time.Hour)
		if s.Deadline() != Never || len(s.members) != 0 {
			t.Errorf("there is something left: %v, %+v", s.Deadline(), s.members)
		}
	})
}

func TestChangesMeet(t *testing.T) {
	both(t, func(s *script) {
		one, two := s.group(1), s.group(2)
		s.join(two)
		s.join(one)
		s.wantNow("changes at one time are one report", s.to()+"TO_EX "+one.String()+", TO_EX "+two.String())
		s.leave(one)
		s.wantNow("a change before an earlier one was told often enough", s.to()+"TO_IN "+one.String())
		said, _ := s.advance(time.Second)
		if slices.Sort(said); !slices.Equal(said, []string{s.to() + "TO_EX " + two.String(), s.to() + "TO_IN " + one.String()}) {
			t.Errorf("ends the reports of that: %q", said)
		}
		s.join(one)
		s.leave(one)
		s.wantNow("only the last of several at once is told", s.to()+"TO_IN "+one.String())
	})
}

// RFC 3590 section 4: a host that had no valid source address repeats all reports when it gets one.
func TestRenew(t *testing.T) {
	s := newScript(t, wire.MLD)
	s.settle(s.group(1), s.group(2))
	s.leave(s.group(2))
	s.advance(time.Minute)
	s.Renew(s.now)
	s.wantWithin("what is heard is told again, as often as a change", time.Second, s.to()+"TO_EX ff0e::1", s.to()+"TO_EX ff0e::1")
}

// RFC 9776 section 5, RFC 9777 section 6: some groups are never reported.
func TestReported(t *testing.T) {
	for group, want := range map[string]bool{
		"224.0.0.1": false, "224.0.0.2": true, "224.0.0.251": true, "239.255.255.250": true, "10.0.0.1": false,
		"ff02::1": false, "ff00::5": false, "ff01::fb": false, "ff11::5": false, "ff02::2": true, "ff02::1:ff00:1": true, "ff05::1": true, "ff0e::1": true,
		"fe80::1": false,
	} {
		if got := Reported(netip.MustParseAddr(group)); got != want {
			t.Errorf("%s: %v", group, got)
		}
	}
	s := newScript(t, wire.IGMP)
	s.join(allSystems)
	s.query(wire.GroupMessage{})
	s.wantWithin("the group of all systems is not told of", time.Minute)
}

// Responses to general queries: RFC 9776 section 5.2, RFC 9777 sections 6.2 and 6.3.
func TestGeneralQuery(t *testing.T) {
	both(t, func(s *script) {
		s.query(wire.GroupMessage{})
		s.wantWithin("who is in no group has nothing to say", time.Minute)
		one, two := s.group(1), s.group(2)
		s.settle(one, two)
		everything := s.to() + "IS_EX " + one.String() + ", IS_EX " + two.String()

		var first time.Duration
		for range 20 {
			s.query(wire.GroupMessage{})
			s.wantNow("no answer comes at once")
			at := s.wantWithin("one comes within the delay that the querier allows", 10*time.Second, everything)
			if first == 0 {
				first = at[0]
			}
			if at[0] != first {
				first = -1
			}
		}
		if first != -1 {
			t.Error("all come after the same time")
		}
		s.query(wire.GroupMessage{})
		s.query(wire.GroupMessage{MaxDelay: time.Second})
		s.query(wire.GroupMessage{MaxDelay: time.Hour})
		s.wantWithin("several queries have one answer, at the earliest time", time.Second, everything)
		s.wantWithin("and no other", 2*time.Hour)

		s.query(wire.GroupMessage{})
		s.leave(one)
		s.advance(time.Millisecond)
		said, _ := s.advance(10 * time.Second)
		if !slices.Contains(said, s.to()+"IS_EX "+two.String()) {
			t.Errorf("what was left meanwhile is not in the answer: %q", said)
		}
	})
}

func TestGroupQuery(t *testing.T) {
	both(t, func(s *script) {
		one, two := s.group(1), s.group(2)
		s.settle(one)
		s.query(wire.GroupMessage{Group: two, MaxDelay: time.Second})
		s.wantWithin("a group that is not heard is not spoken of", time.Minute)
		s.query(wire.GroupMessage{Group: one, MaxDelay: time.Second})
		s.wantNow("no answer comes at once")
		if at, last := s.State(s.now, one); at <= 0 || at > time.Second || !last {
			t.Errorf("it is due in %v; the last to report: %v", at, last)
		}
		s.wantWithin("one comes in time", time.Second, s.to()+"IS_EX "+one.String())
		if at, _ := s.State(s.now, one); at >= 0 {
			t.Errorf("it is due in %v", at)
		}
		s.query(wire.GroupMessage{Group: one, MaxDelay: time.Second})
		s.leave(one)
		s.wantWithin("who leaves answers by that alone", time.Minute, s.to()+"TO_IN "+one.String(), s.to()+"TO_IN "+one.String())
		if at, last := s.State(s.now, one); at >= 0 || last {
			t.Errorf("what is not heard has no state: %v, %v", at, last)
		}
		s.settle(one)
		s.query(wire.GroupMessage{MaxDelay: time.Second})
		s.query(wire.GroupMessage{Group: one, MaxDelay: time.Hour})
		s.wantWithin("the answer to a general query that comes sooner is enough (rule 1)", 2*time.Hour, s.to()+"IS_EX "+one.String())
	})
}

// Rules 3 to 5 for responses to queries (RFC 9776 section 5.2), and table 5 for groups received from all sources,
// EXCLUDE ({}).
func TestSourceQuery(t *testing.T) {
	both(t, func(s *script) {
		one := s.group(1)
		first, second := s.source(1), s.source(2)
		s.settle(one)
		ask := func(sources ...netip.Addr) {
			s.query(wire.GroupMessage{Group: one, Sources: sources, MaxDelay: time.Second})
		}
		ask(first)
		s.wantWithin("all sources that are asked about are heard", time.Second, s.to()+"IS_IN "+one.String()+" "+fmt.Sprint([]netip.Addr{first}))
		ask(first)
		ask(second, first)
		s.wantWithin("those of several queries are told together", time.Second, s.to()+"IS_IN "+one.String()+" "+fmt.Sprint([]netip.Addr{first, second}))
		ask(first)
		ask()
		s.wantWithin("a query about the whole group is about them, too", time.Second, s.to()+"IS_EX "+one.String())
		ask()
		ask(first)
		s.wantWithin("whichever comes first", time.Second, s.to()+"IS_EX "+one.String())
		for n := range byte(maxSources + 1) {
			ask(s.source(n))
		}
		s.wantWithin("so many sources are not remembered (RFC 9776 section 9.1)", time.Second, s.to()+"IS_EX "+one.String())
		var many []netip.Addr
		for n := range byte(200) {
			many = append(many, s.source(n))
		}
		ask(many...)
		s.wantWithin("nor if one query has them", time.Second, s.to()+"IS_EX "+one.String())
	})
}

// RFC 9776 section 4.1.6, RFC 9777 section 5.1.8: the querier sets the robustness variable.
func TestRobustness(t *testing.T) {
	both(t, func(s *script) {
		one := s.group(1)
		s.query(wire.GroupMessage{Robustness: 5})
		s.join(one)
		report := s.to() + "TO_EX " + one.String()
		s.wantWithin("changes are told as often as the querier says", 5*time.Second, report, report, report, report, report)
		s.query(wire.GroupMessage{})
		s.advance(time.Minute)
		s.leave(one)
		report = s.to() + "TO_IN " + one.String()
		s.wantWithin("or twice, if it does not", 5*time.Second, report, report)
	})
}

// RFC 9776 section 4.2.17, RFC 9777 section 5.2.16: a host sends as many reports as necessary.
func TestManyGroups(t *testing.T) {
	both(t, func(s *script) {
		const groups = 255
		count := func(sentence string) {
			t.Helper()
			told := map[netip.Addr]bool{}
			for m, ok := s.Poll(s.now); ok; m, ok = s.Poll(s.now) {
				if m.Len() > s.cfg.Room {
					t.Fatalf("%s: a report of %d bytes", sentence, m.Len())
				}
				for _, r := range m.Records {
					told[r.Group] = true
				}
			}
			if len(told) != groups {
				t.Errorf("%s: %d groups are told of", sentence, len(told))
			}
		}
		for n := range byte(groups) {
			s.join(s.group(n))
		}
		count("changes")
		s.advance(time.Minute)
		s.query(wire.GroupMessage{})
		s.now = s.Deadline()
		s.Advance(s.now)
		count("the answer to a general query")
	})
}
