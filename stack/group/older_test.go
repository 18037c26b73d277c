package group

import (
	"slices"
	"testing"
	"time"

	"loam/wire"
)

// Links with older queriers: RFC 9776 section 7.2, RFC 9777 section 8.2. The older versions are defined in
// RFC 2236 section 3, RFC 2710 section 4 and RFC 1112 appendix I.

// older returns a script whose querier uses an older version and has sent a query.
func older(t *testing.T, p wire.GroupProtocol, version uint8) *script {
	s := newScript(t, p)
	s.query(wire.GroupMessage{Version: version})
	if s.Version() != int(version) {
		t.Fatalf("version %d is spoken", s.Version())
	}
	return s
}

func TestIGMPv2(t *testing.T) {
	s := older(t, wire.IGMP, 2)
	one, two := s.group(1), s.group(2)
	s.join(one)
	s.wantNow("a report is sent to the group at once", "v2 to 239.1.2.1: member of 239.1.2.1")
	s.wantWithin("and again within ten seconds", 10*time.Second, "v2 to 239.1.2.1: member of 239.1.2.1")
	s.leave(one)
	s.wantWithin("the last to report says that it leaves, to all routers", time.Minute, "v2 to 224.0.0.2: left 239.1.2.1")

	s.settle(one, two)
	s.query(wire.GroupMessage{Version: 2})
	s.wantNow("no answer comes at once")
	said, when := s.advance(10 * time.Second)
	slices.Sort(said)
	if !slices.Equal(said, []string{"v2 to 239.1.2.1: member of 239.1.2.1", "v2 to 239.1.2.2: member of 239.1.2.2"}) || when[0] == when[1] {
		t.Errorf("each group is answered for, at a time of its own: %q at %v", said, when)
	}
	s.query(wire.GroupMessage{Version: 2, Group: one, MaxDelay: time.Second})
	s.wantWithin("so is the one that is asked about", time.Minute, "v2 to 239.1.2.1: member of 239.1.2.1")
	s.query(wire.GroupMessage{Version: 2, Group: one, MaxDelay: time.Hour})
	s.query(wire.GroupMessage{Version: 2, Group: one, MaxDelay: time.Second})
	s.wantWithin("a shorter delay counts", time.Second, "v2 to 239.1.2.1: member of 239.1.2.1")
	s.query(wire.GroupMessage{Version: 3, Group: one, MaxDelay: time.Second})
	s.wantWithin("whatever version asks", time.Second, "v2 to 239.1.2.1: member of 239.1.2.1")
}

// A host that receives another host's report does not send its own.
func TestSuppression(t *testing.T) {
	for _, p := range []wire.GroupProtocol{wire.IGMP, wire.MLD} {
		s := older(t, p, p.Newest()-1)
		one := s.group(1)
		heard := wire.GroupMessage{Protocol: p, Kind: wire.GroupMember, Group: one}
		s.join(one)
		s.advance(0)
		s.Receive(s.now, &heard)
		s.wantWithin("a report is not repeated when another's was heard", time.Minute)
		s.query(wire.GroupMessage{Version: p.Newest() - 1})
		s.Receive(s.now, &heard)
		s.wantWithin("nor is a query answered", time.Minute)
		s.leave(one)
		s.wantWithin("who was not the last to report leaves without a word", time.Minute)
		if len(s.members) != 0 {
			t.Errorf("%+v is left", s.members)
		}
		s = newScript(t, p)
		s.settle(one)
		s.query(wire.GroupMessage{})
		s.Receive(s.now, &heard)
		s.wantWithin("in the newest version everybody answers", time.Minute, s.to()+"IS_EX "+one.String())
	}
}

func TestIGMPv1(t *testing.T) {
	s := older(t, wire.IGMP, 1)
	one, two := s.group(1), s.group(2)
	s.join(one)
	s.wantWithin("reports are of version 1", time.Minute, "v1 to 239.1.2.1: member of 239.1.2.1", "v1 to 239.1.2.1: member of 239.1.2.1")
	s.query(wire.GroupMessage{Version: 1})
	s.wantWithin("so are answers", 10*time.Second, "v1 to 239.1.2.1: member of 239.1.2.1")
	s.leave(one)
	s.join(two)
	s.wantNow("there is no leave in version 1, and others are told of", "v1 to 239.1.2.2: member of 239.1.2.2")
}

