package stack_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/dhcp"
	"loam/wire"
)

// DHCP on an interface (RFC 2131). In these tests, the stack's peer runs the DHCP server of package dhcp. The server
// answers when the script calls leasing.answer.

// leasing is a peer with a DHCP server.
type leasing struct {
	*peer
	server *dhcp.Server
	began  time.Time
}

// dhcpScript runs a script on a stack without an address.
func dhcpScript(t *testing.T, script func(t *testing.T, w *leasing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &leasing{peer: newBarePeer(t, stack.Config{Shards: 2, NoIPv6: true}, pipe.Config{}), began: time.Now()}
		w.serve(dhcp.ServerConfig{})
		script(t, w)
	})
}

// serve makes the peer a DHCP server at 10.0.0.2 with the pool 10.0.0.100 and 10.0.0.101.
func (w *leasing) serve(c dhcp.ServerConfig) {
	c.Addr, c.First, c.Last = netip.PrefixFrom(addrB, 24), address("10.0.0.100"), address("10.0.0.101")
	c.LeaseTime = 10 * time.Minute
	c.Authoritative = true
	if c.Routers == nil {
		c.Routers = []netip.Addr{addrB}
	}
	if c.DNS == nil {
		c.DNS = []netip.Addr{addrB}
	}
	server, err := dhcp.NewServer(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = server
}

// wantMessage checks that the next frame is a DHCP message of a type.
func (w *leasing) wantMessage(sentence string, kind wire.DHCPv4Type) (*seen, wire.DHCPv4) {
	w.t.Helper()
	f := w.next()
	if f == nil || f.udp == nil || f.udp.SrcPort != 68 || f.udp.DstPort != 67 {
		w.t.Fatalf("%s: there is %v on the wire, want a DHCP message", sentence, f)
	}
	m, err := wire.ParseDHCPv4(f.data)
	if err != nil || m.MessageType() != kind {
		w.t.Fatalf("%s: there is message type %d, %v; want %d", sentence, m.MessageType(), err, kind)
	}
	return f, m
}

// answer calls wantMessage, and then sends the server's reply.
func (w *leasing) answer(sentence string, kind wire.DHCPv4Type) *seen {
	w.t.Helper()
	f, m := w.wantMessage(sentence, kind)
	reply, ok := w.server.Handle(time.Since(w.began), &m)
	if !ok {
		w.t.Fatalf("%s: the server does not answer", sentence)
	}
	mac := reply.MAC
	if mac.IsZero() {
		mac = macA
	}
	if reply.Dst.Addr() == address("255.255.255.255") {
		mac = wire.Broadcast
	}
	h := wire.IPv4{Protocol: wire.ProtoUDP, Src: reply.Src.Addr(), Dst: reply.Dst.Addr()}
	w.send(ethernet(mac, wire.TypeIPv4, packet(h, datagram(reply.Src, reply.Dst, string(reply.Data)))))
	return f
}

// waitFrame lets time pass until a frame is on the wire, at most d.
func (w *leasing) waitFrame(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !w.hasNew(); {
		w.advance(time.Second)
	}
}

// lease runs DHCP until the first lease.
func (w *leasing) lease() dhcp.Lease {
	w.t.Helper()
	var lease dhcp.Lease
	done := blocked(func() (err error) {
		lease, err = w.ifc.DHCP(context.Background(), "loam")
		return err
	})
	w.answer("the client looks for servers", wire.DHCPv4Discover)
	w.answer("it takes the offer", wire.DHCPv4Request)
	if err := <-done; err != nil {
		w.t.Fatalf("DHCP: %v", err)
	}
	return lease
}

func TestDHCP(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		var lease dhcp.Lease
		done := blocked(func() (err error) {
			lease, err = w.ifc.DHCP(context.Background(), "loam")
			return err
		})
		f := w.answer("the client looks for servers", wire.DHCPv4Discover)
		if f.eth.Dst != wire.Broadcast || f.ip.Src != address("0.0.0.0") || f.ip.Dst != address("255.255.255.255") {
			t.Errorf("DISCOVER goes from %v to %v (%v), want from nobody to all", f.ip.Src, f.ip.Dst, f.eth.Dst)
		}
		w.answer("it takes the offer", wire.DHCPv4Request)
		if err := <-done; err != nil || lease.Addr != prefix("10.0.0.100/24") {
			t.Fatalf("the lease: %v, %v", lease.Addr, err)
		}
		if !slices.Contains(w.s.Addresses(), stack.Address{Interface: "eth0", Prefix: prefix("10.0.0.100/24")}) {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
		if r := w.s.Routes(); len(r) != 1 || r[0].Dst != prefix("0.0.0.0/0") || r[0].Gateway != addrB {
			t.Errorf("the routes are %v, want the default by %v", r, addrB)
		}
		if !slices.Equal(w.s.DNS(), []netip.Addr{addrB}) {
			t.Errorf("the DNS servers are %v", w.s.DNS())
		}
		w.ifc.SetNeighbour(addrB, macB)
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		mustWriteTo(t, c, "hello", "8.8.8.8:53")
		w.want("the world can be reached", `udp 10.0.0.100:1000 > 8.8.8.8:53 "hello"`)
		again, err := w.ifc.DHCP(context.Background(), "loam")
		if err != nil || again.Addr != lease.Addr {
			t.Errorf("asked again: %v, %v; want the lease that is there", again.Addr, err)
		}
	})
}

