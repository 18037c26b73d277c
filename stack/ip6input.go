package stack

import (
	"math"
	"net/netip"

	"loam/link"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/wire"
)

// IPv6 packets that arrive (RFC 8200): the receiver's part, which checks the header
// and walks the extension headers, and the shard's, for fragments and for packets
// that are to be answered with "parameter problem".

// receiveIPv6 takes a packet that came from a station; it owns the frame.
func (r *receiver) receiveIPv6(t *tables, p *packet, from wire.MAC) {
	h, payload, err := wire.ParseIPv6(p.frame.Bytes())
	if err != nil {
		r.drop6(p.frame, IPMalformed)
		return
	}
	r.tally.count6(IPReceived)
	r.tally.add6(IPv6BytesReceived, uint64(wire.IPv6Len+len(payload)))
	p.src, p.dst = h.Src, h.Dst
	p.tos, p.ttl = h.TrafficClass, h.HopLimit
	p.frame.Resize(wire.IPv6Len + len(payload)) // without the link's padding
	if reason, drop := r.refuseIPv6(t, p, &h); drop {
		r.drop6(p.frame, reason)
		return
	}
	if !p.setChain(&h) {
		r.drop6(p.frame, IPDiscarded)
		return
	}
	if p.proto == wire.ProtoICMPv6 && p.headerLen == wire.IPv6Len && !p.fragment && isND(p.payload()) {
		r.receiveND(p, from)
		return
	}
	if r.ifc.forDHCPv6(p) {
		if reason, ok := p.hand(r.ifc.dhcp6In); !ok {
			r.tally.count6(reason)
		}
		return
	}
	r.pass(p, p.payload())
}

// setChain fills in what the headers behind the fixed one say. It returns false for
// a packet that is to be dropped without a word.
func (p *packet) setChain(h *wire.IPv6) bool {
	switch h.NextHeader {
	case wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMPv6:
		p.proto, p.headerLen = h.NextHeader, wire.IPv6Len
		return true
	}
	c := ip.ParseChain(h, p.frame.Bytes())
	if c.Offset > math.MaxUint16 { // no packet but one of options can have so many
		return false
	}
	p.proto, p.headerLen = c.Protocol, uint16(min(c.Offset, p.frame.Len()))
	p.problem, p.problemAt, p.toMany = 0, uint16(c.NextAt), c.Always
	switch c.Action {
	case ip.Discard:
		return false
	case ip.Reassemble:
		p.fragment = true
	case ip.Report:
		p.problem, p.problemAt = 1+c.Code, uint16(c.Pointer)
	}
	return true
}

// refuseIPv6 decides whether the packet is for this host, and can have come over
// this link (RFC 4291 sections 2.5 and 2.7).
func (r *receiver) refuseIPv6(t *tables, p *packet, h *wire.IPv6) (Counter, bool) {
	_, ours := t.local[p.dst]
	p.broadcast = p.dst.IsMulticast()
	switch {
	case r.martian6(t, p, h):
		return IPMartian, true
	case p.broadcast && !t.inGroup(r.ifc, p.dst):
		return IPNotMember, true
	case !ours && !p.broadcast && !r.ifc.acceptAny:
		return IPNotForUs, true
	case p.group && !p.broadcast:
		return IPMartian, true
	}
	return 0, false
}

func (r *receiver) martian6(t *tables, p *packet, h *wire.IPv6) bool {
	if !r.ifc.loopback && (p.src.IsLoopback() || p.dst.IsLoopback() || p.dst.IsInterfaceLocalMulticast()) {
		return true
	}
	if _, ours := t.local[p.src]; ours {
		return !r.ifc.loopback && !advertises(p, h)
	}
	if p.src.IsUnspecified() { // duplicate address detection, and reports of groups
		return h.NextHeader != wire.ProtoICMPv6 && h.NextHeader != wire.ProtoHopByHop
	}
	return p.src.IsMulticast() || p.src.Is4In6() || p.dst.Is4In6() || p.dst.IsUnspecified()
}

// advertises reports whether a packet is an advertisement of Neighbor Discovery: by such a
// one another host says that it has an address of ours, and from there.
func advertises(p *packet, h *wire.IPv6) bool {
	b := p.frame.Bytes()[wire.IPv6Len:]
	return h.NextHeader == wire.ProtoICMPv6 && len(b) > 0 && wire.ICMPv6Type(b[0]) == wire.ICMPv6NeighborAdvertisement
}

// isND reports whether an ICMPv6 message is of Neighbor Discovery.
func isND(b []byte) bool {
	return len(b) > 0 && wire.ICMPv6Type(b[0]) >= wire.ICMPv6RouterSolicitation && wire.ICMPv6Type(b[0]) <= wire.ICMPv6Redirect
}

