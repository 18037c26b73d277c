package stack_test

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"loam/stack"
	"loam/stack/icmp"
	"loam/wire"
)

// IP_RECVERR of ip(7), sentence by sentence. unikernel/testdata/guest/icmp checks the
// same on Linux.

// sendICMPFrom sends a message from another address than the peer's.
func (w *peer) sendICMPFrom(from netip.Addr, h wire.ICMPv4, data []byte) {
	w.t.Helper()
	w.sendIP(wire.IPv4{Protocol: wire.ProtoICMP, Src: from, TTL: 61}, message(h, data))
}

func TestErrorQueue(t *testing.T) {
	router := address("10.0.0.254")
	for name, c := range map[string]struct {
		h    wire.ICMPv4
		err  syscall.Errno
		info uint32
	}{
		"a traceroute's":    {wire.ICMPv4{Type: wire.ICMPv4TimeExceeded}, syscall.EHOSTUNREACH, 0},
		"what may pass":     {wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeNetUnreachable}, syscall.ENETUNREACH, 0},
		"what is final":     {wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodePortUnreachable}, syscall.ECONNREFUSED, 0},
		"a host is down":    {wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnknown}, syscall.EHOSTDOWN, 0},
		"a narrow link":     {fragNeeded(1000), syscall.EMSGSIZE, 1000},
		"a bad header":      {wire.ICMPv4{Type: wire.ICMPv4ParamProblem, Rest: 9 << 24}, syscall.EPROTO, 9},
		"source quench":     {wire.ICMPv4{Type: 4}, 0, 0},
		"an unknown reason": {wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: 99}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, w *peer) {
				u := mustUDP(t, w.s, 1000)
				defer u.Close()
				u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors = true })
				mustWriteTo(t, u, "payload", "10.0.0.2:53")
				f := w.next()
				w.sendICMPFrom(router, c.h, f.raw[:32])
				if got := u.Events()&stack.Error != 0; got != (c.err != 0) {
					t.Errorf("an error is waiting: %v", got)
				}
				if err := u.Err(); c.err == 0 && err != nil || c.err != 0 && !errors.Is(err, c.err) {
					t.Errorf("SO_ERROR is %v", err)
				}
				e, ok := u.TakeError()
				if ok != (c.err != 0) || !ok {
					if ok {
						t.Errorf("there is %+v", e)
					}
					return
				}
				if !errors.Is(e.Err, c.err) || e.Local || e.Type != uint8(c.h.Type) || e.Code != c.h.Code || e.Info != c.info {
					t.Errorf("it is %+v", e)
				}
				if e.To != mustAddrPort("10.0.0.2:53") || string(e.Payload) != "payl" {
					t.Errorf("it is about %q to %v", e.Payload, e.To)
				}
				if e.Message.From.Addr() != router || e.Message.TTL != 61 || e.Message.To.Addr() != addrA {
					t.Errorf("it came from %v, %+v", e.Message.From, e.Message)
				}
				if u.Events()&stack.Error != 0 {
					t.Error("something is still waiting")
				}
			})
		})
	}
}

