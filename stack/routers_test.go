package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// The tests of this file are about hosts that configure themselves, and the routers that advertise to them.

var (
	routerB  = wire.LinkLocal6(macB)
	network6 = netip.MustParsePrefix("2001:db8:1::/64")
	learntA  = netip.MustParsePrefix("2001:db8:1::ff:fe00:a/64")
)

// advertisementB returns the peer's router advertisement.
func advertisementB() wire.RouterAdvertisement {
	return wire.RouterAdvertisement{
		Lifetime: 1800, LinkAddr: macB, MTU: 1400,
		Prefixes: []wire.PrefixInfo{{Prefix: network6, OnLink: true, Autonomous: true, Valid: 7200, Preferred: 3600}},
		DNS:      []wire.DNSServers{{Servers: []netip.Addr{routerB}, Lifetime: 1800}},
	}
}

// sendAdvertisement sends a router advertisement to all nodes with the given hop limit.
func (w *peer) sendAdvertisement(a wire.RouterAdvertisement, hops uint8) {
	w.t.Helper()
	w.sendAdvertisementOf(routerB, a, hops)
}

// sendAdvertisementOf is like sendAdvertisement, but for any router.
func (w *peer) sendAdvertisementOf(router netip.Addr, a wire.RouterAdvertisement, hops uint8) {
	w.t.Helper()
	all := netip.IPv6LinkLocalAllNodes()
	b := make([]byte, a.Len())
	a.Put(b)
	wire.PutICMPv6Checksum(b, router, all)
	w.send(ethernet(wire.MulticastMAC6(all), wire.TypeIPv6, packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: hops, Src: router, Dst: all}, b)))
}

// listening returns a peer whose stack has solicited routers and got no reply.
func listening(t *testing.T, c stack.InterfaceConfig) *peer {
	t.Helper()
	c.MAC = macA
	w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, c)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if p, err := w.ifc.Autoconfigure(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("nobody has answered: %v, %v", p, err)
	}
	return w
}

func TestAutoconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{})
		w.want("the link-local address is tried", "nd who-has fe80::ff:fe00:a from :: at 00:00:00:00:00:00")
		if f := w.want("then a router is looked for", "icmp6 fe80::ff:fe00:a > ff02::2 type 133 code 0"); f.ip.TTL != 255 {
			t.Errorf("with a hop limit of %d", f.ip.TTL)
		}
		w.wantNone("once")
		w.advance(4500 * time.Millisecond)
		w.want("and again, if none answers", "icmp6 fe80::ff:fe00:a > ff02::2 type 133 code 0")

		w.sendAdvertisement(advertisementB(), 255)
		got, err := w.ifc.Autoconfigure(t.Context())
		if err != nil || got != learntA {
			t.Errorf("the address is %v, %v", got, err)
		}
		w.want("which is tried", "nd who-has 2001:db8:1::ff:fe00:a from :: at 00:00:00:00:00:00")
		if dns := w.s.DNS(); !slices.Equal(dns, []netip.Addr{routerB.WithZone("eth0")}) {
			t.Errorf("the servers are %v", dns)
		}
		c, err := w.s.Dial("udp", "[2001:db8:ffff::1]:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		w.want("the router is where it said", fmt.Sprintf("udp %v:%d > 2001:db8:ffff::1:9 %q", learntA.Addr(), c.LocalAddr().(*net.UDPAddr).Port, "hello"))
		c.Write(make([]byte, 1400))
		w.want("the MTU is what it said", "ip 2001:db8:1::ff:fe00:a > 2001:db8:ffff::1 protocol 17 offset 0 length 1352")
		w.advance(0)
		w.forget()

		w.advance(time.Hour)
		w.forget()
		if _, err := c.Write([]byte("hello")); !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("the router is gone: %v", err)
		}
		w.advance(time.Hour)
		for _, a := range w.s.Addresses() {
			if a.Prefix == learntA {
				t.Errorf("the address is still there")
			}
		}
		if dns := w.s.DNS(); len(dns) != 0 {
			t.Errorf("the servers are %v", dns)
		}
	})
}

