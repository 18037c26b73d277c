package stack

import (
	"net/netip"

	"loam/stack/icmp"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/wire"
)

// Delivery of ICMP errors to sockets.

// icmpError is an ICMP message about a packet that this host sent, or a local error in its place.
type icmpError struct {
	quote      icmp.Quote
	kind       icmp.Kind
	mtu        int        // MTU in bytes, for icmp.TooBig
	typ, code  uint8      // type and code of the ICMP message
	info       uint32     // the MTU, pointer or other data of the message
	message    Datagram   // describes the message; From is its sender
	packet     []byte     // the quoted part of our packet, and any bytes after it
	quoted     int        // value of wire.ICMPv4.QuoteLen
	on         *Interface // interface where the message arrived; nil: the loopback interface, which says nothing about the packet's path
	unresolved bool       // a local error: the next hop does not answer
}

// arrived returns the description of an ICMP message that IP_RECVERR reports.
func (p *packet) arrived(now tcp.Time) Datagram {
	return p.datagram(now, netip.AddrPortFrom(p.ifc.scoped(p.src), 0), netip.AddrPortFrom(p.ifc.scoped(p.dst), 0), 0)
}

// comesBy sets e.on to the interface where the message arrived. For a message that this host sent to itself, e.on stays nil:
// the loopback interface is not on the path of the packet that the message quotes.
func (e *icmpError) comesBy(p *packet) {
	if !p.ifc.loopback {
		e.on = p.ifc
	}
}

// inputError processes an error about a packet that this host allegedly sent, and
// delivers it to the socket that sent the packet.
func (sh *shard) inputError(p *packet, h wire.ICMPv4, quoted []byte) {
	q, ok := icmp.ParseQuote(quoted)
	if !ok {
		sh.tally.count(ICMPMalformed)
		return
	}
	e := icmpError{
		quote: q, kind: icmp.Classify(h), mtu: h.NextHopMTU(), typ: uint8(h.Type), code: h.Code,
		message: p.arrived(sh.now), packet: quoted, quoted: h.QuoteLen(),
	}
	e.comesBy(p)
	switch {
	case e.kind == icmp.TooBig:
		e.info = uint32(e.mtu)
	case h.Type == wire.ICMPv4ParamProblem:
		e.info = h.Rest >> 24
	}
	if !sh.deliverError(&e) {
		sh.tally.count(ICMPIgnored)
		return
	}
	sh.tally.count(ICMPErrors)
}

// inputError6 is inputError for IPv6. An MTU below ip.MinPathMTU6 is impossible, so a
// message that reports one is ignored (RFC 8201 section 4).
func (sh *shard) inputError6(p *packet, h wire.ICMPv6, quoted []byte) {
	q, ok := icmp.ParseQuote(quoted)
	if !ok || !q.Src.Is6() {
		sh.tally.count6(ICMPMalformed)
		return
	}
	e := icmpError{
		quote: q, kind: icmp.Classify6(h), mtu: int(min(h.Rest, maxIPv6)), typ: uint8(h.Type), code: h.Code, info: h.Rest,
		message: p.arrived(sh.now), packet: quoted, quoted: h.QuoteLen(),
	}
	e.comesBy(p)
	if e.kind == icmp.TooBig && h.Rest < ip.MinPathMTU6 || !sh.deliverError(&e) {
		sh.tally.count6(ICMPIgnored)
		return
	}
	sh.tally.count6(ICMPErrors)
}

// unreachable reports to the socket that sent the packet b that its next hop does not
// answer. As on Linux, the error looks like an ICMP message from this host.
func (sh *shard) unreachable(b []byte) {
	q, ok := icmp.ParseQuote(b)
	if !ok {
		return
	}
	e := icmpError{quote: q, kind: icmp.HostUnreachable, packet: b, unresolved: true}
	us := netip.AddrPortFrom(q.Src, 0)
	e.message = Datagram{From: us, To: us, TTL: defaultTTL, at: sh.now}
	e.typ, e.code = uint8(wire.ICMPv4Unreachable), wire.CodeHostUnreachable
	if q.Dst.Is6() {
		e.typ, e.code = uint8(wire.ICMPv6Unreachable), wire.CodeAddrUnreachable6
	}
	sh.deliverError(&e)
}

// deliverError delivers an error to the sockets that may have sent the quoted packet. It
// reports whether any socket accepted it.
func (sh *shard) deliverError(e *icmpError) bool {
	raw := sh.rawError(e)
	return sh.protocolError(e) || raw
}

