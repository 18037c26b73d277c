package stack_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Reports of multicast groups to the link, and replies to queries.

var (
	group1     = netip.MustParseAddr("239.1.2.3")
	allSystems = netip.MustParseAddr("224.0.0.1")
	allNodes   = netip.IPv6LinkLocalAllNodes()
)

// users returns the number of users of each group on an interface.
func users(i *stack.Interface) map[netip.Addr]int {
	all := map[netip.Addr]int{}
	for _, m := range i.Groups().Members {
		all[m.Group] = m.Users
	}
	return all
}

// lookGroup parses a group message and checks the packet that carries it (RFC 9776
// section 4, RFC 9777 section 5).
func (f *seen) lookGroup(t testing.TB, p wire.GroupProtocol) {
	t.Helper()
	m, err := wire.ParseGroupMessage(p, f.data)
	if err != nil || m.Len() != len(f.data) {
		t.Fatalf("the stack sent %v %x: %v", p, f.raw, err)
	}
	f.group = &m
	alert := bytes.Equal(f.ip.Options, []byte{148, 4, 0, 0}) && f.ip.TOS == 0xc0 && f.eth.Dst == wire.MulticastMAC4(f.ip.Dst)
	if p == wire.MLD {
		alert = bytes.Equal(f.raw[wire.IPv6Len:][:8], []byte{58, 0, 5, 2, 0, 0, 1, 0}) && f.eth.Dst == wire.MulticastMAC6(f.ip.Dst)
	}
	if !alert || f.ip.TTL != 1 {
		t.Errorf("the stack sent %x to %v", f.raw, f.eth.Dst)
	}
}

// stringGroup returns a group message as one line of text.
func (f *seen) stringGroup() string {
	m := f.group
	text := fmt.Sprintf("%v v%d %v > %v", m.Protocol, m.Version, f.ip.Src, f.ip.Dst)
	switch m.Kind {
	case wire.GroupMember:
		return fmt.Sprintf("%s member of %v", text, m.Group)
	case wire.GroupLeave:
		return fmt.Sprintf("%s left %v", text, m.Group)
	}
	for _, r := range m.Records {
		text += fmt.Sprintf(" %s %v", map[wire.RecordType]string{
			wire.ModeIsInclude: "IS_IN", wire.ModeIsExclude: "IS_EX", wire.ChangeToInclude: "TO_IN", wire.ChangeToExclude: "TO_EX",
			wire.AllowNewSources: "ALLOW", wire.BlockOldSources: "BLOCK",
		}[r.Type], r.Group)
		if len(r.Sources) > 0 {
			text += fmt.Sprint(" ", r.Sources)
		}
	}
	return text
}

// sendGroup4 and sendGroup6 send a group message. Zero fields of the header take the
// values of a valid one.
func (w *peer) sendGroup4(h wire.IPv4, m wire.GroupMessage) {
	w.t.Helper()
	b := make([]byte, m.Len())
	m.Put(b)
	wire.PutIGMPChecksum(b)
	h.Protocol, h.TTL = wire.ProtoIGMP, 1
	if h.Options == nil {
		h.Options = []byte{148, 4, 0, 0}
	}
	w.send(ethernet(wire.MulticastMAC4(h.Dst), wire.TypeIPv4, packet(h, b)))
}

func (w *peer) sendGroup6(h wire.IPv6, m wire.GroupMessage, options ...byte) {
	w.t.Helper()
	m.Protocol = wire.MLD
	if !h.Src.IsValid() {
		h.Src = wire.LinkLocal6(macB)
	}
	if h.HopLimit == 0 {
		h.HopLimit = 1
	}
	if options == nil {
		options = []byte{5, 2, 0, 0, 1, 0}
	}
	b := make([]byte, m.Len())
	m.Put(b)
	wire.PutICMPv6Checksum(b, h.Src, h.Dst)
	h.NextHeader = wire.ProtoHopByHop
	w.send(ethernet(wire.MulticastMAC6(h.Dst), wire.TypeIPv6, packet6(h, append(append([]byte{58, 0}, options...), b...))))
}

