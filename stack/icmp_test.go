package stack_test

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// The tests of this file check ICMP according to RFC 792 and RFC 1122 section 3.2.2: echo messages, errors that the
// stack sends, and errors that it receives.

func TestEcho(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		echo := wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(7, 9)}
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, TOS: 0x28}, message(echo, []byte("data")))
		f := w.want("an echo request is answered", "icmp 10.0.0.1 > 10.0.0.2 type 0 code 0")
		if f.icmp.Rest != echo.Rest || string(f.data) != "data" {
			t.Errorf("the answer has %x %q, want what was asked (RFC 1122 section 3.2.2.6)", f.icmp.Rest, f.data)
		}
		if f.ip.TOS != 0x28 {
			t.Errorf("the answer has TOS %#x, want the request's", f.ip.TOS)
		}
		w.wantCount("it is counted", stack.ICMPEcho, 1)
		for _, all := range []string{"10.0.0.255", "255.255.255.255", "224.0.0.1"} {
			h := wire.IPv4{Protocol: wire.ProtoICMP, Dst: netip.MustParseAddr(all)}
			w.send(ethernet(wire.Broadcast, wire.TypeIPv4, packet(h, message(echo, nil))))
			w.wantNone("a request to all is not answered")
		}
		w.wantCount("requests to all are ignored", stack.ICMPIgnored, 3)
	})
}

func TestICMPRefused(t *testing.T) {
	echo := message(wire.ICMPv4{Type: wire.ICMPv4Echo}, []byte("data"))
	damaged := append([]byte(nil), echo...)
	damaged[9] ^= 1
	for _, c := range []struct {
		name string
		b    []byte
		want stack.Counter
	}{
		{"half a header", echo[:4], stack.ICMPMalformed},
		{"a damaged message", damaged, stack.ICMPChecksum},
		{"a message of another kind", message(wire.ICMPv4{Type: wire.ICMPv4Timestamp}, make([]byte, 12)), stack.ICMPIgnored},
		{"a reply that nobody waits for", message(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: 99}, nil), stack.ICMPIgnored},
		{"an error that quotes nothing", message(wire.ICMPv4{Type: wire.ICMPv4Unreachable}, nil), stack.ICMPMalformed},
		{"an error about what we did not send", message(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: 3},
			packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: addrA, Dst: addrB}, make([]byte, 8))), stack.ICMPIgnored},
		{"a redirect about what we did not send", message(wire.ICMPv4{Type: wire.ICMPv4Redirect},
			packet(wire.IPv4{Protocol: wire.ProtoTCP, Src: addrA, Dst: addrB}, make([]byte, 8))), stack.RedirectUnsent},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				before := w.s.Counters()
				w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP}, c.b)
				w.wantRefused(c.name, before, c.want)
				w.wantNone("nothing is said to it")
			})
		})
	}
}

func TestPortUnreachable(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		before := w.s.Counters()
		w.sendUDP(1000, 9, "anybody?")
		f := w.want("nobody listens (RFC 1122 section 4.1.3.1)", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		if len(f.data) != 20+8+8 || string(f.data[28:]) != "anybody?" {
			t.Errorf("it quotes %x, want the datagram (RFC 1812 section 4.3.2.3)", f.data)
		}
		w.wantRefused("it is counted", before, stack.UDPNoPort)
		w.sendIP(wire.IPv4{Protocol: wire.ProtoUDP}, datagram(netip.AddrPortFrom(addrB, 1000), netip.AddrPortFrom(addrA, 9), string(make([]byte, 1400))))
		f = w.want("again", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3")
		if len(f.raw) != 576 {
			t.Errorf("a long packet is quoted in %d bytes, want as much as fits into 576", len(f.raw))
		}
		w.wantCount("both were sent", stack.ICMPErrorsSent, 2)
	})
}