// RFC 2131 section 4.1: without a reply, the client retransmits with growing intervals. A
// waiting call can be cancelled.
func TestDHCPNobodyThere(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := w.ifc.DHCP(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("DHCP: %v, want %v", err, context.DeadlineExceeded)
		}
		n := 0
		for w.next() != nil {
			n++
		}
		if n < 3 || n > 6 {
			t.Errorf("in a minute %d messages were sent", n)
		}
		w.waitFrame(2 * time.Minute)
		w.answer("the client goes on trying", wire.DHCPv4Discover)
		w.answer("and takes what it finds", wire.DHCPv4Request)
		if len(w.s.Addresses()) != 2 {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
	})
}

func TestDHCPRenews(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		w.lease()
		w.arps = true
		w.advance(4 * time.Minute)
		w.forget()
		w.advance(time.Second)
		w.wantNone("long before half of the lease there is nothing to do")
		w.serve(dhcp.ServerConfig{Routers: []netip.Addr{address("10.0.0.9")}, DNS: []netip.Addr{address("10.0.0.8")}})
		w.waitFrame(2 * time.Minute)
		w.want("the server is looked for", "arp who-has 10.0.0.2 tell 10.0.0.100")
		w.sendARP(wire.ARP{Op: wire.ARPReply, TargetMAC: macA, TargetIP: address("10.0.0.100")})
		f := w.answer("about T1 the server is asked to extend it (RFC 2131 section 4.4.5)", wire.DHCPv4Request)
		if f.ip.Src != address("10.0.0.100") || f.ip.Dst != addrB || f.eth.Dst != macB {
			t.Errorf("REQUEST goes from %v to %v (%v), want to the server alone", f.ip.Src, f.ip.Dst, f.eth.Dst)
		}
		if r := w.s.Routes(); len(r) != 1 || r[0].Gateway != address("10.0.0.9") {
			t.Errorf("the routes are %v, want what the server says now", r)
		}
		if !slices.Equal(w.s.DNS(), []netip.Addr{address("10.0.0.8")}) {
			t.Errorf("the DNS servers are %v, want what the server says now", w.s.DNS())
		}
		w.forget()
		w.advance(3 * time.Minute)
		w.wantNone("then there is peace")
	})
}

