package stack_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"loam/link/pipe"
	"loam/stack"
	"loam/stack/neigh"
	"loam/wire"
)

// The IPv6 part of a peer.

// six is a parsed IPv6 packet.
type six struct {
	ip   wire.IPv6
	frag *wire.IPv6Fragment
	icmp *wire.ICMPv6
	nd   *wire.Neighbor
}

// byHand6 runs a script in fake time: a stack at 2001:db8::1/64 whose only neighbour is
// the peer, at 2001:db8::2.
func byHand6(t *testing.T, script func(t *testing.T, w *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { script(t, newPeer6(t, pipe.Config{})) })
}

func newPeer6(t *testing.T, p pipe.Config) *peer {
	t.Helper()
	w := attachPeer(t, stack.New(stack.Config{Shards: 1}), p, stack.InterfaceConfig{NoDetection: true})
	if err := w.s.AddAddress("eth0", netip.PrefixFrom(addrA6, 64)); err != nil {
		t.Fatal(err)
	}
	w.ifc.SetNeighbour(addrB6, macB)
	w.advance(time.Second)
	w.forget()
	return w
}

// packet6 returns an IPv6 packet. Addresses that h leaves zero are set to the peer's and
// the stack's.
func packet6(h wire.IPv6, payload []byte) []byte {
	if !h.Src.IsValid() {
		h.Src = addrB6
	}
	if !h.Dst.IsValid() {
		h.Dst = addrA6
	}
	if h.HopLimit == 0 {
		h.HopLimit = 64
	}
	h.PayloadLen = len(payload)
	b := make([]byte, wire.IPv6Len, wire.IPv6Len+len(payload))
	h.Put(b)
	return append(b, payload...)
}

func (w *peer) send6(h wire.IPv6, payload []byte) {
	w.t.Helper()
	w.send(ethernet(macA, wire.TypeIPv6, packet6(h, payload)))
}

// sendUDP6 sends a datagram from a port of the peer to a port of the stack.
func (w *peer) sendUDP6(from, to uint16, data string) {
	w.t.Helper()
	w.send6(wire.IPv6{NextHeader: wire.ProtoUDP}, datagram(netip.AddrPortFrom(addrB6, from), netip.AddrPortFrom(addrA6, to), data))
}

// message6 returns an ICMPv6 message with its checksum.
func message6(src, dst netip.Addr, h wire.ICMPv6, data []byte) []byte {
	b := make([]byte, wire.ICMPv6Len, wire.ICMPv6Len+len(data))
	h.Put(b)
	b = append(b, data...)
	wire.PutICMPv6Checksum(b, src, dst)
	return b
}

func (w *peer) sendICMP6(h wire.ICMPv6, data []byte) {
	w.t.Helper()
	w.send6(wire.IPv6{NextHeader: wire.ProtoICMPv6}, message6(addrB6, addrA6, h, data))
}

// sendND sends a Neighbor Discovery message to the link-layer address m.MAC.
func (w *peer) sendND(m neigh.Message) {
	w.t.Helper()
	b := make([]byte, m.Len())
	m.Put(b)
	wire.PutICMPv6Checksum(b, m.Src, m.Dst)
	w.send(ethernet(m.MAC, wire.TypeIPv6, packet6(wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: 255, Src: m.Src, Dst: m.Dst}, b)))
}

// look6 parses a packet.
func (f *seen) look6(t testing.TB) {
	t.Helper()
	h, payload, err := wire.ParseIPv6(f.raw)
	if err != nil || h.PayloadLen != len(f.raw)-wire.IPv6Len {
		t.Fatalf("the stack sent IP %x: %v", f.raw, err)
	}
	f.six = &six{ip: h}
	f.ip = wire.IPv4{Src: h.Src, Dst: h.Dst, Protocol: h.NextHeader, TTL: h.HopLimit, TOS: h.TrafficClass}
	f.data = payload
	if h.NextHeader == wire.ProtoIPv6Fragment {
		f.six.frag = new(wire.IPv6Fragment)
		*f.six.frag, f.data, _ = wire.ParseIPv6Fragment(payload)
		f.ip.Protocol, f.ip.FragOffset = f.six.frag.Next, f.six.frag.Offset
		return
	}
	if h.NextHeader == wire.ProtoHopByHop { // the stack sends this header only with group messages
		x, message, err := wire.ParseIPv6Ext(payload)
		if err != nil || x.Next != wire.ProtoICMPv6 || !wire.ICMPv6ChecksumOK(message, h.Src, h.Dst) {
			t.Fatalf("the stack sent %x: %v", f.raw, err)
		}
		f.data = message
		f.lookGroup(t, wire.MLD)
		return
	}
	if h.NextHeader != wire.ProtoICMPv6 {
		f.lookInside(t)
		return
	}
	m, rest, err := wire.ParseICMPv6(payload)
	if err != nil || !wire.ICMPv6ChecksumOK(payload, h.Src, h.Dst) {
		t.Fatalf("the stack sent ICMPv6 %x: %v", payload, err)
	}
	f.six.icmp, f.data = &m, rest
	if n, err := wire.ParseNeighbor(payload); err == nil {
		f.six.nd = &n
		if h.HopLimit != wire.NDHopLimit {
			t.Errorf("Neighbor Discovery with a hop limit of %d", h.HopLimit)
		}
	}
}

func (f *seen) string6() string {
	h := f.six.ip
	switch n := f.six.nd; {
	case n != nil && n.Advertisement:
		flags := ""
		if n.Solicited {
			flags = "S"
		}
		if n.Override {
			flags += "O"
		}
		return fmt.Sprintf("nd %v is-at %v to %v %s", n.Target, n.LinkAddr, h.Dst, flags)
	case n != nil:
		return fmt.Sprintf("nd who-has %v from %v at %v", n.Target, h.Src, n.LinkAddr)
	case f.six.icmp != nil:
		return fmt.Sprintf("icmp6 %v > %v type %d code %d", h.Src, h.Dst, f.six.icmp.Type, f.six.icmp.Code)
	}
	return fmt.Sprintf("ip %v > %v protocol %d offset %d length %d", h.Src, h.Dst, f.ip.Protocol, f.ip.FragOffset, len(f.data))
}