// RFC 1122 section 3.2.2: about some packets no ICMP error may be sent.
func TestNoErrorAbout(t *testing.T) {
	closed := func(src, dst string) []byte {
		return datagram(netip.AddrPortFrom(netip.MustParseAddr(src), 1000), netip.AddrPortFrom(netip.MustParseAddr(dst), 9), "x")
	}
	addr := netip.MustParseAddr
	for name, b := range map[string][]byte{
		"a datagram to the subnet": packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: addr("10.0.0.255")}, closed("10.0.0.2", "10.0.0.255")),
		"a datagram to all":        packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: addr("255.255.255.255")}, closed("10.0.0.2", "255.255.255.255")),
		"a datagram to a group":    packet(wire.IPv4{Protocol: wire.ProtoUDP, Dst: addr("224.0.0.1")}, closed("10.0.0.2", "224.0.0.1")),
		"a protocol to all":        packet(wire.IPv4{Protocol: 132, Dst: addr("10.0.0.255")}, make([]byte, 20)),
		"an ICMP error": packet(wire.IPv4{Protocol: wire.ProtoICMP}, message(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: 3},
			packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: addrA, Dst: addrB}, closed("10.0.0.1", "10.0.0.2")))),
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				w.send(ethernet(wire.Broadcast, wire.TypeIPv4, b))
				w.send(ethernet(macA, wire.TypeIPv4, b))
				w.advance(time.Minute)
				w.wantNone("no error about " + name)
			})
		})
	}
}

// RFC 1812 section 4.3.2.8: errors to each destination are limited to a burst of six, and then one per second.
func TestErrorsAreLimited(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		const again = "icmp 10.0.0.1 > 10.0.0.2 type 3 code 3"
		for i := range 20 {
			w.sendUDP(1000, 9, "anybody?")
			if i < 6 {
				w.want("the first are sent", again)
			}
		}
		w.wantNone("the others are not")
		w.wantCount("the others are counted", stack.ICMPLimited, 14)
		w.wantCount("every datagram is", stack.UDPNoPort, 20)
		w.advance(time.Second)
		w.sendUDP(1000, 9, "anybody?")
		w.want("a second later one more is sent", again)
	})
}

// The limits apply to the host, not to each shard: the ports of one sender belong to all
// shards.
func TestErrorsOfAllShardsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeer(t, stack.Config{Shards: 4}, pipe.Config{Depth: 256})
		for port := range uint16(100) {
			w.sendUDP(1000+port, 9, "anybody?")
		}
		w.advance(time.Millisecond)
		w.wantCount("six to one destination", stack.ICMPErrorsSent, 6)
		w.advance(time.Hour)
		for host := range byte(200) {
			src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 10 + host}), 1000)
			w.send(ethernet(macA, wire.TypeIPv4, packet(wire.IPv4{Protocol: wire.ProtoUDP, Src: src.Addr(), Dst: addrA},
				datagram(src, netip.AddrPortFrom(addrA, 9), "anybody?"))))
		}
		w.advance(time.Microsecond)
		if n := w.s.Counters(); n.Get(stack.ICMPErrorsSent) > 6+50 || n.Get(stack.ICMPErrorsSent) < 6+25 {
			t.Errorf("%d errors, want 6 and 50 in all", n.Get(stack.ICMPErrorsSent))
		}
	})
}

// Errors to this host itself are not limited, whichever address it uses
// (icmpv4_xrlim_allow and icmpv6_xrlim_allow of Linux check the device).
func TestOwnErrorsAreNotLimited(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		must(t, w.s.AddAddress("eth0", prefix("10.0.0.1/24")))
		c := mustUDP(t, w.s, 1000)
		six := mustListenUDP(t, w.s, "[::]:1001", stack.UDPOptions{})
		defer six.Close()
		defer c.Close()
		for range 20 {
			mustWriteTo(t, c, "anybody?", "10.0.0.1:9")
			mustWriteTo(t, six, "anybody?", "[2001:db8::1]:9")
		}
		w.advance(time.Millisecond)
		w.wantCount("none is kept back", stack.ICMPErrorsSent, 40)
	})
}