// protocolError is deliverError for TCP, UDP and ping sockets.
func (sh *shard) protocolError(e *icmpError) bool {
	q := &e.quote
	local, remote := netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort)
	switch q.Protocol {
	case wire.ProtoTCP:
		c := sh.conns[flowOf(local, remote)]
		return c != nil && c.inputError(sh, e)
	case wire.ProtoUDP, wire.ProtoUDPLite:
		c := sh.table(q.Protocol).Find(remote, local, e.on.number())
		return c != nil && c.inputError(sh, e, q.Header+wire.UDPLen)
	case wire.ProtoICMPv6:
		return q.Dst.Is6() && sh.pingError(e)
	case wire.ProtoICMP:
		return q.Dst.Is4() && sh.pingError(e)
	}
	return false
}

// inputError passes an ICMP error to the connection's TCP state machine, which decides whether the quoted segment is
// plausible. If so and the connection survives, the error is reported to a program that has enabled SoftErrors.
func (c *TCPConn) inputError(sh *shard, e *icmpError) bool {
	soft := c.Options().softErrors(e.quote.Dst)
	what, mss := tcp.ICMPUnreachable, 0
	switch {
	case e.kind == icmp.TooBig:
		if e.mtu == 0 {
			e.mtu = ip.Plateau(e.quote.Length)
		}
		what, mss = tcp.ICMPTooBig, max(e.mtu, ip.MinPathMTU)-tcp.HeadersLen(e.quote.Dst)
	case e.kind.Hard():
		what = tcp.ICMPRefused
	case e.unresolved || soft: // these errors end a connection attempt
		what = tcp.ICMPNoNeighbour
	}
	if !c.machine.ICMP(sh.now, what, e.quote.Seq, mss) {
		return false
	}
	switch {
	case e.kind == icmp.TooBig:
		sh.stack.paths.Learn(sh.now, e.quote.Dst, e.mtu, e.quote.Length)
	case soft && c.Connected():
		c.failSoftly(e.err())
	}
	sh.mark(c)
	return true
}

// inputError processes an ICMP error about a packet of the socket and reports whether it had any effect. skip is the length of
// the quoted headers that are not part of the program's data. As on Linux, a program without an error queue sees only
// permanent errors, and only if the socket is connected.
func (c *datagramSocket) inputError(sh *shard, e *icmpError, skip int) bool {
	o, dst := c.Options(), e.quote.Dst
	queues, peer := o.queuesErrors(dst), c.peer.Load() != nil
	heeded := false
	reported := o.SoftErrors || queues || peer && e.kind.Hard()
	if e.kind == icmp.TooBig {
		d := o.discovery(dst)
		if heeded = d.believes(); heeded {
			sh.stack.paths.Learn(sh.now, dst, e.mtu, e.quote.Length)
		}
		reported = d.reports(dst) && (peer || queues)
	}
	err := e.err()
	if err == nil || !reported {
		return heeded
	}
	if queues {
		kept := DatagramError{
			Err: err, Type: e.typ, Code: e.code, Info: e.info, Message: e.message,
			To:      netip.AddrPortFrom(dst, e.quote.DstPort),
			Payload: append([]byte(nil), e.packet[min(skip, len(e.packet)):]...),
		}
		if o.reportsExtensions(dst) {
			kept.Extensions = icmp.FindExtensions(e.packet, e.quoted, skip)
		}
		c.keepError(kept)
	}
	c.fail(err)
	return true
}

// kindErrors maps ICMP errors to errors of sockets.
var kindErrors = map[icmp.Kind]error{
	icmp.NetUnreachable:      ErrNetUnreachable,
	icmp.HostUnreachable:     ErrHostUnreachable,
	icmp.ProtocolUnreachable: ErrNoProtocol,
	icmp.PortUnreachable:     ErrRefused,
	icmp.TooBig:              ErrMessageTooLong,
	icmp.SourceRouteFailed:   ErrNotSupported,
	icmp.NetUnknown:          ErrNetUnreachable,
	icmp.HostUnknown:         ErrHostDown,
	icmp.HostIsolated:        ErrNoNetwork,
	icmp.NetProhibited:       ErrNetUnreachable,
	icmp.Prohibited:          ErrHostUnreachable,
	icmp.TimeExceeded:        ErrHostUnreachable,
	icmp.ParameterProblem:    ErrProtocol,
}

// err returns the error for the program, or nil if there is none.
func (e *icmpError) err() error {
	if e.kind == icmp.Prohibited && e.quote.Dst.Is6() {
		return ErrAccess
	}
	return kindErrors[e.kind]
}

// allowError reports whether an error may be sent to dst now, and counts it against the
// limit. As on Linux, errors to this host's own addresses are not limited.
func (sh *shard) allowError(dst netip.Addr) bool {
	if _, ours := sh.tables.local[dst]; ours || dst.IsLoopback() {
		return true
	}
	return sh.stack.errors.Allow(sh.now, dst)
}