// query4 and query6 return general queries of the newest versions.
func query4() wire.GroupMessage {
	return wire.GroupMessage{Kind: wire.GroupQuery, Version: 3, Group: netip.IPv4Unspecified(), MaxDelay: 10 * time.Second}
}

func query6() wire.GroupMessage {
	return wire.GroupMessage{Kind: wire.GroupQuery, Version: 2, Group: netip.IPv6Unspecified(), MaxDelay: 10 * time.Second}
}

// all returns all frames on the wire as text.
func (w *peer) all() (said []string) {
	for f := w.next(); f != nil; f = w.next() {
		said = append(said, f.String())
	}
	return said
}

func TestJoinIsTold(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.groups = true
		const joined, left = "IGMP v3 10.0.0.1 > 224.0.0.22 TO_EX 239.1.2.3", "IGMP v3 10.0.0.1 > 224.0.0.22 TO_IN 239.1.2.3"
		first, second := mustUDP(t, w.s, 5000), mustUDP(t, w.s, 5001)
		join := func(c *stack.UDPConn) {
			t.Helper()
			if err := c.JoinGroup(group1, nil); err != nil {
				t.Fatal(err)
			}
		}
		join(first)
		w.want("a group that is joined is told of", joined)
		w.advance(time.Second)
		w.want("and once more", joined)
		join(second)
		w.advance(time.Minute)
		w.wantNone("not for every socket")
		if err := first.LeaveGroup(group1, nil); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Minute)
		w.wantNone("nor while one hears it")
		second.Close()
		w.want("it is left with the last", left)
		w.advance(time.Second)
		w.want("which is told twice, too", left)
		if err := second.JoinGroup(group1, nil); err == nil {
			t.Error("a socket that was closed joins")
		}
		if err := first.JoinGroup(allSystems, nil); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Minute)
		w.wantNone("of all systems nobody is told")
		first.Close()
	})
}

// RFC 9776 section 4.2.14: a host without an address reports from the unspecified
// address.
func TestJoinWithoutAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBarePeer(t, stack.Config{Shards: 1}, pipe.Config{})
		w.groups = true
		c := mustUDP(t, w.s, 5000)
		defer c.Close()
		if err := c.JoinGroup(group1, w.ifc); err != nil {
			t.Fatal(err)
		}
		w.want("a report", "IGMP v3 0.0.0.0 > 224.0.0.22 TO_EX 239.1.2.3")
	})
}