// RFC 4861 section 6.3.4: the advertised hop limit applies to sockets that set none.
func TestAdvertisedHopLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		w.forget()
		wantHops := func(sentence string, want uint8) {
			t.Helper()
			if f := w.next(); f == nil || f.ip.TTL != want {
				t.Errorf("%s: %v, want a hop limit of %d", sentence, f, want)
			}
		}
		a := advertisementB()
		a.HopLimit = 32
		w.sendAdvertisement(a, 255)
		w.advance(0)
		w.forget()
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustWriteTo(t, c, "hello", "[2001:db8:ffff::1]:9")
		wantHops("a datagram", 32)
		mustWriteTo(t, c, "hello", "[ff0e::1]:9")
		wantHops("one to a group has its own", 1)
		c.SetOptions(func(o *stack.UDPOptions) { o.HopLimit = 7 })
		mustWriteTo(t, c, "hello", "[2001:db8:ffff::1]:9")
		wantHops("a socket that says one", 7)

		conn, err := w.s.DialTCP(netip.AddrPort{}, mustAddrPort("[2001:db8:ffff::1]:80"), stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Abort()
		wantHops("a connection", 32)
		a.HopLimit = 200
		w.sendAdvertisement(a, 255)
		w.advance(1100 * time.Millisecond)
		wantHops("which hears of another", 200)

		b := message6(netip.MustParseAddr("2001:db8:ffff::1"), learntA.Addr(), wire.ICMPv6{Type: wire.ICMPv6Echo}, nil)
		w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6, Src: netip.MustParseAddr("2001:db8:ffff::1"), Dst: learntA.Addr()}, b)
		wantHops("an answer", 200)
	})
}

// With two routers and a prefix of each, packets through one router have a source from
// its prefix (RFC 6724 section 5, rule 5.5), even if the other source matches the
// destination better.
func TestSourceOfTheRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		w.forget()
		w.sendAdvertisement(advertisementB(), 255)
		a := advertisementB()
		a.LinkAddr, a.Preference = macC, wire.PreferHigh
		a.Prefixes[0].Prefix = netip.MustParsePrefix("2001:db8:c::/64")
		w.sendAdvertisementOf(routerC, a, 255)
		w.advance(0)
		w.forget()
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const like = "[2001:db8:1:1::1]:9"
		if f := w.wantHop("by the one that is preferred", c, like, macC); f.ip.Src != netip.MustParseAddr("2001:db8:c::ff:fe00:a") {
			t.Errorf("from %v", f.ip.Src)
		}
		a.Preference = wire.PreferLow
		w.sendAdvertisementOf(routerC, a, 255)
		w.advance(0)
		if f := w.wantHop("by the other", c, like, macB); f.ip.Src != learntA.Addr() {
			t.Errorf("from %v", f.ip.Src)
		}
	})
}

// With two routers that advertise different prefixes, packets from an address of one prefix go through the router of
// that prefix while it answers, even if the other router is preferred (RFC 8028 section 3).
func TestRouterOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		w.sendAdvertisement(advertisementB(), 255)
		a := advertisementB()
		a.LinkAddr, a.Preference = macC, wire.PreferHigh
		a.Prefixes[0].Prefix = netip.MustParsePrefix("2001:db8:c::/64")
		w.sendAdvertisementOf(routerC, a, 255)
		w.advance(0)
		w.forget()
		const far = "[2001:db8:ffff::1]:9"
		bound := func(at string) *stack.UDPConn {
			c := mustListenUDP(t, w.s, at, stack.UDPOptions{})
			t.Cleanup(func() { c.Close() })
			return c
		}
		any, ofB, ofC := bound("[::]:1000"), bound("[2001:db8:1::ff:fe00:a]:1001"), bound("[2001:db8:c::ff:fe00:a]:1002")
		w.wantHop("who says nothing goes by the one that is preferred", any, far, macC)
		w.wantHop("and so does its own address", ofC, far, macC)
		w.wantHop("the other's goes by the other", ofB, far, macB)
		if _, err := w.s.DialTCP(mustAddrPort("[2001:db8:1::ff:fe00:a]:0"), mustAddrPort(far), stack.TCPOptions{}); err != nil {
			t.Fatal(err)
		}
		if f := w.next(); f == nil || f.tcp == nil || f.eth.Dst != macB {
			t.Errorf("a connection begins by %v", f)
		}

		a.Routes = []wire.RouteInfo{{Prefix: netip.MustParsePrefix("2001:db8:ffff::/48"), Lifetime: 1800}}
		w.sendAdvertisementOf(routerC, a, 255)
		w.advance(0)
		w.forget()
		w.wantHop("a router that leads to the network itself is better", ofB, far, macC)

		must(t, w.s.AddRoute(stack.Route{Dst: netip.MustParsePrefix("2001:db8:ee::/48"), Gateway: routerC, Interface: "eth0"}))
		w.wantHop("what was configured is left alone", ofB, "[2001:db8:ee::1]:9", macC)

		const other = "[2001:db8:dd::1]:9"
		w.wantHop("elsewhere its own router is asked", ofB, other, macB)
		w.advance(20 * time.Second) // no host answers for the router's address meanwhile
		a.LinkAddr = macC
		w.sendAdvertisementOf(routerC, a, 255)
		w.advance(0)
		w.forget()
		w.wantHop("until it does not answer", ofB, other, macC)
	})
}

