package stack

import (
	"net/netip"

	"loam/stack/icmp"
	"loam/stack/ip"
	"loam/stack/tcp"
	"loam/wire"
)

// Errors of ICMP on their way to the sockets that they are for.

// icmpError is a message of ICMP about a packet of this host's, or what stands for one.
type icmpError struct {
	quote      icmp.Quote
	kind       icmp.Kind
	mtu        int        // says icmp.TooBig
	typ, code  uint8      // as the message has them
	info       uint32     // likewise: the MTU, or what it points at
	message    Datagram   // how it came; From is who sent it
	packet     []byte     // as much of ours as it quotes, and what is behind it
	quoted     int        // wire.ICMPv4.QuoteLen
	on         *Interface // where it came; nil: on one that says nothing of who sent the packet
	unresolved bool       // it stands for a next hop that does not answer
}

// arrived is what IP_RECVERR tells of how an error came.
func (p *packet) arrived(now tcp.Time) Datagram {
	return p.datagram(now, netip.AddrPortFrom(p.ifc.scoped(p.src), 0), netip.AddrPortFrom(p.ifc.scoped(p.dst), 0), 0)
}

// comesBy says at which interface it came. What this host tells itself comes to the loopback,
// whichever way the packet was to go.
func (e *icmpError) comesBy(p *packet) {
	if !p.ifc.loopback {
		e.on = p.ifc
	}
}

// inputError takes an error about a packet that this host is said to have sent,
// and delivers it to the socket that did.
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

// inputError6 is inputError for IPv6. No link is narrower than ip.MinPathMTU6: who says
// so is not believed (RFC 8201 section 4).
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

// unreachable tells the socket that sent the packet b that its next hop does not
// answer: as if this host had told itself so, which is what Linux does.
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

// deliverError finds the sockets that may have sent the quoted packet. It reports whether
// there are any.
func (sh *shard) deliverError(e *icmpError) bool {
	raw := sh.rawError(e)
	return sh.protocolError(e) || raw
}

// protocolError is deliverError for those of a protocol.
func (sh *shard) protocolError(e *icmpError) bool {
	q := &e.quote
	local, remote := netip.AddrPortFrom(q.Src, q.SrcPort), netip.AddrPortFrom(q.Dst, q.DstPort)
	switch q.Protocol {
	case wire.ProtoTCP:
		c := sh.conns[flowOf(local, remote)]
		return c != nil && c.inputError(sh, e)
	case wire.ProtoUDP:
		c := sh.socket(e.on, remote, local)
		return c != nil && c.inputError(sh, e, q.Header+wire.UDPLen)
	case wire.ProtoICMPv6:
		return q.Dst.Is6() && sh.pingError(e)
	case wire.ProtoICMP:
		return q.Dst.Is4() && sh.pingError(e)
	}
	return false
}

// inputError gives an ICMP error to the machine, which decides whether to
// believe it. What it believes and what does not end the connection the program hears if it
// wants to.
func (c *TCPConn) inputError(sh *shard, e *icmpError) bool {
	soft := c.Options().softErrors(e.quote.Dst)
	what, mss := tcp.ICMPUnreachable, 0
	switch {
	case e.kind == icmp.TooBig:
		if e.mtu == 0 {
			e.mtu = ip.Plateau(e.quote.Length)
		}
		what, mss = tcp.ICMPTooBig, max(e.mtu, ip.MinPathMTU)-headersTCP(e.quote.Dst)
	case e.kind.Hard():
		what = tcp.ICMPRefused
	case e.unresolved || soft: // in a handshake these end the attempt
		what = tcp.ICMPNoNeighbour
	}
	if !c.machine.ICMP(sh.now, what, e.quote.Seq, mss) {
		return false
	}
	switch {
	case e.kind == icmp.TooBig:
		sh.stack.paths.learn(sh.now, e.quote.Dst, e.mtu, e.quote.Length)
	case soft && c.Connected():
		c.failSoftly(e.err())
	}
	sh.mark(c)
	return true
}

// inputError takes an ICMP error about a packet of the socket's, in which skip bytes are
// headers that are not the program's, and reports whether it tells anything. As on Linux, a
// program that does not keep errors hears only what is final, and that if there is a peer.
func (c *datagramSocket) inputError(sh *shard, e *icmpError, skip int) bool {
	o, dst := c.Options(), e.quote.Dst
	queues, peer := o.queuesErrors(dst), c.peer.Load() != nil
	heeded := false
	told := o.SoftErrors || queues || peer && e.kind.Hard()
	if e.kind == icmp.TooBig {
		d := o.discovery(dst)
		if heeded = d.believes(); heeded {
			sh.stack.paths.learn(sh.now, dst, e.mtu, e.quote.Length)
		}
		told = d.tells(dst) && (peer || queues)
	}
	err := e.err()
	if err == nil || !told {
		return heeded
	}
	if queues {
		kept := DatagramError{
			Err: err, Type: e.typ, Code: e.code, Info: e.info, Message: e.message,
			To:      netip.AddrPortFrom(dst, e.quote.DstPort),
			Payload: append([]byte(nil), e.packet[min(skip, len(e.packet)):]...),
		}
		if o.tellsExtensions(dst) {
			kept.Extensions = icmp.FindExtensions(e.packet, e.quoted, skip)
		}
		c.keepError(kept)
	}
	c.fail(err)
	return true
}

// kindErrors are the errors that programs get, as icmp.Kind says.
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

// err is what the program gets; nil: nothing.
func (e *icmpError) err() error {
	if e.kind == icmp.Prohibited && e.quote.Dst.Is6() {
		return ErrAccess
	}
	return kindErrors[e.kind]
}
