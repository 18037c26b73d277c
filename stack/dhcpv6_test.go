package stack_test

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// DHCPv6 on an interface: what it requests after router advertisements, and how it applies the replies. The clients in
// package dhcp have their own tests.

var lease6 = netip.MustParseAddr("2001:db8:1::77")

// serve6 sends a message from a DHCPv6 server.
func (w *peer) serve6(m wire.DHCPv6) {
	w.t.Helper()
	src, dst := netip.AddrPortFrom(routerB, 547), netip.AddrPortFrom(wire.LinkLocal6(macA), 546)
	w.send6(wire.IPv6{NextHeader: wire.ProtoUDP, Src: src.Addr(), Dst: dst.Addr()}, datagram(src, dst, string(m.Append(nil))))
}

// asked6 returns the next message to DHCPv6 servers, which must arrive within a time.
func (w *peer) asked6(within time.Duration) (m wire.DHCPv6) {
	w.t.Helper()
	for range 100 {
		for f := w.next(); f != nil; f = w.next() {
			if f.udp != nil && f.udp.DstPort == 547 {
				m, err := wire.ParseDHCPv6(f.data)
				if err != nil || f.ip.Src != wire.LinkLocal6(macA) || f.ip.Dst != netip.MustParseAddr("ff02::1:2") {
					w.t.Fatalf("%v: %v", f, err)
				}
				return m
			}
		}
		w.advance(within / 100)
	}
	w.t.Fatalf("nothing is asked within %v", within)
	return m
}

// grant6 returns the reply to a message: the lease, with the Rapid Commit option.
func grant6(m wire.DHCPv6) wire.DHCPv6 {
	return wire.DHCPv6{
		Type: wire.DHCPv6Reply, Transaction: m.Transaction, ClientID: m.ClientID, ServerID: []byte("x"), RapidCommit: true, DNS: []netip.Addr{addrB6},
		IA: &wire.DHCPv6IA{ID: 1, T1: 600, T2: 1200, Addresses: []wire.DHCPv6Address{{Addr: lease6, Preferred: 1500, Valid: 1800}}},
	}
}

// managed returns a host whose router advertises that addresses are assigned by DHCPv6
// and that its prefix is on the link.
func managed(t *testing.T, c stack.InterfaceConfig) *peer {
	w := listening(t, c)
	w.forget()
	a := advertisementB()
	a.Managed, a.Prefixes[0].Autonomous = true, false
	w.sendAdvertisement(a, 255)
	return w
}

func (w *peer) hasAddress(p netip.Prefix) bool {
	return slices.Contains(w.s.Addresses(), stack.Address{Interface: "eth0", Prefix: p})
}

// A lease is requested, renewed without a reply, and expires: RFC 8415 sections 18.2.1 to 18.2.5.
func TestDHCPv6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := managed(t, stack.InterfaceConfig{NoDetection: true})
		got := make(chan netip.Prefix, 1)
		go func() {
			p, _ := w.ifc.Autoconfigure(t.Context())
			got <- p
		}()
		m := w.asked6(time.Second)
		if m.Type != wire.DHCPv6Solicit {
			t.Fatalf("%+v", m)
		}
		w.serve6(grant6(m))
		own := netip.PrefixFrom(lease6, 128)
		if p := <-got; p != own || !w.hasAddress(own) {
			t.Errorf("the address is %v, and there are %v", p, w.s.Addresses())
		}
		if dns := w.s.DNS(); !slices.Equal(dns, []netip.Addr{addrB6, routerB.WithZone("eth0")}) {
			t.Errorf("the servers are %v", dns)
		}
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if f := w.wantHop("others are reached from it, by the router", c, "[2001:db8:99::1]:9", macB); f.ip.Src != lease6 {
			t.Errorf("from %v", f.ip.Src)
		}
		w.forget()
		if m = w.asked6(11 * time.Minute); m.Type != wire.DHCPv6Renew || m.IA.Addresses[0].Addr != lease6 {
			t.Errorf("after ten minutes it says %+v", m)
		}
		w.advance(20 * time.Minute)
		if w.hasAddress(own) {
			t.Errorf("half an hour later there are %v", w.s.Addresses())
		}
	})
}

// Nothing is sent from an address during duplicate detection (RFC 4862 section 5.4). The
// first router solicitation marks its end.
func TestDHCPv6WaitsForItsAddress(t *testing.T) {
	for range 10 { // repeated because the delay of the detection is random
		synctest.Test(t, func(t *testing.T) {
			w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{MAC: macA})
			go w.ifc.Autoconfigure(t.Context())
			synctest.Wait()
			a := advertisementB()
			a.Managed = true
			w.sendAdvertisement(a, 255)
			settled := false
			for range 300 {
				for f := w.next(); f != nil; f = w.next() {
					settled = settled || f.ip.Dst == netip.IPv6LinkLocalAllRouters()
					if f.udp == nil {
						continue
					}
					if !settled {
						t.Fatalf("%v", f)
					}
					return
				}
				w.advance(10 * time.Millisecond)
			}
			t.Fatal("nothing is asked")
		})
	}
}

