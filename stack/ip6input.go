package stack

import (
	"math"
	"net/netip"

	"loam/link"
	"loam/stack/ip"
	"loam/stack/neigh"
	"loam/wire"
)

// Input of IPv6 packets (RFC 8200). The receiver checks the header and walks the extension headers. The shard processes
// fragments, and packets to be answered with "parameter problem".

// receiveIPv6 processes a packet, and takes ownership of its frame. The parameter from is
// the link-layer address of the sender.
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
	p.frame.Resize(wire.IPv6Len + len(payload)) // the frame may end with padding of the link, which is removed
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

// setChain sets the fields derived from the extension headers. It returns false if the packet must be dropped silently.
func (p *packet) setChain(h *wire.IPv6) bool {
	switch h.NextHeader {
	case wire.ProtoTCP, wire.ProtoUDP, wire.ProtoUDPLite, wire.ProtoICMPv6:
		p.proto, p.headerLen = h.NextHeader, wire.IPv6Len
		return true
	}
	c := ip.ParseChain(h, p.frame.Bytes())
	if c.Offset > math.MaxUint16 { // only a packet full of options has this many header bytes
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

// refuseIPv6 reports whether a packet must be dropped because it is not for this host or
// cannot come from this link, and why (RFC 4291 sections 2.5 and 2.7).
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

// martian6 reports whether the addresses of an IPv6 packet are impossible for a packet that another host sent over this
// link. Neighbor advertisements with one of our addresses as source are accepted, because they report a conflict.
func (r *receiver) martian6(t *tables, p *packet, h *wire.IPv6) bool {
	if !r.ifc.loopback && (p.src.IsLoopback() || p.dst.IsLoopback() || p.dst.IsInterfaceLocalMulticast()) {
		return true
	}
	if _, ours := t.local[p.src]; ours {
		return !r.ifc.loopback && !advertises(p, h)
	}
	if p.src.IsUnspecified() { // such a packet belongs to duplicate address detection, or is an MLD report
		return h.NextHeader != wire.ProtoICMPv6 && h.NextHeader != wire.ProtoHopByHop
	}
	return p.src.IsMulticast() || p.src.Is4In6() || p.dst.Is4In6() || p.dst.IsUnspecified()
}

// advertises reports whether a packet is a neighbor advertisement. Another host that uses
// one of our addresses reports the conflict by such a packet, with our address as source.
func advertises(p *packet, h *wire.IPv6) bool {
	b := p.frame.Bytes()[wire.IPv6Len:]
	return h.NextHeader == wire.ProtoICMPv6 && len(b) > 0 && wire.ICMPv6Type(b[0]) == wire.ICMPv6NeighborAdvertisement
}

// isND reports whether an ICMPv6 message belongs to Neighbor Discovery.
func isND(b []byte) bool {
	return len(b) > 0 && wire.ICMPv6Type(b[0]) >= wire.ICMPv6RouterSolicitation && wire.ICMPv6Type(b[0]) <= wire.ICMPv6Redirect
}

// receiveND passes a Neighbor Discovery message to the interface loop if it comes from
// this link (RFC 4861 section 7.1). It takes ownership of the frame.
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

// deliverOdd processes a fragment, or a packet with unacceptable headers. It takes ownership of the frame.
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

// noProtocol answers a packet of an unsupported protocol with an ICMP error. It takes ownership of the frame.
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

// reassemble6 processes an IPv6 fragment. It takes ownership of the frame.
func (sh *shard) reassemble6(p *packet) {
	sh.tally.count6(IPFragments)
	if !sh.allowFragment(p.src) {
		sh.tally.count6(IPOverflow)
		p.frame.Free()
		return
	}
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
	if err != nil || !whole.setChain(&h) || whole.fragment { // the reassembled packet must not be a fragment again
		sh.tally.count6(IPDiscarded)
		whole.frame.Free()
		return
	}
	sh.passOn(&whole)
}

// frameOf6 returns the IPv6 packet of a reassembled datagram.
func frameOf6(d *ip.Datagram) *link.Frame {
	f := d.Payload.(*link.Frame)
	putIPv6(f, &wire.IPv6{
		TrafficClass: d.Header.TOS, NextHeader: d.Header.Protocol, HopLimit: d.Header.TTL, Src: d.Header.Src, Dst: d.Header.Dst,
	})
	return f
}

// expired6 informs the sender of an incomplete datagram, given its first fragment, that
// its reassembly time was exceeded (RFC 8200 section 4.5). It frees the fragment.
func (sh *shard) expired6(first *ip.Datagram) {
	f := first.Payload.(*link.Frame)
	frag := wire.IPv6Fragment{Next: first.Header.Protocol, More: true, ID: first.ID}
	frag.Put(f.Prepend(wire.IPv6FragmentLen))
	first.Header.Protocol = wire.ProtoIPv6Fragment
	frameOf6(first)
	sh.sendError6(f.Bytes(), wire.ICMPv6{Type: wire.ICMPv6TimeExceeded, Code: wire.CodeReassemblyExceeded}, false)
	f.Free()
}

// scoped returns the address with the interface name as its zone if the address is valid only on a link.
func (i *Interface) scoped(a netip.Addr) netip.Addr {
	if isScoped(a) {
		return a.WithZone(i.name)
	}
	return a
}

// scopedPort returns the address and port with the interface name as zone if the address is valid only on a link.
func (i *Interface) scopedPort(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Is4() {
		return a
	}
	return netip.AddrPortFrom(i.scoped(a.Addr()), a.Port())
}
