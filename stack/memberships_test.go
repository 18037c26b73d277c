package stack_test

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Source filters (RFC 3678): which datagrams a socket receives, what is reported to the
// link, and which calls fail.

var (
	source1 = netip.MustParseAddr("192.0.2.1")
	source2 = netip.MustParseAddr("192.0.2.2")
	source3 = netip.MustParseAddr("192.0.2.3")
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefusal checks the errno of an error; 0: no error.
func wantRefusal(t testing.TB, sentence string, err error, want syscall.Errno) {
	t.Helper()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", sentence, err, want)
	}
}

// sendToGroup sends a datagram to port 53 of an IPv4 group.
func (w *peer) sendToGroup(src, group netip.Addr) {
	w.t.Helper()
	w.send(ethernet(wire.MulticastMAC4(group), wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: src, Dst: group},
		datagram(netip.AddrPortFrom(src, 1000), netip.AddrPortFrom(group, 53), "x"))))
}

// RFC 3678 section 3: each socket receives only what its own filter accepts.
func TestSourceFilter(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		share := stack.UDPOptions{ReuseAddr: true}
		var sockets []*stack.UDPConn
		for range 4 {
			sockets = append(sockets, mustListenUDP(t, w.s, "0.0.0.0:53", share))
		}
		only, but, all := sockets[0], sockets[1], sockets[2]
		must(t, only.JoinSourceSpecificGroup(group1, source1, nil))
		must(t, only.JoinSourceSpecificGroup(group1, source2, w.ifc))
		must(t, but.JoinGroup(group1, nil))
		must(t, but.ExcludeSourceSpecificGroup(group1, source1, nil))
		must(t, all.JoinGroup(group1, nil))
		w.sendToGroup(source1, group1)
		wantAt(t, "a source that one wants and one does not", sockets, 0, 2)
		w.sendToGroup(source2, group1)
		wantAt(t, "one that one wants", sockets, 0, 1, 2)
		w.sendToGroup(source3, group1)
		wantAt(t, "one that nobody has named", sockets, 1, 2)

		must(t, only.LeaveSourceSpecificGroup(group1, source1, nil))
		must(t, but.IncludeSourceSpecificGroup(group1, source1, nil))
		w.sendToGroup(source1, group1)
		wantAt(t, "when that is undone", sockets, 1, 2)
		must(t, all.SetSourceFilter(group1, nil, stack.SourceFilter{Sources: []netip.Addr{source3}}))
		w.sendToGroup(source1, group1)
		wantAt(t, "another mode", sockets, 1)
		must(t, only.LeaveSourceSpecificGroup(group1, source2, nil))
		must(t, all.SetSourceFilter(group1, nil, stack.SourceFilter{}))
		if got := users(w.ifc)[group1]; got != 1 {
			t.Errorf("a group without sources is left: %d hear it", got)
		}
		w.sendToGroup(source3, group1)
		wantAt(t, "and not heard", sockets, 1)
	})
}

// IP_MULTICAST_ALL: a socket also receives groups joined by others, unless it has joined
// the group itself.
func TestAllGroups(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		share := stack.UDPOptions{ReuseAddr: true}
		every := share
		every.AllGroups = true
		sockets := []*stack.UDPConn{
			mustListenUDP(t, w.s, "0.0.0.0:53", share), mustListenUDP(t, w.s, "0.0.0.0:53", every),
			mustListenUDP(t, w.s, "0.0.0.0:53", share), mustListenUDP(t, w.s, "0.0.0.0:53", every),
		}
		w.sendToGroup(source1, group1)
		wantAt(t, "a group that nobody hears", sockets)
		must(t, sockets[0].JoinSourceSpecificGroup(group1, source1, nil))
		must(t, sockets[3].JoinSourceSpecificGroup(group1, source2, nil))
		w.sendToGroup(source1, group1)
		wantAt(t, "one that others hear", sockets, 0, 1)
		w.sendToGroup(source2, group1)
		wantAt(t, "from a source that others hear", sockets, 1, 3)
		w.sendToGroup(source3, group1)
		wantAt(t, "or nobody", sockets)
		w.sendToGroup(source1, allSystems)
		wantAt(t, "the group of all hosts", sockets, 1, 3)
	})
}

