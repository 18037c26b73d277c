package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/wire"
)

// inputICMP processes an ICMP packet. The caller frees the frame.
func (sh *shard) inputICMP(p *packet) {
	sh.tally.count(ICMPReceived)
	b := p.payload()
	h, rest, err := wire.ParseICMPv4(b)
	if err != nil {
		sh.tally.count(ICMPMalformed)
		return
	}
	if !wire.ICMPv4ChecksumOK(b) {
		sh.tally.count(ICMPChecksum)
		return
	}
	switch {
	case h.Type == wire.ICMPv4Echo:
		sh.inputEcho(p, h, rest)
	case h.Type == wire.ICMPv4EchoReply:
		sh.inputEchoReply(p, h.EchoID(), h.EchoSeq())
	case h.Type == wire.ICMPv4Redirect:
		sh.inputRedirect(p, h, rest)
	case h.IsError():
		sh.inputError(p, h, rest)
	default:
		sh.tally.count(ICMPIgnored)
	}
}

// inputEcho answers an echo request. Requests to a broadcast or multicast address are
// ignored, as RFC 1122 section 3.2.2.6 permits.
func (sh *shard) inputEcho(p *packet, h wire.ICMPv4, data []byte) {
	if p.broadcast {
		sh.tally.count(ICMPIgnored)
		return
	}
	if _, ours := sh.tables.local[p.dst]; !ours && !p.dst.IsLoopback() {
		sh.forwardPing(p, h.Rest, data)
		return
	}
	sh.sendEchoReply(p.dst, p.src, p.tos, h, data)
}

func (sh *shard) sendEchoReply(src, dst netip.Addr, tos uint8, h wire.ICMPv4, data []byte) {
	h.Type = wire.ICMPv4EchoReply
	if sh.sendICMP(src, dst, tos, h, data) {
		sh.tally.count(ICMPEcho)
	}
}

// sendICMP sends a message now, or drops it if the device has no room. It reports whether the message was sent.
func (sh *shard) sendICMP(src, dst netip.Addr, tos uint8, h wire.ICMPv4, data []byte) bool {
	path, err := sh.tables.route(src, dst)
	if err != nil {
		sh.tally.count(IPNoRoute)
		return false
	}
	if !sh.link(path.ifc).roomForICMP() {
		sh.tally.count(ICMPNoRoom)
		return false
	}
	if !src.IsValid() {
		src = path.source
	}
	sh.tally.count(ICMPSent)
	sh.sendIP(&path, sh.stack.icmpPacket(src, dst, tos, h, data))
	return true
}

// icmpPacket returns an IPv4 packet that contains an ICMP message.
func (s *Stack) icmpPacket(src, dst netip.Addr, tos uint8, h wire.ICMPv4, data []byte) *link.Frame {
	f := link.FrameOf(data)
	h.Put(f.Prepend(wire.ICMPv4Len))
	wire.PutICMPv4Checksum(f.Bytes())
	ip := wire.IPv4{ID: s.nextID(src, dst, wire.ProtoICMP), TOS: tos, TTL: defaultTTL, Protocol: wire.ProtoICMP, Src: src, Dst: dst}
	putIPv4(f, &ip)
	return f
}

// sendError sends an ICMP error about the packet b, if RFC 1122 section 3.2.2 and the rate limit permit one.
func (sh *shard) sendError(b []byte, kind wire.ICMPv4Type, code uint8) {
	about, quote, ok := icmp.Answerable(b)
	to, ours := sh.tables.local[about.Dst]
	if !ok || to.broadcast {
		return
	}
	if !sh.allowError(about.Src) {
		sh.tally.count(ICMPLimited)
		return
	}
	src := about.Dst
	if !ours {
		src = netip.Addr{}
	}
	if sh.sendICMP(src, about.Src, 0, wire.ICMPv4{Type: kind, Code: code}, quote) {
		sh.tally.count(ICMPErrorsSent)
	}
}