func TestMLDv1(t *testing.T) {
	s := older(t, wire.MLD, 1)
	one := s.group(1)
	s.join(one)
	s.wantWithin("reports go to the group", 10*time.Second, "v1 to ff0e::1: member of ff0e::1", "v1 to ff0e::1: member of ff0e::1")
	s.query(wire.GroupMessage{Version: 1})
	s.wantWithin("answers, too", 10*time.Second, "v1 to ff0e::1: member of ff0e::1")
	s.leave(one)
	s.wantWithin("done is said to all routers", time.Minute, "v1 to ff02::2: left ff0e::1")
}

// An IGMP host changes its compatibility mode as in RFC 9776 sections 7.2.1 and 8.12.
func TestIGMPModes(t *testing.T) {
	s := newScript(t, wire.IGMP)
	one := s.group(1)
	s.settle(one)
	s.query(wire.GroupMessage{Version: 2, Group: one})
	if s.Version() != 3 {
		t.Error("a query about a group must not change the mode")
	}
	s.query(wire.GroupMessage{Version: 2, MaxDelay: 5 * time.Second})
	s.query(wire.GroupMessage{Version: 1})
	if s.Version() != 1 {
		t.Error("the oldest version is spoken")
	}
	s.advance(300*time.Second - 1)
	if s.Version() != 1 {
		t.Error("a querier of version 1 is taken to be there for 350 s")
	}
	s.advance(50*time.Second + 1)
	if s.Version() != 3 {
		t.Errorf("version %d is spoken after that, though that of version 2 was only for 300 s", s.Version())
	}
	s.query(wire.GroupMessage{Version: 1})
	s.advance(100 * time.Second)
	s.query(wire.GroupMessage{Version: 2})
	s.advance(250 * time.Second)
	if s.Version() != 2 {
		t.Errorf("version %d is spoken while a querier of version 2 is there still", s.Version())
	}
	s.advance(100 * time.Second)
	if s.Version() != 3 || s.Deadline() != Never {
		t.Errorf("version %d is spoken in the end, and something is due at %v", s.Version(), s.Deadline())
	}
}

// When an MLD host returns to the newest version: RFC 9777 sections 8.2.1 and 9.12. The time depends on the
// robustness and the query interval of the querier.
func TestMLDModes(t *testing.T) {
	s := newScript(t, wire.MLD)
	s.query(wire.GroupMessage{Version: 1})
	s.advance(260*time.Second - 1)
	if s.Version() != 1 {
		t.Error("a querier of version 1 is taken to be there for 260 s")
	}
	s.query(wire.GroupMessage{Robustness: 3, Interval: time.Minute})
	s.query(wire.GroupMessage{Version: 1})
	s.advance(190*time.Second - 1)
	if s.Version() != 1 {
		t.Error("or for as long as its predecessor's settings say")
	}
	s.advance(1)
	if s.Version() != 2 {
		t.Error("but not longer")
	}
}

// RFC 9776 section 7.2.1: "Whenever a host changes its compatibility mode, it cancels all its pending responses and
// retransmission timers."
func TestModeCancels(t *testing.T) {
	both(t, func(s *script) {
		one, two := s.group(1), s.group(2)
		old := s.cfg.Protocol.Newest() - 1
		s.settle(one)
		s.join(two)
		s.leave(one)
		s.advance(0)
		s.query(wire.GroupMessage{MaxDelay: time.Second})
		s.query(wire.GroupMessage{Version: old, MaxDelay: time.Second})
		said, _ := s.advance(time.Minute)
		if len(said) != 1 {
			t.Errorf("only the last query is answered, and what was left forgotten: %q", said)
		}
		s.query(wire.GroupMessage{Version: old, MaxDelay: time.Hour})
		for v := range s.older {
			s.older[v] = min(s.older[v], s.now+1)
		}
		s.schedule()
		s.wantWithin("answers that were to be in the older version are not sent in the newer", 2*time.Hour)
	})
}