func TestDHCPExpires(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		w.lease()
		c := mustUDP(t, w.s, 1000)
		defer c.Close()
		w.advance(11 * time.Minute)
		if len(w.s.Addresses()) != 1 || len(w.s.Routes()) != 0 {
			t.Errorf("after the lease there are %v and %v", w.s.Addresses(), w.s.Routes())
		}
		if _, err := c.TryWriteTo([]byte("x"), mustAddrPort("8.8.8.8:53")); !errors.Is(err, stack.ErrNetUnreachable) {
			t.Errorf("write: %v, want %v", err, stack.ErrNetUnreachable)
		}
		w.forget()
		w.waitFrame(2 * time.Minute)
		w.answer("the client begins again", wire.DHCPv4Discover)
		w.answer("and gets a lease", wire.DHCPv4Request)
		if len(w.s.Addresses()) != 2 {
			t.Errorf("the addresses are %v", w.s.Addresses())
		}
	})
}

func TestDHCPRelease(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		w.lease()
		w.ifc.ReleaseDHCP()
		w.wantMessage("the lease is given back", wire.DHCPv4Release)
		if len(w.s.Addresses()) != 1 || len(w.s.Routes()) != 0 {
			t.Errorf("there are still %v and %v", w.s.Addresses(), w.s.Routes())
		}
		w.advance(time.Hour)
		w.wantNone("and that is all")
		w.ifc.ReleaseDHCP()
		w.wantNone("there is nothing to give back")
	})
}

// If another host uses the address, the client declines it, and the server later offers
// another one.
func TestDHCPConflict(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		lease := w.lease()
		w.advance(5 * time.Second)
		w.forget()
		claim := wire.ARP{Op: wire.ARPReply, SenderIP: lease.Addr.Addr(), TargetMAC: macA, TargetIP: lease.Addr.Addr()}
		w.sendARP(claim)
		w.sendARP(claim)
		_, m := w.wantMessage("the address is declined at once", wire.DHCPv4Decline)
		w.server.Handle(time.Since(w.began), &m)
		if len(w.s.Addresses()) != 1 {
			t.Errorf("there are still %v", w.s.Addresses())
		}
		w.advance(11 * time.Second)
		w.answer("ten seconds later the client begins again (RFC 2131 section 3.1)", wire.DHCPv4Discover)
		w.answer("it takes the offer", wire.DHCPv4Request)
		if !slices.Contains(w.s.Addresses(), stack.Address{Interface: "eth0", Prefix: prefix("10.0.0.101/24")}) {
			t.Errorf("the addresses are %v, want another one", w.s.Addresses())
		}
	})
}

// Malformed and unexpected messages to the client port do no harm.
func TestDHCPHostile(t *testing.T) {
	dhcpScript(t, func(t *testing.T, w *leasing) {
		to := netip.AddrPortFrom(address("255.255.255.255"), 68)
		send := func(data string) {
			h := wire.IPv4{Protocol: wire.ProtoUDP, Dst: to.Addr()}
			w.send(ethernet(wire.Broadcast, wire.TypeIPv4, packet(h, datagram(netip.AddrPortFrom(addrB, 67), to, data))))
		}
		send("nobody asked")
		w.wantCount("without a client it is a datagram that nobody wants", stack.UDPNoPort, 1)
		done := blocked(func() error { _, err := w.ifc.DHCP(context.Background(), ""); return err })
		send("not DHCP")
		w.wantCount("what is malformed is counted", stack.UDPMalformed, 1)
		b := datagram(netip.AddrPortFrom(addrB, 67), to, "damaged")
		b[9] ^= 1
		w.send(ethernet(wire.Broadcast, wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: to.Addr()}, b)))
		w.wantCount("and what is damaged", stack.UDPChecksum, 1)
		w.hold()
		for range 100 {
			send("not DHCP")
		}
		w.release()
		c := w.s.Counters()
		if c.Get(stack.UDPMalformed)+c.Get(stack.UDPOverflow) != 101 {
			t.Errorf("of a flood %d were looked at and %d dropped, want 101", c.Get(stack.UDPMalformed), c.Get(stack.UDPOverflow))
		}
		w.answer("the client is not disturbed", wire.DHCPv4Discover)
		w.answer("it takes the offer", wire.DHCPv4Request)
		if err := <-done; err != nil {
			t.Errorf("DHCP: %v", err)
		}
	})
}
