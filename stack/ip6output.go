package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/ip"
	"loam/stack/shared"
	"loam/wire"
)

// Output of IPv6 packets.

// putIPv6 sets the payload length and prepends the IPv6 header to the payload in f.
func putIPv6(f *link.Frame, h *wire.IPv6) {
	h.PayloadLen = f.Len()
	h.Put(f.Prepend(wire.IPv6Len))
}

// ipHeader has the header fields of either version of IP.
type ipHeader struct {
	proto    wire.Protocol
	ttl, tos uint8
	src, dst netip.Addr
	id       uint16 // identification in an IPv4 header
	atomic   bool   // DF is set in an IPv4 header, so that no router fragments the packet
	label    uint32 // flow label in an IPv6 header
	loops    bool   // broadcast or multicast that this host may receive too: see shard.loopBack
}

// put prepends the header for the addresses' version of IP.
func (h *ipHeader) put(f *link.Frame) {
	if h.dst.Is4() {
		putIPv4(f, &wire.IPv4{ID: h.id, DontFragment: h.atomic, TTL: h.ttl, TOS: h.tos, Protocol: h.proto, Src: h.src, Dst: h.dst})
		return
	}
	putIPv6(f, &wire.IPv6{TrafficClass: h.tos, FlowLabel: h.label, NextHeader: h.proto, HopLimit: h.ttl, Src: h.src, Dst: h.dst})
}

// length returns the length of the header in bytes.
func (h *ipHeader) length() int {
	if h.dst.Is4() {
		return wire.IPv4MinLen
	}
	return wire.IPv6Len
}

// fragment6 fragments and sends a packet that is longer than the path MTU. It takes ownership of f.
func (sh *shard) fragment6(p *path, f *link.Frame) {
	h, payload, err := wire.ParseIPv6(f.Bytes())
	if err != nil {
		panic("stack: sending a malformed packet")
	}
	pieces, err := ip.Fragment6(&h, payload, p.mtu, sh.stack.identify(h.Src, h.Dst, h.NextHeader))
	if err != nil {
		panic("stack: a link of IPv6 with too small an MTU")
	}
	sh.tally.count6(IPFragmented)
	l := sh.link(p.ifc)
	for piece, frag, part, ok := pieces.Next(); ok; piece, frag, part, ok = pieces.Next() {
		g := link.FrameOf(part)
		frag.Put(g.Prepend(wire.IPv6FragmentLen))
		putIPv6(g, &piece)
		sh.tally.count6(IPFragsSent)
		l.transmit(p.nextHop, g)
	}
	f.Free()
}

// flowLabel returns the flow label of packets between two ports (RFC 6437 section 3).
func (s *Stack) flowLabel(src, dst netip.AddrPort) uint32 {
	h := shared.Mix(shared.Fold(src.Addr())^shared.Fold(dst.Addr())^uint64(src.Port())<<16^uint64(dst.Port()), ^s.seed)
	return uint32(h) & wire.MaxFlowLabel
}