// Which queries are valid and are answered: RFC 9776 sections 5.2 and 9.1.
func TestIGMPQuery(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 5000)
		defer c.Close()
		if err := c.JoinGroup(group1, nil); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Minute)
		w.forget()
		w.groups = true
		const answer = "IGMP v3 10.0.0.1 > 224.0.0.22 IS_EX 239.1.2.3"
		asked := func(sentence string, h wire.IPv4, q wire.GroupMessage) {
			t.Helper()
			w.sendGroup4(h, q)
			w.wantNone("no answer comes at once")
			w.advance(10 * time.Second)
			w.want(sentence, answer)
		}
		asked("a query is answered", wire.IPv4{Dst: allSystems}, query4())
		asked("one that a switch sends from nowhere, too (RFC 4541)", wire.IPv4{Src: netip.IPv4Unspecified(), Dst: allSystems}, query4())
		about := query4()
		about.Group = group1
		asked("and one about the group", wire.IPv4{Dst: group1}, about)

		ignored := func(sentence string, want stack.Counter, h wire.IPv4, q wire.GroupMessage) {
			t.Helper()
			before := w.s.Counters()
			w.sendGroup4(h, q)
			w.wantRefused(sentence, before, want)
			w.advance(time.Minute)
			w.wantNone(sentence)
		}
		ignored("a query without Router Alert", stack.GroupIgnored, wire.IPv4{Dst: allSystems, Options: []byte{1, 1, 1, 1}}, query4())
		ignored("a general query to some group", stack.GroupIgnored, wire.IPv4{Dst: group1}, query4())
		ignored("what others report", stack.IPNotMember, wire.IPv4{Dst: netip.MustParseAddr("224.0.0.22")},
			wire.GroupMessage{Kind: wire.GroupReport, Version: 3, Records: []wire.GroupRecord{{Type: wire.ChangeToInclude, Group: group1}}})
		about.Group = addrA
		ignored("a query about what is no group", stack.GroupMalformed, wire.IPv4{Dst: allSystems}, about)

		before := w.s.Counters()
		w.send(ethernet(wire.MulticastMAC4(allSystems), wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoIGMP, Dst: allSystems}, []byte{0x11, 0, 1, 1, 0, 0, 0, 0})))
		w.wantRefused("a wrong checksum", before, stack.GroupMalformed)
		before = w.s.Counters()
		w.send(ethernet(wire.MulticastMAC4(allSystems), wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoIGMP, Dst: allSystems}, []byte{0x13, 0, 1, 1, 0, 0, 0, 0})))
		w.wantRefused("a type that is not known is silently ignored", before, stack.GroupIgnored)
	})
}

// RFC 9776 section 7.2: on a link whose querier uses an older version of IGMP or MLD, the host uses that version too.
func TestOlderQuerier(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.groups = true
		q := query4()
		q.Version = 2
		w.sendGroup4(wire.IPv4{Dst: allSystems}, q)
		if g := w.ifc.Groups(); g.IGMP != 2 || g.MLD != 2 {
			t.Errorf("the versions are %+v", g)
		}
		c := mustUDP(t, w.s, 5000)
		defer c.Close()
		if err := c.JoinGroup(group1, nil); err != nil {
			t.Fatal(err)
		}
		const member = "IGMP v2 10.0.0.1 > 239.1.2.3 member of 239.1.2.3"
		w.want("a report goes to the group", member)
		w.advance(10 * time.Second)
		w.want("twice", member)
		if m := w.ifc.Groups().Members; len(m) != 1 || m[0] != (stack.Membership{Group: group1, Users: 1, Answer: -1, Reporter: true}) {
			t.Errorf("the groups are %+v", m)
		}
		w.sendGroup4(wire.IPv4{Dst: allSystems}, q)
		w.sendGroup4(wire.IPv4{Dst: group1}, wire.GroupMessage{Kind: wire.GroupMember, Version: 2, Group: group1})
		w.advance(10 * time.Second)
		w.wantNone("another host has answered")
		q.Version = 1
		w.sendGroup4(wire.IPv4{Dst: allSystems, Options: []byte{}}, q)
		w.advance(10 * time.Second)
		w.want("queries of version 1 have no option", "IGMP v1 10.0.0.1 > 239.1.2.3 member of 239.1.2.3")
	})
}

