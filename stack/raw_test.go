package stack_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// Raw sockets according to raw(7) and ipv6(7).

func mustRaw(t testing.TB, s *stack.Stack, proto wire.Protocol, local string) *stack.RawConn {
	t.Helper()
	c, err := s.ListenRaw(proto, netip.MustParseAddr(local), stack.UDPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// wantRaw checks the next packet that a socket has received.
func wantRaw(t *testing.T, sentence string, c *stack.RawConn, want []byte, from netip.Addr) stack.Datagram {
	t.Helper()
	synctest.Wait()
	b := make([]byte, 2000)
	n, d, err := c.TryReadFrom(b)
	if err != nil || !bytes.Equal(b[:n], want) || d.From != netip.AddrPortFrom(from, 0) {
		t.Errorf("%s: %x from %v, %v; want %x from %v", sentence, b[:n], d.From, err, want, from)
	}
	return d
}

func wantNoRaw(t *testing.T, sentence string, c *stack.RawConn) {
	t.Helper()
	synctest.Wait()
	if n, _ := c.Waiting(); n != 0 {
		t.Errorf("%s: it has %d packets", sentence, n)
	}
	c.TryReadFrom(nil)
}

// A socket receives a copy of packets that the stack processes itself, with the IP
// header.
func TestRawHearsICMP(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, wire.ProtoICMP, "0.0.0.0")
		if c.LocalAddrPort() != mustAddrPort("0.0.0.0:1") {
			t.Errorf("it is at %v, want the protocol as its port", c.LocalAddrPort())
		}
		request := packet(wire.IPv4{Protocol: wire.ProtoICMP, TTL: 9}, message(wire.ICMPv4{Type: wire.ICMPv4Echo, Rest: 7}, []byte("data")))
		w.send(ethernet(macA, wire.TypeIPv4, request))
		w.want("the request is answered", "icmp 10.0.0.1 > 10.0.0.2 type 0 code 0")
		if d := wantRaw(t, "and heard", c, request, addrB); d.TTL != 9 || d.To.Addr() != addrA {
			t.Errorf("with %+v", d)
		}
		timestamp := packet(wire.IPv4{Protocol: wire.ProtoICMP}, message(wire.ICMPv4{Type: wire.ICMPv4Timestamp}, make([]byte, 12)))
		w.send(ethernet(macA, wire.TypeIPv4, timestamp))
		wantRaw(t, "what the stack does not take", c, timestamp, addrB)
		c.BlockTypes([8]uint32{1 << 8})
		w.send(ethernet(macA, wire.TypeIPv4, request))
		wantNoRaw(t, "a type that it blocks (ICMP_FILTER)", c)
		w.wantCount("is counted", stack.RawFiltered, 1)
		w.sendUDP(1000, 9, "anybody?")
		wantNoRaw(t, "another protocol", c)
		w.wantCount("two copies were made", stack.RawReceived, 2)
	})
}

// Packets that neither a socket nor the stack accepts are rejected; packets received by a
// raw socket are not.
func TestRawTakesItsProtocol(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		w.sendIP(wire.IPv4{Protocol: 132}, []byte("sctp"))
		w.want("nobody speaks it", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 2")
		c := mustRaw(t, w.s, 132, "0.0.0.0")
		heard := packet(wire.IPv4{Protocol: 132}, []byte("sctp"))
		w.send(ethernet(macA, wire.TypeIPv4, heard))
		w.wantNone("somebody does")
		wantRaw(t, "a packet of its protocol", c, heard, addrB)
		if _, err := c.TryWriteTo([]byte("answer"), netip.AddrPortFrom(addrB, 99)); err != nil {
			t.Fatal(err)
		}
		f := w.want("an answer", "ip 10.0.0.1 > 10.0.0.2 protocol 132 offset 0 length 6")
		if string(f.raw[20:]) != "answer" {
			t.Errorf("it is %q", f.raw[20:])
		}
		c.Close()
		w.send(ethernet(macA, wire.TypeIPv4, heard))
		w.want("nobody does any more", "icmp 10.0.0.1 > 10.0.0.2 type 3 code 2")
	})
}

