package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/ip"
	"loam/wire"
)

// IPv6 packets that leave.

// putIPv6 prepends the IPv6 header to a transport segment.
func putIPv6(f *link.Frame, h *wire.IPv6) {
	h.PayloadLen = f.Len()
	h.Put(f.Prepend(wire.IPv6Len))
}

// ipHeader is what the headers of both versions of IP say.
type ipHeader struct {
	proto    wire.Protocol
	ttl, tos uint8
	src, dst netip.Addr
	id       uint16 // IPv4
	atomic   bool   // IPv4: not to be fragmented
	label    uint32 // IPv6
	loops    bool   // it is to many, of which this host may be one: see shard.loopBack
}

// put prepends the header of the version that the addresses are of.
func (h *ipHeader) put(f *link.Frame) {
	if h.dst.Is4() {
		putIPv4(f, &wire.IPv4{ID: h.id, DontFragment: h.atomic, TTL: h.ttl, TOS: h.tos, Protocol: h.proto, Src: h.src, Dst: h.dst})
		return
	}
	putIPv6(f, &wire.IPv6{TrafficClass: h.tos, FlowLabel: h.label, NextHeader: h.proto, HopLimit: h.ttl, Src: h.src, Dst: h.dst})
}

// length is how long the header is, in bytes.
func (h *ipHeader) length() int {
	if h.dst.Is4() {
		return wire.IPv4MinLen
	}
	return wire.IPv6Len
}

// headersTCP is how many bytes the headers of IP and TCP take in packets to a host,
// without options.
func headersTCP(a netip.Addr) int {
	if a.Is4() {
		return wire.IPv4MinLen + wire.TCPMinLen
	}
	return wire.IPv6Len + wire.TCPMinLen
}

// fragment6 cuts a packet up that is longer than its path allows. It owns f.
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
		g := link.NewFrame(len(part))
		copy(g.Bytes(), part)
		frag.Put(g.Prepend(wire.IPv6FragmentLen))
		putIPv6(g, &piece)
		sh.tally.count6(IPFragsSent)
		l.transmit(p.nextHop, g)
	}
	f.Free()
}

// flowLabel is that of the packets between two ports (RFC 6437 section 3).
func (s *Stack) flowLabel(src, dst netip.AddrPort) uint32 {
	h := mix(fold(src.Addr())^fold(dst.Addr())^uint64(src.Port())<<16^uint64(dst.Port()), ^s.seed)
	return uint32(h) & wire.MaxFlowLabel
}
