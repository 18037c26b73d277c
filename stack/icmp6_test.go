package stack_test

import (
	"bytes"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"loam/stack"
	"loam/wire"
)

// ICMP for IPv6 (RFC 4443): which packets are answered, and to whom.

func TestICMPv6Answers(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6Echo, Rest: 7}, []byte("hello"))
		if f := w.want("an echo", "icmp6 2001:db8::1 > 2001:db8::2 type 129 code 0"); string(f.data) != "hello" || f.six.icmp.Rest != 7 {
			t.Errorf("it carries %q, %d", f.data, f.six.icmp.Rest)
		}
		all := netip.IPv6LinkLocalAllNodes()
		w.send(ethernet(wire.MulticastMAC6(all), wire.TypeIPv6, packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6, Dst: all}, message6(addrB6, all, wire.ICMPv6{Type: wire.ICMPv6Echo}, nil))))
		w.want("one to all", "icmp6 2001:db8::1 > 2001:db8::2 type 129 code 0")
		w.sendUDP6(1000, 53, "hello")
		w.want("nobody listens", "icmp6 2001:db8::1 > 2001:db8::2 type 1 code 4")
		w.send6(wire.IPv6{NextHeader: wire.ProtoTCP}, segment(wire.TCP{SrcPort: 1, DstPort: 2, Flags: wire.SYN}, addrB6, addrA6, ""))
		w.want("nor here", "tcp 2001:db8::1:2 > 2001:db8::2:1 RA")
		c, err := w.s.Dial("udp", "[2001:db8::2]:9")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte("x"))
		f := w.next()
		w.sendICMP6(wire.ICMPv6{Type: wire.ICMPv6Unreachable, Code: 4}, f.raw)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a socket whose datagram was refused: %v", err)
		}
		noSum := datagram(netip.AddrPortFrom(addrB6, 1), netip.AddrPortFrom(addrA6, 2), "x")
		noSum[6], noSum[7] = 0, 0
		before := w.s.Counters()
		w.send6(wire.IPv6{NextHeader: wire.ProtoUDP}, noSum)
		w.wantRefused("a datagram without a checksum (RFC 8200 section 8.1)", before, stack.UDPChecksum)
	})
}

// Errors are limited (RFC 4443 section 2.4 (f)), with the values of Linux: a burst of six, and ten per second.
func TestErrors6AreLimited(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		provoke := func(n int) {
			for range n {
				w.sendUDP6(1000, 53, "anybody?")
			}
		}
		provoke(20)
		w.wantCount("six at once", stack.ICMPErrorsSent, 6)
		for range 50 {
			w.advance(100 * time.Millisecond)
			provoke(3)
		}
		w.wantCount("and ten in each of five seconds", stack.ICMPErrorsSent, 6+50)
	})
}

// RFC 4443 section 4.2: an echo request to a group is answered by its members.
func TestEchoToGroups(t *testing.T) {
	byHand6(t, func(t *testing.T, w *peer) {
		joined := netip.MustParseAddr("ff02::4321")
		c, err := w.s.ListenUDP(mustAddrPort("[::]:1000"), stack.UDPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.JoinGroup(joined, w.ifc); err != nil {
			t.Fatal(err)
		}
		w.advance(5 * time.Second)
		w.forget()
		to := func(group netip.Addr, h wire.IPv6, front []byte) {
			h.Dst = group
			echo := message6(addrB6, group, wire.ICMPv6{Type: wire.ICMPv6Echo}, nil)
			w.send(ethernet(wire.MulticastMAC6(group), wire.TypeIPv6, packet6(h, append(front, echo...))))
		}
		// The packet has an option of unknown type, about which an error is sent even if the packet was sent to a
		// group.
		unknown := []byte{byte(wire.ProtoICMPv6), 0, 0x80, 0, 1, 2, 0, 0}
		for group, in := range map[string]bool{
			"ff02::1": true, "ff02::1:ff00:1": true, "ff02::4321": true,
			"ff02::2": false, "ff02::1:ff00:2": false, "ff05::1": false, "ff02::fb": false,
		} {
			addr := netip.MustParseAddr(group)
			w.advance(5 * time.Second)
			w.forget()
			to(addr, wire.IPv6{NextHeader: wire.ProtoICMPv6}, nil)
			if in {
				w.want(group, "icmp6 2001:db8::1 > 2001:db8::2 type 129 code 0")
			} else {
				w.wantNone(group)
			}
			to(addr, wire.IPv6{NextHeader: wire.ProtoDestOptions}, bytes.Clone(unknown))
			if in {
				w.want(group, "icmp6 2001:db8::1 > 2001:db8::2 type 4 code 2")
			} else {
				w.wantNone(group)
			}
		}
	})
}