// receiveND passes a message of Neighbor Discovery to the interface's owner, if it
// has come from a neighbour (RFC 4861 section 7.1). It owns the frame.
func (r *receiver) receiveND(p *packet, from wire.MAC) {
	defer p.frame.Free()
	b := p.payload()
	r.tally.count6(NDReceived)
	r.ifc.stack.inputRaw(&r.tally, p)
	switch wire.ICMPv6Type(b[0]) {
	case wire.ICMPv6NeighborSolicitation, wire.ICMPv6NeighborAdvertisement:
	case wire.ICMPv6RouterSolicitation, wire.ICMPv6RouterAdvertisement:
		r.receiveRouterMessage(p)
		return
	case wire.ICMPv6Redirect:
		r.receiveRedirect(p)
		return
	default:
		r.tally.count6(ICMPIgnored)
		return
	}
	m := neigh.Message{Src: p.src, Dst: p.dst, MAC: from}
	var err error
	if m.Neighbor, err = wire.ParseNeighbor(b); err != nil || p.ttl != wire.NDHopLimit {
		r.tally.count6(NDMalformed)
		return
	}
	if !p.frame.ChecksumValid && !wire.ICMPv6ChecksumOK(b, p.src, p.dst) {
		r.tally.count6(ICMPChecksum)
		return
	}
	select {
	case r.ifc.ndIn <- m:
	default:
		r.tally.count(NDOverflow)
	}
}

// deliverOdd takes a fragment, or a packet with headers that are refused. It owns
// the frame.
func (sh *shard) deliverOdd(p *packet) {
	switch {
	case p.problem != 0:
		sh.tally.count6(IPProblem)
		h := wire.ICMPv6{Type: wire.ICMPv6ParamProblem, Code: p.problem - 1, Rest: uint32(p.problemAt)}
		sh.sendError6(p.frame.Bytes(), h, p.toMany)
		p.frame.Free()
	case p.src.Is6():
		sh.reassemble6(p)
	default:
		sh.reassemble(p)
	}
}

// noProtocol answers a packet whose protocol nobody speaks. It owns the frame.
func (sh *shard) noProtocol(p *packet) {
	sh.tally.countBy(p.src, IPNoProtocol)
	if p.src.Is6() {
		h := wire.ICMPv6{Type: wire.ICMPv6ParamProblem, Code: ip.CodeNextHeader, Rest: uint32(p.problemAt)}
		sh.sendError6(p.frame.Bytes(), h, false)
	} else {
		sh.sendError(p.frame.Bytes(), wire.ICMPv4Unreachable, wire.CodeProtoUnreachable)
	}
	p.frame.Free()
}

// reassemble6 takes a fragment. It owns the frame.
func (sh *shard) reassemble6(p *packet) {
	sh.tally.count6(IPFragments)
	b := p.frame.Bytes()
	h, _, err := wire.ParseIPv6(b)
	if err != nil {
		panic("stack: a receiver passed on a malformed packet")
	}
	c := ip.ParseChain(&h, b)
	d, ok := sh.reassembly.Add6(sh.now, &h, &c.Fragment, b[c.Offset:])
	p.frame.Free()
	if !ok {
		return
	}
	sh.tally.count6(IPReassembled)
	whole := *p
	whole.fragment = false
	whole.frame, whole.tos = frameOf(&d), d.Header.TOS
	h, _, err = wire.ParseIPv6(whole.frame.Bytes())
	if err != nil || !whole.setChain(&h) || whole.fragment { // a fragment of a fragment
		sh.tally.count6(IPDiscarded)
		whole.frame.Free()
		return
	}
	sh.passOn(&whole)
}

// frameOf6 is the IPv6 packet of a datagram that was put together.
func frameOf6(d *ip.Datagram) *link.Frame {
	f := d.Payload.(*link.Frame)
	putIPv6(f, &wire.IPv6{
		TrafficClass: d.Header.TOS, NextHeader: d.Header.Protocol, HopLimit: d.Header.TTL, Src: d.Header.Src, Dst: d.Header.Dst,
	})
	return f
}

// expired6 tells the sender of a datagram that the rest of it has not come, and is
// given its first fragment (RFC 8200 section 4.5). It frees it.
func (sh *shard) expired6(first *ip.Datagram) {
	f := first.Payload.(*link.Frame)
	frag := wire.IPv6Fragment{Next: first.Header.Protocol, More: true, ID: first.ID}
	frag.Put(f.Prepend(wire.IPv6FragmentLen))
	first.Header.Protocol = wire.ProtoIPv6Fragment
	frameOf6(first)
	sh.sendError6(f.Bytes(), wire.ICMPv6{Type: wire.ICMPv6TimeExceeded, Code: wire.CodeReassemblyExceeded}, false)
	f.Free()
}

// scoped gives an address that is only known on a link the name of the link.
func (i *Interface) scoped(a netip.Addr) netip.Addr {
	if isScoped(a) {
		return a.WithZone(i.name)
	}
	return a
}

// scopedPort is scoped for an address with a port.
func (i *Interface) scopedPort(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Is4() {
		return a
	}
	return netip.AddrPortFrom(i.scoped(a.Addr()), a.Port())
}