// IP_RECVERR_RFC4884: the position of the extensions, after the quoted datagram.
func TestErrorExtensions(t *testing.T) {
	// An extension structure with checksum 0, which means that it has none (RFC 4884 section 7).
	structure := []byte{0x20, 0, 0, 0, 0, 8, 1, 1, 'a', 'b', 'c', 'd'}
	byHand(t, func(t *testing.T, w *peer) {
		u := mustUDP(t, w.s, 1000)
		defer u.Close()
		for _, c := range []struct {
			tell bool
			h    wire.ICMPv4
			at   int
		}{
			{true, wire.ICMPv4{Type: wire.ICMPv4TimeExceeded, Rest: 32 << 16}, 100},
			{true, wire.ICMPv4{Type: wire.ICMPv4ParamProblem, Rest: 9<<24 | 33<<16}, 104},
			{true, wire.ICMPv4{Type: wire.ICMPv4TimeExceeded}, 0},
			{false, wire.ICMPv4{Type: wire.ICMPv4TimeExceeded, Rest: 32 << 16}, 0},
		} {
			u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors, o.ReportExtensions = true, c.tell })
			mustWriteTo(t, u, "payload", "10.0.0.2:53")
			quote := make([]byte, max(c.h.QuoteLen(), 128))
			copy(quote, w.next().raw)
			w.sendICMP(c.h, append(quote, structure...))
			e, ok := u.TakeError()
			if !ok || e.Extensions != (icmp.Extensions{At: c.at}) || len(e.Payload) != len(quote)-28+len(structure) {
				t.Errorf("%+v: %v, %+v", c.h, ok, e)
			}
			if c.at > 0 && string(e.Payload[c.at:]) != string(structure) {
				t.Errorf("there is %q", e.Payload[c.at:])
			}
		}
	})
	byHand6(t, func(t *testing.T, w *peer) {
		u := mustListenUDP(t, w.s, "[::]:1000", stack.UDPOptions{QueueErrors6: true, ReportExtensions6: true})
		defer u.Close()
		// at is the expected position of the extensions in the quoted payload. A parameter problem has none, since
		// its field Rest is a pointer.
		for kind, at := range map[wire.ICMPv6Type]int{wire.ICMPv6TimeExceeded: 80, wire.ICMPv6ParamProblem: 0} {
			mustWriteTo(t, u, "payload", "[2001:db8::2]:53")
			quote := make([]byte, 128)
			copy(quote, w.next().raw)
			w.sendICMP6(wire.ICMPv6{Type: kind, Rest: 16 << 24}, append(quote, structure...))
			if e, ok := u.TakeError(); !ok || e.Extensions != (icmp.Extensions{At: at}) || e.Info != 16<<24 {
				t.Errorf("%v: %v, %+v", kind, ok, e)
			}
		}
	})
}

// Every message is queued until the receive buffer is full. SO_ERROR returns the error of
// the next message.
func TestErrorQueueOrder(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		u := mustUDP(t, w.s, 1000)
		defer u.Close()
		u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors, o.ReceiveBuffer = true, 3000 })
		mustWriteTo(t, u, "payload", "10.0.0.2:53")
		f := w.next()
		codes := []uint8{wire.CodeNetUnreachable, wire.CodeHostUnreachable, wire.CodePortUnreachable}
		for i := range 10 {
			w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: codes[i%3]}, f.raw)
		}
		u.Err()
		n := 0
		for ; ; n++ {
			e, ok := u.TakeError()
			if !ok {
				break
			}
			if e.Code != codes[n%3] {
				t.Errorf("%d has code %d", n, e.Code)
			}
			if err := u.Err(); (err != nil) != (n < 4) {
				t.Errorf("after %d the error is %v", n, err)
			}
		}
		if n != 5 {
			t.Errorf("%d are kept in 3000 bytes", n)
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable}, f.raw)
		u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors = false })
		if e, ok := u.TakeError(); ok {
			t.Errorf("switched off, there is still %+v", e)
		}
	})
}

// A datagram that exceeds the path MTU is reported by this host, with the MTU.
func TestErrorQueueLocal(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		u := mustUDP(t, w.s, 1000)
		defer u.Close()
		u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors, o.Discovery = true, stack.DiscoverDo })
		if _, err := u.TryWriteTo(make([]byte, 1473), mustAddrPort("10.0.0.2:53")); !errors.Is(err, syscall.EMSGSIZE) {
			t.Fatal(err)
		}
		if err := u.Err(); err != nil {
			t.Errorf("SO_ERROR is %v", err)
		}
		if u.Events()&stack.Error == 0 {
			t.Error("nothing is waiting")
		}
		e, ok := u.TakeError()
		if !ok || !e.Local || e.Info != 1500 || e.To != mustAddrPort("10.0.0.2:0") || len(e.Payload) != 0 {
			t.Errorf("%+v, %v", e, ok)
		}
	})
}