// The groups of Neighbor Discovery are reported as soon as there is an address, before
// duplicate detection. They are reported again from the link-local address when that is
// usable (RFC 3590).
func TestSolicitedNodeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{MAC: macA})
		w.groups = true
		const nowhere, own = "MLD v2 :: > ff02::16 TO_EX ff02::1:ff00:a", "MLD v2 fe80::ff:fe00:a > ff02::16 TO_EX ff02::1:ff00:a"
		w.want("the first thing that is said", nowhere)
		w.advance(2500 * time.Millisecond)
		said := w.all()
		if n := len(said); n < 3 || !slices.Contains(said, nowhere) || !slices.Contains(said[:n-1], "nd who-has fe80::ff:fe00:a from :: at 00:00:00:00:00:00") {
			t.Errorf("said until the address is used: %q", said)
		}
		w.advance(time.Second)
		if said = append(said, w.all()...); strings.Count(strings.Join(said, "\n"), own) != 2 {
			t.Errorf("said in all: %q", said)
		}
		add, remove := w.s.AddAddress, w.s.RemoveAddress
		for _, c := range []struct {
			sentence string
			change   func(string, netip.Prefix) error
			addr     string
			want     string
		}{
			{"an address is added", add, "2001:db8::5/64", "MLD v2 fe80::ff:fe00:a > ff02::16 TO_EX ff02::1:ff00:5"},
			{"another one with the same group", add, "2001:db8:1::5/64", ""},
			{"one of them is removed", remove, "2001:db8::5/64", ""},
			{"both are", remove, "2001:db8:1::5/64", "MLD v2 fe80::ff:fe00:a > ff02::16 TO_IN ff02::1:ff00:5"},
		} {
			if err := c.change("eth0", prefix(c.addr)); err != nil {
				t.Fatal(err)
			}
			w.advance(5 * time.Second)
			said := slices.DeleteFunc(w.all(), func(s string) bool { return strings.HasPrefix(s, "nd ") })
			want := []string{c.want, c.want}
			if c.want == "" {
				want = nil
			}
			if !slices.Equal(said, want) {
				t.Errorf("%s: %q", c.sentence, said)
			}
		}
	})
}

// Which MLD queries are valid and are answered: RFC 9777 section 6.2.
func TestMLDQuery(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		w.advance(time.Minute)
		w.forget()
		w.groups = true
		station := wire.LinkLocal6(w.ifc.MAC())
		group := wire.SolicitedNode(station)
		both := []string{"IS_EX ff02::1:ff00:1", "IS_EX " + group.String()}
		slices.Sort(both)
		w.sendGroup6(wire.IPv6{Dst: allNodes}, query6())
		w.advance(10 * time.Second)
		f := w.next()
		if f == nil {
			t.Fatal("no answer comes")
		}
		for _, text := range both {
			if !strings.Contains(f.String(), text) || f.ip.Src != station {
				t.Errorf("the answer is %v, want %q of it", f, text)
			}
		}
		ignored := func(sentence string, want stack.Counter, h wire.IPv6, q wire.GroupMessage, options ...byte) {
			t.Helper()
			before := w.s.Counters()
			w.sendGroup6(h, q, options...)
			w.wantRefused(sentence, before, want)
			w.advance(time.Minute)
			w.wantNone(sentence)
		}
		ignored("a query that is not from a link-local address", stack.GroupIgnored, wire.IPv6{Dst: allNodes, Src: addrB6}, query6())
		ignored("one that may have passed a router", stack.GroupIgnored, wire.IPv6{Dst: allNodes, HopLimit: 2}, query6())
		ignored("one without Router Alert", stack.GroupIgnored, wire.IPv6{Dst: allNodes}, query6(), 1, 4, 0, 0, 0, 0)
		q := query6()
		q.Group = addrB6
		ignored("one about what is no group", stack.GroupMalformed, wire.IPv6{Dst: allNodes}, q)
		q = query6()
		q.Version = 1
		w.sendGroup6(wire.IPv6{Dst: allNodes}, q)
		w.advance(10 * time.Second)
		if said := w.all(); len(said) != 2 || !strings.HasPrefix(said[0], "MLD v1 ") || w.ifc.Groups().MLD != 1 {
			t.Errorf("said to an older querier: %q", said)
		}
	})
}

// A gateway's interface and the loopback interface report no groups and answer no
// queries.
func TestGroupless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{AcceptAny: true})
		w.groups = true
		if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA, 24)); err != nil {
			t.Fatal(err)
		}
		c := mustUDP(t, w.s, 5000)
		defer c.Close()
		for _, i := range w.s.Interfaces() {
			if err := c.JoinGroup(group1, i); err != nil || users(i)[group1] != 1 {
				t.Fatal(err)
			}
		}
		before := w.s.Counters()
		w.sendGroup4(wire.IPv4{Dst: allSystems}, query4())
		w.wantRefused("a query", before, stack.GroupIgnored)
		w.advance(time.Minute)
		for _, s := range w.all() {
			if !strings.HasPrefix(s, "nd ") {
				t.Errorf("it says %s", s)
			}
		}
		w.wantCount("nothing is sent", stack.GroupSent, 0)
	})
}

