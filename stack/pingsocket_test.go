package stack_test

import (
	"bytes"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"loam/link/pipe"
	"loam/stack"
	"loam/wire"
)

// Ping sockets according to icmp(7) and Linux's net/ipv4/ping.c: the program exchanges
// ICMP messages.

func mustPing(t testing.TB, s *stack.Stack, local string, o stack.UDPOptions) *stack.Pinger {
	t.Helper()
	p, err := s.ListenPingBy(mustAddrPort(local), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// echo returns a request with arbitrary values in identifier and checksum.
func echo(seq uint16, data string) []byte {
	b := append(make([]byte, wire.ICMPv4Len), data...)
	wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: wire.EchoRest(0xdead, seq)}.Put(b)
	b[2], b[3] = 0xba, 0xd0
	return b
}

func TestPingMessages(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p := mustPing(t, w.s, "0.0.0.0:77", stack.UDPOptions{TTL: 5, TOS: 8})
		if p.LocalAddrPort() != mustAddrPort("0.0.0.0:77") {
			t.Errorf("it is at %v", p.LocalAddrPort())
		}
		to := netip.AddrPortFrom(addrB, 4242)
		if n, err := p.TryWriteTo(echo(5, "data"), to); n != 12 || err != nil {
			t.Fatal(n, err)
		}
		f := w.want("a request", "icmp 10.0.0.1 > 10.0.0.2 type 8 code 0")
		if f.icmp.EchoID() != 77 || f.icmp.EchoSeq() != 5 || string(f.data) != "data" || f.ip.TTL != 5 || f.ip.TOS != 8 {
			t.Errorf("it has %+v %q in %+v, want the socket's identifier and options", f.icmp, f.data, f.ip)
		}
		if _, err := p.TryWriteBy(echo(6, ""), to, stack.UDPSend{TTL: 9}); err != nil {
			t.Fatal(err)
		}
		if f := w.want("one that goes its own way", "icmp 10.0.0.1 > 10.0.0.2 type 8 code 0"); f.ip.TTL != 9 {
			t.Errorf("its TTL is %d, want that of the control message", f.ip.TTL)
		}
		reply := message(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(77, 5)}, []byte("data"))
		w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, TTL: 33}, reply)
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(78, 5)}, nil)
		w.wantCount("a reply with another identifier is not for it", stack.ICMPIgnored, 1)
		var b [20]byte
		n, d, err := p.PeekFrom(b[:])
		if !bytes.Equal(b[:n], reply) || err != nil || d.From != netip.AddrPortFrom(addrB, 0) {
			t.Errorf("peeked at %x of %+v, %v; want the message as it came, from no port", b[:n], d, err)
		}
		n, d, err = p.TryReadFrom(b[:6])
		if n != 6 || d.Len != len(reply) || d.TTL != 33 || d.To.Addr() != addrA || err != nil {
			t.Errorf("read %d bytes of %+v, %v", n, d, err)
		}
		if _, _, err := p.TryReadFrom(b[:]); err != stack.ErrWouldBlock {
			t.Errorf("and then %v", err)
		}
	})
}

// icmp(7): only echo requests can be sent.
func TestPingRefuses(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p := mustPing(t, w.s, "0.0.0.0:0", stack.UDPOptions{})
		to := netip.AddrPortFrom(addrB, 0)
		for what, c := range map[string]struct {
			b    []byte
			to   netip.AddrPort
			want error
		}{
			"half a header":        {echo(1, "")[:7], to, stack.ErrInvalid},
			"a reply":              {message(wire.ICMPv4{}, nil), to, stack.ErrInvalid},
			"a code":               {message(wire.ICMPv4{Type: wire.ICMPv4Echo, Code: 1}, nil), to, stack.ErrInvalid},
			"a request of IPv6":    {message(wire.ICMPv4{Type: 128}, nil), to, stack.ErrInvalid},
			"one to nobody":        {echo(1, ""), netip.AddrPort{}, stack.ErrNoDestination},
			"one to IPv6":          {message(wire.ICMPv4{Type: 128}, nil), netip.AddrPortFrom(addrB6, 0), stack.ErrFamily},
			"one to all":           {echo(1, ""), mustAddrPort("10.0.0.255:0"), stack.ErrAccess},
			"one to elsewhere":     {echo(1, ""), mustAddrPort("192.0.2.1:0"), stack.ErrNetUnreachable},
			"more than fits":       {make([]byte, 65536), to, stack.ErrMessageTooLong},
			"more than IPv4 takes": {echo(1, string(make([]byte, stack.MaxPing+1))), to, stack.ErrMessageTooLong},
		} {
			if _, err := p.TryWriteTo(c.b, c.to); err != c.want {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		}
		w.wantNone("nothing of that is sent")
		if _, err := p.TryWriteBy(echo(1, ""), to, stack.UDPSend{Source: addrB}); err != stack.ErrInvalid {
			t.Errorf("from an address of another: %v", err)
		}
		p.Close()
		if _, err := p.TryWriteTo(echo(1, ""), to); err != stack.ErrClosed {
			t.Errorf("on a closed socket: %v", err)
		}
	})
}

