package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/wire"
)

// inputICMP6 processes an ICMPv6 packet (RFC 4443). The caller frees the frame.
func (sh *shard) inputICMP6(p *packet) {
	sh.tally.count6(ICMPReceived)
	b := p.payload()
	h, rest, err := wire.ParseICMPv6(b)
	if err != nil {
		sh.tally.count6(ICMPMalformed)
		return
	}
	if !p.frame.ChecksumValid && !wire.ICMPv6ChecksumOK(b, p.src, p.dst) {
		sh.tally.count6(ICMPChecksum)
		return
	}
	switch {
	case h.Type == wire.ICMPv6Echo:
		sh.inputEcho6(p, h, rest)
	case h.Type == wire.ICMPv6EchoReply:
		sh.inputEchoReply(p, h.EchoID(), h.EchoSeq())
	case h.IsError():
		sh.inputError6(p, h, rest)
	case wire.MLD.Knows(uint8(h.Type)):
		sh.inputGroup(p, wire.MLD)
	default:
		sh.tally.count6(ICMPIgnored)
	}
}

// inputEcho6 answers an echo request. A request to a group is answered from an address of
// the interface (RFC 4443 section 4.2).
func (sh *shard) inputEcho6(p *packet, h wire.ICMPv6, data []byte) {
	src := p.dst
	switch _, ours := sh.tables.local[p.dst]; {
	case p.src.IsUnspecified():
		sh.tally.count6(ICMPIgnored)
		return
	case !ours && !p.broadcast:
		sh.forwardPing(p, h.Rest, data)
		return
	}
	if p.broadcast {
		src = sh.tables.source6(p.ifc, p.src, netip.Addr{})
	}
	sh.sendEchoReply6(src, p.ifc.scoped(p.src), p.tos, h.Rest, data)
}

func (sh *shard) sendEchoReply6(src, dst netip.Addr, tos uint8, rest uint32, data []byte) {
	if sh.sendICMP6(src, dst, tos, wire.ICMPv6{Type: wire.ICMPv6EchoReply, Rest: rest}, data) {
		sh.tally.count6(ICMPEcho)
	}
}

// sendICMP6 sends a message now, or drops it if the device has no room. It reports whether the message was sent.
func (sh *shard) sendICMP6(src, dst netip.Addr, tos uint8, h wire.ICMPv6, data []byte) bool {
	path, err := sh.tables.route(src, dst)
	if !src.IsValid() {
		src = path.source
	}
	if err != nil || src.IsUnspecified() {
		sh.tally.count6(IPNoRoute)
		return false
	}
	if !sh.link(path.ifc).roomForICMP() {
		sh.tally.count6(ICMPNoRoom)
		return false
	}
	sh.stack.narrowPath(&path, dst)
	sh.tally.count6(ICMPSent)
	sh.sendIP(&path, icmpPacket6(src, dst, tos, path.hopLimit(), h, data))
	return true
}

// icmpPacket6 returns an IPv6 packet that contains an ICMPv6 message.
func icmpPacket6(src, dst netip.Addr, tos, hops uint8, h wire.ICMPv6, data []byte) *link.Frame {
	f := link.FrameOf(data)
	h.Put(f.Prepend(wire.ICMPv6Len))
	wire.PutICMPv6Checksum(f.Bytes(), src, dst)
	putIPv6(f, &wire.IPv6{TrafficClass: tos, NextHeader: wire.ProtoICMPv6, HopLimit: hops, Src: src, Dst: dst})
	return f
}

// sendError6 sends an ICMPv6 error about the packet b, if the rules of RFC 4443 and the
// rate limit permit one. toMany is as in icmp.Answerable6.
func (sh *shard) sendError6(b []byte, h wire.ICMPv6, toMany bool) {
	about, quote, ok := icmp.Answerable6(b, toMany)
	if !ok {
		return
	}
	if !sh.allowError(about.Src) {
		sh.tally.count6(ICMPLimited)
		return
	}
	src := about.Dst
	to, ours := sh.tables.local[about.Dst]
	if !ours {
		src = netip.Addr{}
	}
	dst := about.Src
	if isScoped(dst) {
		dst = sh.scopeOf(to.ifc, about.Dst).scoped(dst)
	}
	if sh.sendICMP6(src, dst, 0, h, quote) {
		sh.tally.count6(ICMPErrorsSent)
	}
}

// scopeOf returns the interface on which a packet to dst arrived. The caller passes the interface that
// has the address dst as ifc, or nil if dst is a group.
func (sh *shard) scopeOf(ifc *Interface, dst netip.Addr) *Interface {
	if ifc != nil {
		return ifc
	}
	if p, err := sh.tables.route(netip.Addr{}, dst); err == nil {
		return p.ifc
	}
	return sh.tables.interfaces[0]
}
