package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/wire"
)

// inputICMP takes an ICMP packet. The caller frees the frame.
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
	case h.IsError():
		sh.inputError(h, rest)
	default:
		sh.tally.count(ICMPIgnored)
	}
}

// inputEcho answers an echo request. One to a broadcast address is not answered
// (RFC 1122 section 3.2.2.6 allows that).
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

// sendICMP sends a message at once, or not at all when there is no room.
func (sh *shard) sendICMP(src, dst netip.Addr, tos uint8, h wire.ICMPv4, data []byte) bool {
	path, err := sh.tables.route(src, dst)
	if err != nil {
		sh.tally.count(IPNoRoute)
		return false
	}
	if !sh.link(path.ifc).room() {
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

// icmpPacket makes the IP packet of a message.
func (s *Stack) icmpPacket(src, dst netip.Addr, tos uint8, h wire.ICMPv4, data []byte) *link.Frame {
	f := link.NewFrame(len(data))
	copy(f.Bytes(), data)
	h.Put(f.Prepend(wire.ICMPv4Len))
	wire.PutICMPv4Checksum(f.Bytes())
	ip := wire.IPv4{ID: s.nextID(src, dst, wire.ProtoICMP), TOS: tos, TTL: defaultTTL, Protocol: wire.ProtoICMP, Src: src, Dst: dst}
	putIPv4(f, &ip)
	return f
}

// sendError answers the packet b with an ICMP error, if the rules allow one about
// it (RFC 1122 section 3.2.2) and the rate limit does.
func (sh *shard) sendError(b []byte, kind wire.ICMPv4Type, code uint8) {
	about, quote, ok := icmp.Answerable(b)
	to, ours := sh.tables.local[about.Dst]
	if !ok || to.broadcast {
		return
	}
	if !sh.limiter.Allow(sh.now, about.Src) {
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

// inputError takes an error about a packet that this host is said to have sent,
// and delivers it to the socket that did.
func (sh *shard) inputError(h wire.ICMPv4, quoted []byte) {
	q, ok := icmp.ParseQuote(quoted)
	if !ok {
		sh.tally.count(ICMPMalformed)
		return
	}
	if !sh.deliverError(&q, icmp.Classify(h), h.NextHopMTU()) {
		sh.tally.count(ICMPIgnored)
		return
	}
	sh.tally.count(ICMPErrors)
}

// unreachable tells the socket that sent the packet b that its next hop does not
// answer.
func (sh *shard) unreachable(b []byte) {
	q, ok := icmp.ParseQuote(b)
	switch {
	case !ok:
	case q.Protocol == wire.ProtoTCP:
		c := sh.conns[flowOf(netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort))]
		if c != nil && c.machine.ICMP(sh.now, tcp.ICMPNoNeighbour, q.Seq, 0) {
			sh.mark(c)
		}
	default:
		sh.deliverError(&q, icmp.HostUnreachable, 0)
	}
}

// deliverError finds the sockets that may have sent the quoted packet. It reports whether
// there are any.
func (sh *shard) deliverError(q *icmp.Quote, kind icmp.Kind, mtu int) bool {
	raw := sh.rawError(q, kind, mtu)
	return sh.socketError(q, kind, mtu) || raw
}

// socketError is deliverError for those of a protocol.
func (sh *shard) socketError(q *icmp.Quote, kind icmp.Kind, mtu int) bool {
	local, remote := netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort)
	switch q.Protocol {
	case wire.ProtoTCP:
		c := sh.conns[flowOf(local, remote)]
		if c == nil {
			return false
		}
		return c.inputError(sh, q, kind, mtu)
	case wire.ProtoUDP:
		c := sh.socket(nil, remote, local)
		return c != nil && c.inputError(sh, q, kind, mtu)
	case wire.ProtoICMPv6:
		return q.Dst.Is6() && sh.pingError(q, kind, mtu)
	case wire.ProtoICMP:
		return q.Dst.Is4() && sh.pingError(q, kind, mtu)
	}
	return false
}

// inputError gives an ICMP error to the machine, which decides whether to
// believe it.
func (c *TCPConn) inputError(sh *shard, q *icmp.Quote, kind icmp.Kind, mtu int) bool {
	what, mss := tcp.ICMPUnreachable, 0
	switch {
	case kind == icmp.TooBig:
		if mtu == 0 {
			mtu = ip.Plateau(q.Length)
		}
		what, mss = tcp.ICMPTooBig, max(mtu, ip.MinPathMTU)-headersTCP(q.Dst)
	case kind.Hard():
		what = tcp.ICMPRefused
	}
	if !c.machine.ICMP(sh.now, what, q.Seq, mss) {
		return false
	}
	if kind == icmp.TooBig {
		sh.stack.paths.learn(sh.now, q.Dst, mtu, q.Length)
	}
	sh.mark(c)
	return true
}

// kindError is the error that a connected socket gets.
func kindError(k icmp.Kind) error {
	switch k {
	case icmp.PortUnreachable:
		return ErrRefused
	case icmp.NetUnreachable, icmp.NetUnknown, icmp.NetProhibited:
		return ErrNetUnreachable
	case icmp.HostUnreachable, icmp.HostUnknown, icmp.HostIsolated, icmp.Prohibited:
		return ErrHostUnreachable
	case icmp.ProtocolUnreachable:
		return ErrNoProtocol
	}
	return nil
}