// A raw socket has source filters too.
func TestRawSourceFilter(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c, err := w.s.ListenRaw(wire.ProtoUDP, netip.IPv4Unspecified(), stack.UDPOptions{})
		must(t, err)
		defer c.Close()
		heard := func(sentence string, src netip.Addr, want int) {
			t.Helper()
			w.sendToGroup(src, group1)
			synctest.Wait()
			got, _ := c.Waiting()
			if c.TryReadFrom(nil); got != want {
				t.Errorf("%s: %d packets, want %d", sentence, got, want)
			}
		}
		heard("a group that was not joined", source1, 0)
		must(t, c.JoinSourceSpecificGroup(group1, source1, nil))
		heard("a source", source1, 1)
		heard("another", source2, 0)
		must(t, c.LeaveGroup(group1, nil))
		must(t, c.JoinGroup(group1, nil))
		must(t, c.ExcludeSourceSpecificGroup(group1, source1, nil))
		heard("a source that is blocked", source1, 0)
		heard("another", source2, 1)
		other := mustUDP(t, w.s, 5000)
		defer other.Close()
		must(t, other.JoinGroup(group1, nil))
		must(t, c.LeaveGroup(group1, nil))
		heard("one that others have joined", source1, 0)
		c.SetOptions(func(o *stack.UDPOptions) { o.AllGroups = true })
		heard("the same, with IP_MULTICAST_ALL", source1, 1)
	})
}

// The link receives reports of what all sockets together need.
func TestSourcesAreTold(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.groups = true
		first, second := mustUDP(t, w.s, 5000), mustUDP(t, w.s, 5001)
		defer first.Close()
		defer second.Close()
		told := func(sentence, what string) {
			t.Helper()
			for range 2 {
				w.want(sentence, "IGMP v3 10.0.0.1 > 224.0.0.22 "+what)
				w.advance(time.Second)
			}
			w.wantNone(sentence)
		}
		must(t, first.JoinSourceSpecificGroup(group1, source1, nil))
		told("a source", "ALLOW 239.1.2.3 [192.0.2.1]")
		must(t, second.JoinSourceSpecificGroup(group1, source2, nil))
		told("another's", "ALLOW 239.1.2.3 [192.0.2.2]")
		must(t, second.JoinSourceSpecificGroup(group1, source1, nil))
		w.advance(time.Minute)
		w.wantNone("what is heard already is not told")
		must(t, first.SetSourceFilter(group1, nil, stack.SourceFilter{Exclude: true, Sources: []netip.Addr{source3, source1}}))
		told("all but one that another wants", "TO_EX 239.1.2.3 [192.0.2.3]")
		about := query4()
		about.Group, about.Sources = group1, []netip.Addr{source3, source2}
		w.sendGroup4(wire.IPv4{Dst: group1}, about)
		w.advance(10 * time.Second)
		w.want("a query about sources", "IGMP v3 10.0.0.1 > 224.0.0.22 IS_IN 239.1.2.3 [192.0.2.2]")
		got := w.ifc.SourceMentions()
		slices.SortFunc(got, func(a, b stack.SourceMention) int { return a.Source.Compare(b.Source) })
		if want := []stack.SourceMention{{group1, source1, 1, 1}, {group1, source2, 1, 0}, {group1, source3, 0, 1}}; !slices.Equal(got, want) {
			t.Errorf("the sources are %v, want %v", got, want)
		}
		first.Close()
		told("who is left", "TO_IN 239.1.2.3 [192.0.2.1 192.0.2.2]")
		second.Close()
		told("nobody", "BLOCK 239.1.2.3 [192.0.2.1 192.0.2.2]")
	})
}

