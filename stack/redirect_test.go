package stack_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// Redirects: RFC 1122 sections 3.2.2.2 and 3.3.1.2, RFC 4861 section 8.

var (
	macC    = wire.MAC{2, 0, 0, 0, 0, 0xc}
	addrC   = netip.MustParseAddr("10.0.0.3") // address of another router, according to redirects
	far     = "198.51.100.1:9"
	routerC = wire.LinkLocal6(macC)
	far6    = netip.MustParseAddr("2001:db8:f::1")
)

// redirectTo returns a redirect to a gateway, for a host.
func redirectTo(gateway netip.Addr) wire.ICMPv4 {
	b := gateway.As4()
	return wire.ICMPv4{Type: wire.ICMPv4Redirect, Code: 1, Rest: uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])}
}

// routed returns a socket of a stack whose default gateway is the peer.
func (w *peer) routed(route stack.Route) *stack.UDPConn {
	w.t.Helper()
	if err := w.s.AddRoute(route); err != nil {
		w.t.Fatal(err)
	}
	local := mustAddrPort("0.0.0.0:1000")
	if route.Dst.Addr().Is6() {
		local = mustAddrPort("[::]:1000")
	}
	c, err := w.s.ListenUDP(local, stack.UDPOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

var wayOut = stack.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateway: addrB}

// wantHop writes a datagram and checks the station it is sent to.
func (w *peer) wantHop(sentence string, c *stack.UDPConn, to string, mac wire.MAC) *seen {
	w.t.Helper()
	mustWriteTo(w.t, c, "hello", to)
	f := w.next()
	if f == nil || f.udp == nil {
		w.t.Fatalf("%s: there is %v on the wire", sentence, f)
	}
	if f.eth.Dst != mac {
		w.t.Errorf("%s: it goes to %v, want %v", sentence, f.eth.Dst, mac)
	}
	return f
}

func TestRedirect(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := w.routed(wayOut)
		w.ifc.SetNeighbour(addrC, macC)
		f := w.wantHop("by the gateway", c, far, macB)
		w.sendICMP(redirectTo(addrC), f.raw[:28])
		w.wantCount("the gateway names another one", stack.RedirectFollowed, 1)
		w.wantHop("which is used from then on", c, far, macC)
		w.wantHop("for this host only", c, "198.51.100.2:9", macB)
		if n := len(w.s.Routes()); n != 1 {
			t.Errorf("there are %d routes: it is none", n)
		}
		syn := w.wantHop("what tables are made anew", c, far, macC)
		if err := w.s.AddAddress("eth0", netip.MustParsePrefix("10.0.0.9/32")); err != nil {
			t.Fatal(err)
		}
		w.advance(0)
		w.wantHop("keep it", c, far, macC)
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Src: addrC}, message(redirectTo(addrB), syn.raw[:28]))
		w.wantHop("the other one gives it back", c, far, macB)
		w.sendICMP(redirectTo(addrC), f.raw[:28])
		w.wantHop("and it is given away again", c, far, macC)
		w.advance(5 * time.Minute)
		w.wantHop("for five minutes", c, far, macB)
	})
}

// An existing connection follows redirects too; they must quote data in flight.
func TestRedirectTCP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.routed(wayOut)
		w.ifc.SetNeighbour(addrC, macC)
		c, err := w.s.DialTCP(netip.AddrPort{}, mustAddrPort("198.51.100.1:80"), stack.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Abort()
		syn := w.next()
		forged := append([]byte(nil), syn.raw[:28]...)
		forged[24]++ // makes the quoted sequence number one that is not in flight
		w.sendICMP(redirectTo(addrC), forged)
		w.wantCount("about a segment that was not sent", stack.RedirectUnsent, 1)
		w.sendICMP(redirectTo(addrC), syn.raw[:28])
		w.advance(1100 * time.Millisecond)
		if again := w.next(); again == nil || again.eth.Dst != macC {
			t.Errorf("the SYN is sent again by %v", again)
		}
	})
}

// If the router that a redirect names does not answer, it is not used, and no error is reported because the gateway
// still works.
func TestRedirectToNobody(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := w.routed(wayOut)
		f := w.wantHop("by the gateway", c, far, macB)
		w.sendICMP(redirectTo(addrC), f.raw[:28])
		mustWriteTo(t, c, "lost", far)
		w.wantNone("it is asked for")
		w.advance(4 * time.Second)
		w.wantCount("in vain", stack.NeighFailed, 1)
		if err := c.Err(); err != nil {
			t.Errorf("the program hears %v", err)
		}
		w.wantHop("the gateway has it again", c, far, macB)
	})
}