// A raw socket that is bound or connected receives only packets to its address or from its peer.
func TestRawDemux(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		if err := w.s.AddAddress("eth0", prefix("10.0.0.5/24")); err != nil {
			t.Fatal(err)
		}
		all, bound, connected := mustRaw(t, w.s, 132, "0.0.0.0"), mustRaw(t, w.s, 132, "0.0.0.0"), mustRaw(t, w.s, 132, "0.0.0.0")
		if err := bound.Bind(netip.MustParseAddr("10.0.0.5")); err != nil {
			t.Fatal(err)
		}
		if err := connected.Connect(netip.AddrPortFrom(addrB, 0)); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			sentence, src, dst       string
			atAll, atBound, atPeered int
		}{
			{"to the first address", "10.0.0.2", "10.0.0.1", 1, 0, 1},
			{"to the second", "10.0.0.2", "10.0.0.5", 1, 1, 1},
			{"from somebody else", "10.0.0.3", "10.0.0.5", 1, 1, 0},
			{"to all of the network", "10.0.0.2", "10.0.0.255", 1, 0, 1},
			{"to all hosts", "10.0.0.2", "224.0.0.1", 1, 0, 1},
			{"to a group that nobody has joined", "10.0.0.2", "239.1.2.3", 0, 0, 0},
		} {
			dst := netip.MustParseAddr(c.dst)
			station := macA
			if c.dst == "10.0.0.255" || dst.IsMulticast() {
				station = wire.Broadcast
			}
			w.send(ethernet(station, wire.TypeIPv4, packet(wire.IPv4{Protocol: 132, Src: netip.MustParseAddr(c.src), Dst: dst}, []byte("x"))))
			synctest.Wait()
			for i, s := range []*stack.RawConn{all, bound, connected} {
				n, _ := s.Waiting()
				if want := []int{c.atAll, c.atBound, c.atPeered}[i]; n != want {
					t.Errorf("%s: socket %d has %d packets, want %d", c.sentence, i, n, want)
				}
				s.TryReadFrom(nil)
			}
		}
		if _, err := bound.TryWriteTo([]byte("x"), netip.AddrPortFrom(addrB, 0)); err != nil {
			t.Fatal(err)
		}
		w.advance(5e9)
		w.want("from where it is bound", "ip 10.0.0.5 > 10.0.0.2 protocol 132 offset 0 length 1")
		if err := all.JoinGroup(netip.MustParseAddr("239.1.2.3"), nil); err != nil {
			t.Fatal(err)
		}
		h := wire.IPv4{Protocol: 132, Dst: netip.MustParseAddr("239.1.2.3")}
		w.send(ethernet(wire.Broadcast, wire.TypeIPv4, packet(h, nil)))
		wantRaw(t, "to a group that it has joined", all, packet(h, nil), addrB)
	})
}

// With IP_HDRINCL, the program writes the IP header. The stack computes length and checksum, and fills in other
// fields that are zero.
func TestRawWithHeader(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, stack.ProtoRaw, "0.0.0.0")
		to := netip.AddrPortFrom(addrB, 0)
		b := packet(wire.IPv4{Protocol: 200, TTL: 3, Src: netip.MustParseAddr("10.0.0.77"), Dst: addrB}, []byte("data"))
		b[2], b[3], b[4], b[5], b[10], b[11] = 0, 0, 0, 0, 1, 2
		if _, err := c.TryWriteTo(b, to); err != nil {
			t.Fatal(err)
		}
		f := w.want("a packet of somebody else's", "ip 10.0.0.77 > 10.0.0.2 protocol 200 offset 0 length 4")
		if f.ip.TTL != 3 || !wire.IPv4ChecksumOK(f.raw) {
			t.Errorf("its header is %+v", f.ip)
		}
		copy(b[12:16], make([]byte, 4))
		if _, err := c.TryWriteTo(b, to); err != nil {
			t.Fatal(err)
		}
		w.want("one without a source", "ip 10.0.0.1 > 10.0.0.2 protocol 200 offset 0 length 4")
		short := bytes.Clone(b)
		short[0] = 0x4f
		for what, c2 := range map[string]struct {
			b    []byte
			want error
		}{
			"half a header":                {b[:10], stack.ErrInvalid},
			"a header longer than all":     {short, stack.ErrInvalid},
			"a packet longer than the MTU": {make([]byte, 1501), stack.ErrMessageTooLong},
		} {
			if _, err := c.TryWriteTo(c2.b, to); err != c2.want {
				t.Errorf("%s: %v, want %v", what, err, c2.want)
			}
		}
	})
}

// Without IP_HDRINCL, packets that are too long are fragmented.
func TestRawFragments(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, 200, "0.0.0.0")
		if _, err := c.TryWriteTo(make([]byte, 2000), netip.AddrPortFrom(addrB, 0)); err != nil {
			t.Fatal(err)
		}
		w.want("the first", "ip 10.0.0.1 > 10.0.0.2 protocol 200 offset 0 length 1480")
		w.want("the rest", "ip 10.0.0.1 > 10.0.0.2 protocol 200 offset 1480 length 520")
		if _, err := c.TryWriteTo(make([]byte, 65516), netip.AddrPortFrom(addrB, 0)); err != stack.ErrMessageTooLong {
			t.Errorf("more than a packet takes: %v", err)
		}
	})
}

// A connected raw socket returns errors that ICMP reports as permanent.
func TestRawErrors(t *testing.T) {
	byHand(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, 200, "0.0.0.0")
		sent := func() []byte {
			t.Helper()
			if _, err := c.TryWriteTo(make([]byte, 8), netip.AddrPortFrom(addrB, 0)); err != nil {
				t.Fatal(err)
			}
			return w.want("a packet", "ip 10.0.0.1 > 10.0.0.2 protocol 200 offset 0 length 8").raw
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeProtoUnreachable}, sent())
		if err := c.Err(); err != nil {
			t.Errorf("without a peer: %v", err)
		}
		if err := c.Connect(netip.AddrPortFrom(addrB, 0)); err != nil {
			t.Fatal(err)
		}
		w.sendICMP(wire.ICMPv4{Type: wire.ICMPv4Unreachable, Code: wire.CodeProtoUnreachable}, sent())
		if err := c.Err(); !errors.Is(err, syscall.ENOPROTOOPT) {
			t.Errorf("with a peer: %v", err)
		}
	})
}