// Packets to a group that this host has not joined are dropped early, as on Linux: raw
// sockets do not receive them, bound to the group or not, and fragments are not kept.
func TestGroupsOfOthers(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		raw := mustRaw(t, w.s, 200, "239.1.2.3")
		h := wire.IPv4{Protocol: 200, Dst: group1}
		send := func() { w.send(ethernet(wire.MulticastMAC4(group1), wire.TypeIPv4, packet(h, nil))) }
		before := w.s.Counters()
		send()
		wantNoRaw(t, "a group that nobody is in", raw)
		w.wantRefused("which is counted", before, stack.IPNotMember)

		before = w.s.Counters()
		part := wire.IPv4{Protocol: 200, Dst: group1, MoreFragment: true}
		w.send(ethernet(wire.MulticastMAC4(group1), wire.TypeIPv4, packet(part, make([]byte, 8))))
		w.wantRefused("a fragment", before, stack.IPNotMember)
		w.wantCount("is not kept", stack.IPFragments, 0)

		other := mustUDP(t, w.s, 5000)
		defer other.Close()
		must(t, other.JoinSourceSpecificGroup(group1, source1, nil))
		send()
		wantRaw(t, "a group that this host is in, whatever sources are heard", raw, packet(h, nil), addrB)
	})
}

// Packets to an IPv6 group that this host has not joined are dropped early, too, including those to the
// solicited-node groups of other hosts' addresses.
func TestGroupsOfOthers6(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		raw, neighbours := mustRaw(t, w.s, 200, "::"), mustRaw(t, w.s, wire.ProtoICMPv6, "::")
		to := func(group string, next wire.Protocol, payload []byte) {
			dst := netip.MustParseAddr(group)
			h := wire.IPv6{NextHeader: next, Dst: dst, HopLimit: 255}
			w.send(ethernet(wire.MulticastMAC6(dst), wire.TypeIPv6, packet6(h, payload)))
		}
		for _, group := range []string{"ff02::2", "ff05::1", "ff02::fb"} {
			to(group, 200, nil)
			wantNoRaw(t, group, raw)
		}
		before := w.s.CountersIPv6()
		solicited := wire.SolicitedNode(addrB6)
		to(solicited.String(), wire.ProtoICMPv6, message6(addrB6, solicited, wire.ICMPv6{Type: wire.ICMPv6NeighborSolicitation}, make([]byte, 16)))
		wantNoRaw(t, "a solicitation of another host's address", neighbours)
		synctest.Wait()
		after := w.s.CountersIPv6()
		if n := after.Get(stack.IPNotMember) - before.Get(stack.IPNotMember); n != 1 {
			t.Errorf("it is counted %d times", n)
		}
		for _, group := range []string{"ff02::1", wire.SolicitedNode(addrA6).String()} {
			to(group, 200, []byte("x"))
			wantRaw(t, group, raw, []byte("x"), addrB6)
		}
	})
}

// A query is accepted although its sender is excluded by the group's source filter.
func TestQueryOfFilteredGroup(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustUDP(t, w.s, 5000)
		defer c.Close()
		must(t, c.JoinSourceSpecificGroup(group1, source1, nil))
		w.advance(time.Minute)
		w.forget()
		w.groups = true
		about := query4()
		about.Group = group1
		w.sendGroup4(wire.IPv4{Dst: group1}, about)
		w.advance(10 * time.Second)
		w.want("a query about it", "IGMP v3 10.0.0.1 > 224.0.0.22 IS_IN 239.1.2.3 [192.0.2.1]")
	})
}