// Advertisements that are invalid or not for this host are rejected.
func TestAdvertisementsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		before := w.s.Counters()
		w.sendAdvertisement(advertisementB(), 254)
		w.wantRefused("it has passed a router", before, stack.NDMalformed)
		before = w.s.Counters()
		a := advertisementB()
		b := make([]byte, a.Len())
		a.Put(b)
		wire.PutICMPv6Checksum(b, addrB6, routerB)
		w.send(ethernet(macA, wire.TypeIPv6, packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: 255, Dst: wire.LinkLocal6(macA)}, b)))
		w.wantRefused("from an address that is not the link's", before, stack.NDMalformed)
		if n := len(w.s.Routes()); n != 0 {
			t.Errorf("%d routes were learnt", n)
		}
		if err := w.ifc.Advertise(a); !errors.Is(err, stack.ErrInvalid) {
			t.Errorf("a host is no router: %v", err)
		}
		if _, err := w.s.Interfaces()[0].Autoconfigure(t.Context()); !errors.Is(err, stack.ErrFamily) {
			t.Errorf("the loopback has no routers: %v", err)
		}
	})
}

// objection returns a message of another host that claims an address.
func objection(addr netip.Addr) neigh.Message {
	all := netip.IPv6LinkLocalAllNodes()
	return neigh.Message{
		Neighbor: wire.Neighbor{Advertisement: true, Target: addr, LinkAddr: macB, Override: true}, Src: addr, Dst: all, MAC: wire.MulticastMAC6(all),
	}
}

// An address from an advertised prefix that another host has is not used (RFC 4862 section 5.4.5).
func TestLearntAddressIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{})
		w.sendAdvertisement(advertisementB(), 255)
		w.advance(0)
		w.sendND(objection(learntA.Addr()))
		w.advance(5 * time.Second)
		w.forget()
		w.sendAdvertisement(advertisementB(), 255)
		w.advance(5 * time.Second)
		w.wantNone("the address is not tried again")
		if n := len(w.s.Addresses()); n != 3 {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
		if n := len(w.s.Routes()); n != 2 {
			t.Errorf("the router and the link are still there: %v", w.s.Routes())
		}
	})
}

// RFC 4861 section 6.3.6: if one of two routers stops answering, the other one is used.
func TestRouterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		a := advertisementB()
		a.Preference, a.LinkAddr = wire.PreferHigh, wire.MAC{}
		w.sendAdvertisement(a, 255)
		w.advance(0)
		metric := func() int {
			for _, r := range w.s.Routes() {
				if r.Gateway == routerB {
					return r.Metric
				}
			}
			return -1
		}
		if m := metric(); m != 1 {
			t.Errorf("the metric is %d", m)
		}
		c, err := w.s.Dial("udp", "[2001:db8:ffff::1]:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("hello"))
		w.advance(10 * time.Second)
		if m := metric(); m != 5 {
			t.Errorf("nobody answers for it, and the metric is %d", m)
		}
	})
}

// One stack is a router, and another stack discovers that router.
func TestAdvertise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pipe.New(pipe.Config{})
		host, router := stack.New(stack.Config{}), stack.New(stack.Config{})
		defer host.Close()
		defer router.Close()
		b, err := router.Attach(far, stack.InterfaceConfig{Name: "eth0", MAC: macB, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		own := netip.MustParsePrefix("2001:db8:1::1/64")
		if err := router.AddAddress("eth0", own); err != nil {
			t.Fatal(err)
		}
		if err := b.Advertise(advertisementB()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Autoconfigure(t.Context()); !errors.Is(err, stack.ErrInvalid) {
			t.Errorf("a router is no host: %v", err)
		}
		time.Sleep(time.Minute)
		a, err := host.Attach(near, stack.InterfaceConfig{Name: "eth0", MAC: macA})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if p, err := a.Autoconfigure(t.Context()); err != nil || p != learntA {
			t.Fatalf("the host is at %v, %v", p, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("that took %v", d)
		}
		for _, to := range []netip.Addr{own.Addr(), routerB.WithZone("eth0")} {
			if _, err := host.Ping(t.Context(), to, 100); err != nil {
				t.Errorf("ping %v: %v", to, err)
			}
		}
		time.Sleep(time.Minute)
		if !slices.ContainsFunc(host.Routes(), func(r stack.Route) bool { return r.Gateway == routerB }) {
			t.Errorf("the router says that it is one: %v", host.Routes())
		}
	})
}