// Over IPv6 the socket receives the payload after the headers. The stack computes and
// checks the ICMPv6 checksum (RFC 3542 section 3.1).
func TestRaw6(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, wire.ProtoICMPv6, "::")
		reply := message6(addrB6, addrA6, wire.ICMPv6{Type: wire.ICMPv6EchoReply, Rest: 9}, []byte("data"))
		w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, reply)
		wantRaw(t, "a message", c, reply, addrB6)
		damaged := bytes.Clone(reply)
		damaged[9] ^= 1
		w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, damaged)
		wantNoRaw(t, "one whose checksum is wrong", c)
		w.wantCount("is counted", stack.RawFiltered, 1)
		request := echo(5, "data")
		request[0] = byte(wire.ICMPv6Echo)
		if _, err := c.TryWriteBy(request, netip.AddrPortFrom(addrB6, 58), stack.UDPSend{TTL: 255}); err != nil {
			t.Fatal(err)
		}
		f := w.want("a request, whose checksum is right", "icmp6 2001:db8::1 > 2001:db8::2 type 128 code 0")
		if f.ip.TTL != 255 || f.six.icmp.EchoID() != 0xdead {
			t.Errorf("it is %+v, hop limit %d", f.six.icmp, f.ip.TTL)
		}
		other := mustRaw(t, w.s, 200, "::")
		other.SetChecksum(2)
		if _, err := other.TryWriteTo([]byte{1, 2, 3}, netip.AddrPortFrom(addrB6, 0)); err != stack.ErrInvalid {
			t.Errorf("no room for a checksum: %v", err)
		}
		if _, err := other.TryWriteTo(make([]byte, 8), netip.AddrPortFrom(addrB, 0)); err != stack.ErrNetUnreachable {
			t.Errorf("to IPv4: %v", err)
		}
	})
}

// Raw sockets receive Neighbor Discovery messages too, including those to the
// solicited-node groups of our addresses.
func TestRawHearsNeighbours(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		c := mustRaw(t, w.s, wire.ProtoICMPv6, "::")
		group := wire.SolicitedNode(addrA6)
		ask := neigh.Message{Neighbor: wire.Neighbor{Target: addrA6, LinkAddr: macB}, Src: addrB6, Dst: group, MAC: wire.MulticastMAC6(group)}
		w.sendND(ask)
		w.want("the stack answers", "nd 2001:db8::1 is-at 02:00:00:00:00:0a to 2001:db8::2 SO")
		b := make([]byte, 100)
		n, d, err := c.TryReadFrom(b)
		if err != nil || n != ask.Len() || b[0] != byte(wire.ICMPv6NeighborSolicitation) || d.TTL != 255 || d.To.Addr().WithZone("") != group {
			t.Errorf("heard %x of %+v, %v", b[:n], d, err)
		}
		elsewhere := wire.SolicitedNode(netip.MustParseAddr("2001:db8::99"))
		ask.Dst, ask.MAC = elsewhere, wire.MulticastMAC6(elsewhere)
		w.sendND(ask)
		wantNoRaw(t, "a question to the group of others", c)
	})
}

// Raw sockets implement net.PacketConn, and are closed with the stack.
func TestRawConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, stack.Config{Shards: 2}, pipe.Config{})
		a, b := mustRaw(t, p.a, 200, "0.0.0.0"), mustRaw(t, p.b, 200, "10.0.0.2")
		if b.LocalAddr().String() != "10.0.0.2" || b.RemoteAddr() != nil {
			t.Errorf("at %v, to %v", b.LocalAddr(), b.RemoteAddr())
		}
		if _, err := a.WriteTo([]byte("x"), &net.UDPAddr{}); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("to an address of another kind: %v", err)
		}
		if _, err := a.WriteTo([]byte("hello"), &net.IPAddr{IP: addrB.AsSlice()}); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, from, err := b.ReadFrom(buf)
		if err != nil || string(buf[20:n]) != "hello" || from.String() != "10.0.0.1" {
			t.Errorf("%q from %v, %v", buf[:n], from, err)
		}
		p.b.Close()
		if _, _, err := b.ReadFrom(buf); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after the stack has closed: %v", err)
		}
		if _, err := p.b.ListenRaw(200, netip.IPv4Unspecified(), stack.UDPOptions{}); err != stack.ErrClosed {
			t.Errorf("on a closed stack: %v", err)
		}
		if _, err := p.a.ListenRaw(200, netip.MustParseAddr("192.0.2.1"), stack.UDPOptions{}); err != stack.ErrNotAvailable {
			t.Errorf("at an address of another: %v", err)
		}
	})
}