// As in ping_err of Linux: without IP_RECVERR, a socket gets permanent errors only, and
// only if it is connected.
func TestPingErrors(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p := mustPing(t, w.s, "0.0.0.0:77", stack.UDPOptions{})
		to := netip.AddrPortFrom(addrB, 0)
		fails := func(code uint8) error {
			t.Helper()
			if _, err := p.TryWriteTo(echo(5, ""), to); err != nil {
				t.Fatal(err)
			}
			f := w.want("a request", "icmp 10.0.0.1 > 10.0.0.2 type 8 code 0")
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: code}, f.raw)
			return p.Err()
		}
		if err := fails(wire.CodeHostProhibited); err != nil {
			t.Errorf("without a peer: %v", err)
		}
		if err := p.Connect(to); err != nil {
			t.Fatal(err)
		}
		if err := fails(wire.CodeHostUnreachable); err != nil {
			t.Errorf("an error that may pass: %v", err)
		}
		if err := fails(wire.CodeHostProhibited); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("a final one: %v, want EHOSTUNREACH", err)
		}
		if _, err := p.TryWriteTo(echo(6, ""), netip.AddrPort{}); err != nil {
			t.Errorf("to the peer: %v", err)
		}
		w.want("it goes", "icmp 10.0.0.1 > 10.0.0.2 type 8 code 0")
	})
}

// Replies to a program that does not read are dropped and counted.
func TestPingOverflow(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		p := mustPing(t, w.s, "0.0.0.0:77", stack.UDPOptions{ReceiveBuffer: 5000})
		for range 10 {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(77, 1)}, []byte("data"))
		}
		kept, _ := p.Waiting()
		if kept == 0 || kept == 10 {
			t.Errorf("%d replies are kept", kept)
		}
		w.wantCount("the others are counted", stack.ICMPOverflow, uint64(10-kept))
		p.SetFilter(func([]byte) uint32 { return 0 })
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(77, 1)}, nil)
		w.wantCount("and what a filter does not want", stack.ICMPFiltered, 1)
	})
}

func TestPing6Messages(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		p := mustPing(t, w.s, "[::]:77", stack.UDPOptions{V6Only: true, HopLimit: 7})
		request := echo(5, "data")
		if _, err := p.TryWriteTo(request, netip.AddrPortFrom(addrB6, 0)); err != stack.ErrInvalid {
			t.Errorf("a request of IPv4: %v", err)
		}
		request[0] = byte(wire.ICMPv6Echo)
		if _, err := p.TryWriteTo(request, netip.AddrPortFrom(addrB6, 0)); err != nil {
			t.Fatal(err)
		}
		f := w.want("a request", "icmp6 2001:db8::1 > 2001:db8::2 type 128 code 0")
		if f.six.icmp.EchoID() != 77 || f.six.icmp.EchoSeq() != 5 || string(f.data) != "data" || f.ip.TTL != 7 {
			t.Errorf("it has %+v %q, hop limit %d", f.six.icmp, f.data, f.ip.TTL)
		}
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6EchoReply, Rest: wire.EchoRest(77, 5)}, []byte("data"))
		var b [20]byte
		n, d, err := p.TryReadFrom(b[:])
		want := message6(addrB6, addrA6, wire.ICMPv6{Type: wire.ICMPv6EchoReply, Rest: wire.EchoRest(77, 5)}, []byte("data"))
		if !bytes.Equal(b[:n], want) || d.From.Addr() != addrB6 || err != nil {
			t.Errorf("read %x of %+v, %v", b[:n], d, err)
		}
	})
}

// A bound socket receives replies to its address and sends from it. Sockets of both IP
// versions share one set of identifiers (ping_get_port).
func TestPingBound(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
			t.Fatal(err)
		}
		w.advance(5e9)
		w.forget()
		p := mustPing(t, w.s, "10.0.0.5:77", stack.UDPOptions{})
		if _, err := p.TryWriteTo(echo(5, ""), netip.AddrPortFrom(addrB, 0)); err != nil {
			t.Fatal(err)
		}
		w.want("from its address", "icmp 10.0.0.5 > 10.0.0.2 type 8 code 0")
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4EchoReply, Rest: wire.EchoRest(77, 5)}, nil)
		w.wantCount("a reply to another address is not for it", stack.ICMPIgnored, 1)
		if _, err := w.s.ListenPingBy(mustAddrPort("[::]:77"), stack.UDPOptions{V6Only: true}); err != stack.ErrInUse {
			t.Errorf("the identifier for IPv6: %v, want that it is in use", err)
		}
		if _, err := w.s.ListenPingBy(mustAddrPort("192.0.2.1:0"), stack.UDPOptions{}); err != stack.ErrNotAvailable {
			t.Errorf("an address of another: %v", err)
		}
	})
}

// A datagram waiting for a stuck device counts against its socket.
func TestRawIsBounded(t *testing.T) {
	byHandOn(t, pipe.Config{Depth: 1}, func(t *testing.T, w *peer) {
		w.stop()
		c := mustRaw(t, w.s, 200, "0.0.0.0")
		var err error
		for range 10000 {
			if _, err = c.TryWriteTo([]byte("x"), netip.AddrPortFrom(addrB, 0)); err != nil {
				break
			}
			w.advance(0)
		}
		if err != stack.ErrWouldBlock {
			t.Errorf("a device that is stuck: %v", err)
		}
		w.start()
	})
}