// Redirects from the wrong sender or with invalid content are rejected.
func TestRedirectsRefused(t *testing.T) {
	stranger := netip.MustParseAddr("10.0.0.7")
	for _, test := range []struct {
		sentence string
		from     netip.Addr
		to       netip.Addr
		spoil    func(h *wire.ICMPv4, quoted []byte) []byte
		want     stack.Counter
	}{
		{"from another than the first hop", stranger, addrC, nil, stack.RedirectStranger},
		{"from far away", netip.MustParseAddr("203.0.113.1"), addrC, nil, stack.RedirectStranger},
		{"to another network", addrB, netip.MustParseAddr("192.0.2.1"), nil, stack.RedirectOffLink},
		{"to ourselves", addrB, addrA, nil, stack.RedirectOffLink},
		{"to everybody", addrB, netip.MustParseAddr("10.0.0.255"), nil, stack.RedirectOffLink},
		{"to a group", addrB, netip.MustParseAddr("224.0.0.1"), nil, stack.RedirectOffLink},
		{"to nobody", addrB, netip.IPv4Unspecified(), nil, stack.RedirectOffLink},
		{"to itself", addrB, addrB, nil, stack.RedirectOffLink},
		{"about what no socket has sent", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { q[21]++; return q }, stack.RedirectUnsent},
		{"about a protocol that nobody speaks", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { q[9] = 99; return q }, stack.RedirectUnsent},
		{"about a neighbour", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { copy(q[16:], []byte{10, 0, 0, 2}); return q }, stack.RedirectStranger},
		{"about ourselves", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { copy(q[16:], []byte{10, 0, 0, 1}); return q }, stack.RedirectStranger},
		{"about a group", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { copy(q[16:], []byte{239, 1, 1, 1}); return q }, stack.RedirectStranger},
		{"about nothing", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { return nil }, stack.ICMPMalformed},
		{"about half a header", addrB, addrC, func(_ *wire.ICMPv4, q []byte) []byte { return q[:27] }, stack.ICMPMalformed},
		{"with a code that there is not", addrB, addrC, func(h *wire.ICMPv4, q []byte) []byte { h.Code = 4; return q }, stack.ICMPMalformed},
	} {
		t.Run(test.sentence, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				c := w.routed(wayOut)
				w.ifc.SetNeighbour(addrC, macC)
				quoted := append([]byte(nil), w.wantHop("by the gateway", c, far, macB).raw[:28]...)
				h := redirectTo(test.to)
				if test.spoil != nil {
					quoted = test.spoil(&h, quoted)
				}
				before := w.s.Counters()
				w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Src: test.from}, message(h, quoted))
				w.wantRefused(test.sentence, before, test.want)
				w.wantHop("by the gateway as before", c, far, macB)
			})
		})
	}
}

// A gateway's stack is not a host of the guest's link, and a router follows no redirects
// (RFC 4861 section 8.3).
func TestRedirectsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := attachPeer(t, stack.New(stack.Config{Shards: 1}), pipe.Config{}, stack.InterfaceConfig{AcceptAny: true, NoDetection: true}).introduce()
		c := w.routed(wayOut)
		f := w.wantHop("by the peer", c, far, macB)
		w.sendICMP(redirectTo(addrC), f.raw[:28])
		w.sendRedirect(routerB, wire.Redirect{Target: routerC, Dst: far6}, 255)
		w.wantCount("any address is its own", stack.RedirectIgnored, 2)
	})
	byHand6(t, func(t *testing.T, w *peer) {
		if err := w.ifc.Advertise(wire.RouterAdvertisement{}); err != nil {
			t.Fatal(err)
		}
		w.sendRedirect(routerB, wire.Redirect{Target: routerC, Dst: far6}, 255)
		w.wantCount("it is a router", stack.RedirectIgnored, 1)
	})
}

// sendRedirect sends a redirect to the stack.
func (w *peer) sendRedirect(from netip.Addr, r wire.Redirect, hops uint8) {
	w.t.Helper()
	b := make([]byte, r.Len())
	r.Put(b)
	wire.PutICMPv6Checksum(b, from, addrA6)
	w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: hops, Src: from}, b)
}