// IPV6_DONTFRAG and IPV6_MTU: whether packets are fragmented, and the size of the
// fragments.
func TestWholePackets6(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		u, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{MaxPacket6: 1280})
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		mustWriteTo(t, u, strings.Repeat("x", 1300), "[2001:db8::2]:9")
		w.want("pieces of at most 1280 bytes", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 0 length 1232")
		w.want("the rest", "ip 2001:db8::1 > 2001:db8::2 protocol 17 offset 1232 length 76")
		u.SetOptions(func(o *stack.UDPOptions) { o.Whole6, o.QueueErrors6 = true, true })
		mustWriteTo(t, u, strings.Repeat("x", 1232), "[2001:db8::2]:9")
		w.next()
		if _, err := u.TryWriteTo(make([]byte, 1233), mustAddrPort("[2001:db8::2]:9")); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("a byte too many: %v", err)
		}
		if e, ok := u.TakeError(); !ok || !e.Local || e.Info != 1280 {
			t.Errorf("%+v, %v", e, ok)
		}
		w.wantNone("nothing is sent")
	})
}

// A next hop that does not answer is reported as if this host had sent the message.
func TestErrorQueueNoNeighbour(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		u := mustUDP(t, w.s, 1000)
		defer u.Close()
		u.SetOptions(func(o *stack.UDPOptions) { o.QueueErrors = true })
		mustWriteTo(t, u, "x", "10.0.0.77:53")
		w.advance(10e9)
		e, ok := u.TakeError()
		if !ok || !errors.Is(e.Err, syscall.EHOSTUNREACH) || e.Message.From.Addr() != addrA || e.Code != wire.CodeHostUnreachable {
			t.Errorf("%+v, %v", e, ok)
		}
		w.forget()
	})
}

// Ping sockets queue the request that caused an error, starting at its ICMP header, also for IPv6.
func TestErrorQueuePing(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		p, err := w.s.ListenPingBy(mustAddrPort("[::]:77"), stack.UDPOptions{QueueErrors6: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Send(addrB6, 5, []byte("data")); err != nil {
			t.Fatal(err)
		}
		f := w.next()
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6Unreachable, Code: 1, Rest: 0}, f.raw)
		e, ok := p.TakeError()
		if !ok || !errors.Is(e.Err, syscall.EACCES) || e.To != netip.AddrPortFrom(addrB6, 0) || string(e.Payload) != string(f.raw[40:]) {
			t.Errorf("%+v, %v", e, ok)
		}
	})
}

// IP_RECVERR for TCP: transient errors are reported once, and the connection continues.
func TestSoftErrorsTCP(t *testing.T) {
	openByHand(t, func(t *testing.T, w *peer, p *tcpPeer, c *stack.TCPConn) {
		unreachable := wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeHostUnreachable}
		tell := func() {
			mustWrite(t, c, "x")
			f := p.want("a segment", "A", "x")
			w.sendICMP(unreachable, f.raw[:28])
			p.send(wire.ACK, "")
		}
		tell()
		if err := c.Err(); err != nil || c.Events()&stack.Error != 0 {
			t.Errorf("without the option: %v", err)
		}
		c.SetOptions(func(o *stack.TCPOptions) { o.SoftErrors = true })
		tell()
		if c.Events()&stack.Error == 0 {
			t.Error("no error is waiting")
		}
		if _, err := c.TryRead(make([]byte, 1)); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("a read: %v", err)
		}
		if _, err := c.TryRead(make([]byte, 1)); err != stack.ErrWouldBlock {
			t.Errorf("the next one: %v", err)
		}
		tell()
		if _, err := c.TryWrite([]byte("y")); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("a write: %v", err)
		}
		tell()
		if err := c.Err(); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("SO_ERROR: %v", err)
		}
		p.send(wire.ACK, "still here")
		if n, err := c.TryRead(make([]byte, 20)); n != 10 || err != nil {
			t.Errorf("the connection goes on: %d, %v", n, err)
		}
		w.forget()
		c.Abort()
	})
}