// An error about a datagram is reported to the socket that sent it, if the socket is
// connected (RFC 1122 section 4.1.3.3).
func TestErrorsReachUDP(t *testing.T) {
	for _, c := range []struct {
		name string
		h    wire.ICMPv4
		want error
	}{
		{"port unreachable", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, syscall.ECONNREFUSED},
		{"host unreachable, which may pass", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}, stack.ErrWouldBlock},
		{"net unreachable, which may pass", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeNetUnreachable}, stack.ErrWouldBlock},
		{"time exceeded, which may pass", wire.ICMPv4{Type: wire.ICMPv4TimeExceeded}, stack.ErrWouldBlock},
		{"net prohibited", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeNetProhibited}, syscall.ENETUNREACH},
		{"protocol unreachable", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeProtoUnreachable}, syscall.ENOPROTOOPT},
		{"prohibited", wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeAdminProhibited}, syscall.EHOSTUNREACH},
	} {
		t.Run(c.name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				connected, open := mustUDP(t, w.s, 1000), mustUDP(t, w.s, 2000)
				defer connected.Close()
				defer open.Close()
				if err := connected.Connect(netip.AddrPortFrom(addrB, 53)); err != nil {
					t.Fatal(err)
				}
				mustWriteTo(t, connected, "hello", "10.0.0.2:53")
				sent := w.want("a datagram", `udp 10.0.0.1:1000 > 10.0.0.2:53 "hello"`)
				w.sendICMP(c.h, sent.raw[:28])
				if _, _, err := connected.TryReadFrom(make([]byte, 9)); !errors.Is(err, c.want) {
					t.Errorf("reading gives %v, want %v", err, c.want)
				}
				if _, _, err := connected.TryReadFrom(make([]byte, 9)); err != stack.ErrWouldBlock {
					t.Errorf("and then %v, want the error told once", err)
				}
				mustWriteTo(t, open, "hello", "10.0.0.2:53")
				sent = w.want("a datagram", `udp 10.0.0.1:2000 > 10.0.0.2:53 "hello"`)
				w.sendICMP(c.h, sent.raw[:28])
				if err := open.Err(); err != nil {
					t.Errorf("a socket that is not connected hears %v", err)
				}
			})
		})
	}
}

func TestPingByHand(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p, err := w.s.ListenPing(netip.Addr{}, 77)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Send(addrB, 5, []byte("data")); err != nil {
			t.Fatal(err)
		}
		f := w.want("a request", "icmp 10.0.0.1 > 10.0.0.2 type 8 code 0")
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: f.icmp.Rest}, f.data)
		var b [9]byte
		n, info, err := p.TryReceive(b[:])
		if err != nil || string(b[:n]) != "data" || info.From != netip.AddrPortFrom(addrB, 5) {
			t.Errorf("the reply: %q %+v, %v", b[:n], info, err)
		}
		w.wantCount("the reply is delivered", stack.ICMPEchoReply, 1)
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}, f.raw)
		if _, _, err := p.TryReceive(b[:]); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("after the error about it: %v, want EHOSTUNREACH", err)
		}
		if _, err := w.s.ListenPing(netip.Addr{}, 77); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the same identifier again: %v, want EADDRINUSE", err)
		}
	})
}

// The data that a Pinger sends is bounded as for a UDP socket: a stuck device does not
// fill memory.
func TestPingIsBounded(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		w.stop()
		p, err := w.s.ListenPing(netip.Addr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		n := 0
		for ; n < 10000; n++ {
			if err = p.Send(addrB, 1, nil); err != nil {
				break
			}
			w.advance(0)
		}
		if err != stack.ErrWouldBlock {
			t.Errorf("after %d requests that cannot be sent: %v, want %v", n, err, stack.ErrWouldBlock)
		}
		w.start()
		if err = p.Send(addrB, 1, nil); err != nil {
			t.Errorf("once they have been sent: %v", err)
		}
	})
}