// An address from a server is released once.
func TestDHCPv6Release(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := managed(t, stack.InterfaceConfig{NoDetection: true})
		w.serve6(grant6(w.asked6(time.Second)))
		w.forget()
		w.ifc.ReleaseDHCP()
		if m := w.asked6(time.Second); m.Type != wire.DHCPv6Release || m.IA.Addresses[0].Addr != lease6 {
			t.Errorf("it says %+v", m)
		}
		if w.hasAddress(netip.PrefixFrom(lease6, 128)) {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
		w.forget()
		a := advertisementB()
		a.Managed = true
		w.sendAdvertisement(a, 255)
		w.advance(time.Hour)
		for f := w.next(); f != nil; f = w.next() {
			if f.udp != nil && f.udp.DstPort == 547 {
				t.Fatalf("it asks again: %v", f)
			}
		}
	})
}

// If another host uses the address, the client declines it (RFC 8415 section 18.2.8).
func TestDHCPv6Decline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := managed(t, stack.InterfaceConfig{})
		w.serve6(grant6(w.asked6(time.Second)))
		w.sendND(objection(lease6))
		if m := w.asked6(time.Second); m.Type != wire.DHCPv6Decline || m.IA.Addresses[0].Addr != lease6 {
			t.Errorf("it says %+v", m)
		}
		if w.hasAddress(netip.PrefixFrom(lease6, 128)) {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
	})
}

// A server without addresses may still provide name servers.
func TestDHCPv6None(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := managed(t, stack.InterfaceConfig{NoDetection: true})
		m := w.asked6(time.Second)
		w.serve6(wire.DHCPv6{Type: wire.DHCPv6Advertise, Transaction: m.Transaction, ClientID: m.ClientID, ServerID: []byte("x"), IA: &wire.DHCPv6IA{ID: 1, Status: wire.DHCPv6NoAddrs}})
		for range 10 {
			if m := w.asked6(10 * time.Second); m.Type == wire.DHCPv6InformationRequest {
				return
			}
		}
		t.Error("it does not ask for them")
	})
}

// RFC 8415 section 18.2.6: routers advertise that only name servers are available by
// DHCPv6.
func TestInform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := listening(t, stack.InterfaceConfig{NoDetection: true})
		w.forget()
		a := advertisementB()
		a.Other = true
		w.sendAdvertisement(a, 255)
		w.advance(time.Second)
		f := w.next()
		if f == nil || f.udp == nil || f.ip.Src != wire.LinkLocal6(macA) || f.ip.Dst != netip.MustParseAddr("ff02::1:2") || f.udp.SrcPort != 546 || f.udp.DstPort != 547 {
			t.Fatalf("a question is due, and there is %v", f)
		}
		m, err := wire.ParseDHCPv6(f.data)
		if err != nil || m.Type != wire.DHCPv6InformationRequest {
			t.Fatalf("%+v, %v", m, err)
		}
		server := netip.MustParseAddr("2001:db8:1::53")
		reply := wire.DHCPv6{Type: wire.DHCPv6Reply, Transaction: m.Transaction, ClientID: m.ClientID, ServerID: []byte("x"), DNS: []netip.Addr{server, routerB}, Refresh: 3600}
		stranger := reply
		stranger.Transaction++
		w.serve6(stranger)
		fromRouter := []netip.Addr{routerB.WithZone("eth0")}
		if dns := w.s.DNS(); !slices.Equal(dns, fromRouter) {
			t.Errorf("another's answer: %v", dns)
		}
		w.serve6(reply)
		want := []netip.Addr{server, routerB.WithZone("eth0")}
		if dns := w.s.DNS(); !slices.Equal(dns, want) {
			t.Errorf("the servers are %v", dns)
		}
		a.HopLimit = 33
		w.sendAdvertisement(a, 255)
		w.advance(time.Minute)
		if dns := w.s.DNS(); !slices.Equal(dns, want) {
			t.Errorf("when routers say something else: %v", dns)
		}
		w.forget()
		w.advance(time.Hour)
		for f := w.next(); f != nil; f = w.next() {
			if f.udp != nil && f.udp.DstPort == 547 {
				return
			}
		}
		t.Error("it does not ask again when it is time to")
	})
}