// Calls that RFC 3678 and ip(7) reject fail with the errors of Linux.
func TestMembershipErrors(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		m := w.s.NewMemberships()
		add := func(source netip.Addr) error { return m.JoinSourceSpecificGroup(group1, source, nil) }
		drop := func(source netip.Addr) error { return m.LeaveSourceSpecificGroup(group1, source, nil) }
		block := func(source netip.Addr) error { return m.ExcludeSourceSpecificGroup(group1, source, nil) }
		unblock := func(source netip.Addr) error { return m.IncludeSourceSpecificGroup(group1, source, nil) }
		set := func(exclude bool, sources ...netip.Addr) error {
			return m.SetSourceFilter(group1, nil, stack.SourceFilter{Exclude: exclude, Sources: sources})
		}
		wantRefusal(t, "no group", m.JoinSourceSpecificGroup(addrB, source1, nil), syscall.EINVAL)
		wantRefusal(t, "another family", add(addrB6), syscall.EADDRNOTAVAIL)
		for _, f := range []func(netip.Addr) error{drop, block, unblock} {
			wantRefusal(t, "before joining", f(source1), syscall.EINVAL)
		}
		wantRefusal(t, "a filter before joining", set(true), syscall.EINVAL)
		wantRefusal(t, "leaving before joining", set(false), syscall.EADDRNOTAVAIL)
		_, err := m.SourceFilter(group1, nil)
		wantRefusal(t, "no filter", err, syscall.EADDRNOTAVAIL)

		must(t, add(source1))
		wantRefusal(t, "a source twice", add(source1), syscall.EADDRNOTAVAIL)
		wantRefusal(t, "one that is not there", drop(source2), syscall.EADDRNOTAVAIL)
		wantRefusal(t, "blocking one", block(source2), syscall.EINVAL)
		wantRefusal(t, "joining all", m.JoinGroup(group1, nil), syscall.EADDRINUSE)
		must(t, drop(source1))
		wantRefusal(t, "the last source is the group", drop(source1), syscall.EINVAL)

		must(t, m.JoinGroup(group1, nil))
		wantRefusal(t, "a source of all", drop(source1), syscall.EADDRNOTAVAIL)
		must(t, block(source1))
		wantRefusal(t, "blocking twice", block(source1), syscall.EADDRNOTAVAIL)
		wantRefusal(t, "hearing one", add(source2), syscall.EINVAL)
		must(t, unblock(source1))
		wantRefusal(t, "unblocking twice", unblock(source1), syscall.EADDRNOTAVAIL)
		wantRefusal(t, "hearing one where some were blocked", add(source2), syscall.EINVAL)
		must(t, set(true))
		wantRefusal(t, "or none", add(source2), 0)

		var many []netip.Addr
		for source := source1; len(many) < 11; source = source.Next() {
			many = append(many, source)
		}
		wantRefusal(t, "eleven sources", set(false, many...), syscall.ENOBUFS)
		wantRefusal(t, "sources of another family", set(false, addrB6), syscall.EADDRNOTAVAIL)
		must(t, set(false, many[1], many[0]))
		if f, err := m.SourceFilter(group1, w.ifc); err != nil || f.Exclude || !slices.Equal(f.Sources, []netip.Addr{many[1], many[0]}) {
			t.Errorf("the filter is %v, %v", f, err)
		}
		must(t, set(true, many[1:]...))
		wantRefusal(t, "one more", block(many[0]), syscall.ENOBUFS)

		must(t, m.Close())
		wantRefusal(t, "when they are closed", add(source1), syscall.EBADF)
		wantRefusal(t, "closing twice", m.Close(), syscall.EBADF)
		if got := users(w.ifc)[group1]; got != 0 {
			t.Errorf("%d hear the group", got)
		}
	})
}

// Groups joined before the socket exists become the socket's.
func TestMembershipsBeforeSocket(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		m := w.s.NewMemberships()
		must(t, m.JoinGroup(group1, nil))
		c := mustListenUDP(t, w.s, "0.0.0.0:53", stack.UDPOptions{Groups: m})
		w.sendToGroup(source1, group1)
		wantAt(t, "a group", []*stack.UDPConn{c}, 0)
		must(t, c.LeaveGroup(group1, nil))
		w.sendToGroup(source1, group1)
		wantAt(t, "when it is left", []*stack.UDPConn{c})
		must(t, c.Close())
		wantRefusal(t, "they are the socket's", m.JoinGroup(group1, nil), syscall.EBADF)
	})
}

// Two stacks, also with IPv6: one receives what the other sends if the source matches.
func TestSourceFilterOverTwoStacks(t *testing.T) {
	for _, c := range []struct{ group, wanted, other, local string }{
		{"232.1.2.3", "10.0.0.1", "10.0.0.5", "0.0.0.0:5000"},
		{"ff35::4000:1", addr6(addrA).String(), addr6(addrA).Next().Next().String(), "[::]:5000"},
	} {
		synctest.Test(t, func(t *testing.T) {
			pr := newPair(t, stack.Config{Shards: 1}, pipe.Config{})
			other := netip.MustParseAddr(c.other)
			must(t, pr.a.AddAddress("eth0", netip.PrefixFrom(other, other.BitLen()/2)))
			time.Sleep(10 * time.Second)
			group, on := netip.MustParseAddr(c.group), pr.b.Interfaces()[1]
			hears := mustListenUDP(t, pr.b, c.local, stack.UDPOptions{})
			must(t, hears.JoinSourceSpecificGroup(group, netip.MustParseAddr(c.wanted), on))
			for _, from := range []string{c.other, c.wanted} {
				sender := mustListenUDP(t, pr.a, netip.AddrPortFrom(netip.MustParseAddr(from), 0).String(), stack.UDPOptions{})
				_, err := sender.TryWriteBy([]byte(from), netip.AddrPortFrom(group, 5000), stack.UDPSend{On: pr.a.Interfaces()[1]})
				must(t, err)
			}
			synctest.Wait()
			b := make([]byte, 100)
			n, info, err := hears.TryReadFrom(b)
			if err != nil || string(b[:n]) != c.wanted || info.To.Addr().WithZone("") != group {
				t.Errorf("%q of %+v, %v", b[:n], info, err)
			}
			if more, _ := hears.Waiting(); more != 0 {
				t.Errorf("%d more", more)
			}
		})
	}
}