// routed6 runs a script with a peer that is the router, by its link-local address.
func routed6(t *testing.T, script func(w *peer, c *stack.UDPConn)) {
	t.Helper()
	byHand6(t, func(t *testing.T, w *peer) {
		w.ifc.SetNeighbour(routerB, macB)
		script(w, w.routed(stack.Route{Dst: netip.MustParsePrefix("::/0"), Gateway: routerB, Interface: "eth0"}))
	})
}

func TestRedirect6(t *testing.T) {
	to := netip.AddrPortFrom(far6, 9).String()
	routed6(t, func(w *peer, c *stack.UDPConn) {
		w.wantHop("by the router", c, to, macB)
		w.sendRedirect(routerB, wire.Redirect{Target: routerC, Dst: far6, LinkAddr: macC}, 255)
		w.wantCount("the router names another one", stack.RedirectFollowed, 1)
		w.wantHop("which is where it said (section 8.3)", c, to, macC)
		w.wantHop("for this host only", c, "[2001:db8:f::2]:9", macB)
		w.sendND(advertised(routerC, macC))
		w.wantHop("it says that it is no router (section 7.2.5)", c, to, macB)
		w.forget()
		w.sendRedirect(routerB, wire.Redirect{Target: far6, Dst: far6, LinkAddr: macC}, 255)
		w.wantHop("the host is on the link", c, to, macC)
		w.sendND(advertised(far6, macC))
		w.wantHop("and no router, which it need not be", c, to, macC)
		w.advance(20 * time.Second)
		w.forget()
		w.wantHop("by the router, when nobody answers", c, to, macB)
	})
}

// advertised returns a neighbor advertisement of a host.
func advertised(target netip.Addr, mac wire.MAC) neigh.Message {
	return neigh.Message{
		Neighbor: wire.Neighbor{Advertisement: true, Target: target, LinkAddr: mac, Override: true},
		Src:      target, Dst: addrA6, MAC: macA,
	}
}

// RFC 4861 section 8.1; wire.ParseRedirect checks the message itself.
func TestRedirects6Refused(t *testing.T) {
	to := netip.AddrPortFrom(far6, 9).String()
	good := wire.Redirect{Target: routerC, Dst: far6, LinkAddr: macC}
	for _, test := range []struct {
		sentence string
		from     netip.Addr
		hops     uint8
		r        wire.Redirect
		want     stack.Counter
	}{
		{"it has passed a router", routerB, 254, good, stack.NDMalformed},
		{"not from a link-local address", addrB6, 255, good, stack.NDMalformed},
		{"not from the first hop", wire.LinkLocal6(wire.MAC{2, 7}), 255, good, stack.RedirectStranger},
		{"about a neighbour", routerB, 255, wire.Redirect{Target: routerC, Dst: addrB6}, stack.RedirectStranger},
		{"about ourselves", routerB, 255, wire.Redirect{Target: routerC, Dst: addrA6}, stack.RedirectStranger},
		{"to ourselves", routerB, 255, wire.Redirect{Target: wire.LinkLocal6(macA), Dst: far6}, stack.RedirectOffLink},
		{"to itself", routerB, 255, wire.Redirect{Target: routerB, Dst: far6}, stack.RedirectOffLink},
		{"to another network", routerB, 255, wire.Redirect{Target: addrB6, Dst: far6}, stack.NDMalformed},
	} {
		t.Run(test.sentence, func(t *testing.T) {
			routed6(t, func(w *peer, c *stack.UDPConn) {
				before := w.s.Counters()
				w.sendRedirect(test.from, test.r, test.hops)
				w.wantRefused(test.sentence, before, test.want)
				w.wantHop("by the router as before", c, to, macB)
			})
		})
	}
}

// In a flood of redirects, a bounded number is accepted, each for its normal lifetime.
func TestRedirectFlood(t *testing.T) {
	routed6(t, func(w *peer, c *stack.UDPConn) {
		b := far6.As16()
		for i := range 1000 {
			b[14], b[15] = byte(i>>8), byte(i)
			w.sendRedirect(routerB, wire.Redirect{Target: routerC, Dst: netip.AddrFrom16(b), LinkAddr: macC}, 255)
		}
		w.wantCount("as many as there is room for", stack.RedirectFollowed, 256)
		w.wantCount("and the others not", stack.RedirectOverflow, 744)
		w.wantHop("one of these", c, "[2001:db8:f::3e7]:9", macB)
	})
}
