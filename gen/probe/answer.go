package probe

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// What comes in: frames that may be answers to probes, other traffic, or forged.
// Checksums behind the IP header are not looked at: on virtual links the sender
// leaves those of TCP and UDP to a device that never was, and the tag says more.

// verdict is what a frame turned out to be.
type verdict uint8

const (
	genuine   verdict = iota // an answer to a question of ours
	foreign                  // other traffic
	malformed                // not even a packet
	forged                   // looks like an answer, but the tag is wrong
)

// reply is a genuine answer.
type reply struct {
	question
	answer   Answer
	code     uint8      // of an ICMP error
	from     netip.Addr // who sent it: the target, or for errors maybe a router
	hopLimit uint8      // that was left
	rtt      int64      // nanoseconds; -1 if the answer does not tell
}

// read says what frame b is, which arrived at now of the run's clock.
func (f *form) read(b []byte, now int64) (r reply, v verdict) {
	eth, packet, err := wire.ParseEthernet(b)
	if err != nil {
		return r, malformed
	}
	r.rtt = -1
	var proto wire.Protocol
	var to netip.Addr
	switch {
	case eth.Type == wire.TypeIPv4 && f.is4:
		ip, payload, err := wire.ParseIPv4(packet)
		if err != nil {
			return r, malformed
		}
		if ip.IsFragment() {
			return r, foreign
		}
		proto, to, packet = ip.Protocol, ip.Dst, payload
		r.from, r.hopLimit = ip.Src, ip.TTL
	case eth.Type == wire.TypeIPv6 && !f.is4:
		ip, payload, err := wire.ParseIPv6(packet)
		if err != nil {
			return r, malformed
		}
		proto, to, packet = ip.NextHeader, ip.Dst, payload
		r.from, r.hopLimit = ip.Src, ip.HopLimit
	default:
		return r, foreign
	}
	if to != f.Source {
		return r, foreign
	}
	return r, f.readTransport(&r, proto, packet, now)
}

func (f *form) readTransport(r *reply, proto wire.Protocol, b []byte, now int64) verdict {
	r.addr = r.from
	switch {
	case proto == wire.ProtoICMP && f.is4:
		h, data, err := wire.ParseICMPv4(b)
		switch {
		case err != nil:
			return malformed
		case h.IsError():
			r.answer, r.code = errorAnswer4(h), h.Code
			return f.readQuote(r, data)
		case h.Type == wire.ICMPv4EchoReply && f.kind == Echo:
			return f.readEcho(r, h.EchoID(), h.EchoSeq(), data, now)
		}
	case proto == wire.ProtoICMPv6 && !f.is4:
		h, data, err := wire.ParseICMPv6(b)
		switch {
		case err != nil:
			return malformed
		case h.IsError():
			r.answer, r.code = errorAnswer6(h), h.Code
			return f.readQuote(r, data)
		case h.Type == wire.ICMPv6EchoReply && f.kind == Echo:
			return f.readEcho(r, h.EchoID(), h.EchoSeq(), data, now)
		}
	case proto == wire.ProtoTCP && f.kind == SYN:
		return f.readTCP(r, b, now)
	case proto == wire.ProtoUDP && f.kind == UDP:
		return f.readUDP(r, b)
	}
	return foreign
}

// readEcho: a host has to return the data (RFC 1122 section 3.2.2.6, RFC 4443
// section 4.2). One that cuts it off still answers, but does not tell the time.
func (f *form) readEcho(r *reply, id, seq uint16, data []byte, now int64) verdict {
	if id != f.id {
		return foreign
	}
	tag := f.tags.tag(r.question)
	if seq != sequence(tag) {
		return forged
	}
	if len(data) >= echoData {
		sent, ok := f.tags.readEchoData(data, tag)
		if !ok {
			return forged
		}
		r.rtt = max(now-sent, 0)
	}
	r.answer = EchoReply
	return genuine
}

func (f *form) readTCP(r *reply, b []byte, now int64) verdict {
	h, _, err := wire.ParseTCP(b)
	if err != nil {
		return malformed
	}
	r.port = h.SrcPort
	if !f.local.contain(h.DstPort) || !h.Flags.Has(wire.ACK) {
		return foreign
	}
	switch {
	case h.Flags.Has(wire.RST):
		r.answer = Reset
	case h.Flags.Has(wire.SYN):
		r.answer = SYNACK
	default:
		return foreign
	}
	tag := f.tags.tag(r.question)
	if h.DstPort != f.local.of(tag) || h.Ack != initialSequence(tag)+1 {
		return forged
	}
	if h.HasTimestamps && h.TSEcr != 0 {
		if rtt, ok := roundTrip(now, h.TSEcr); ok {
			r.rtt = rtt
		}
	}
	return genuine
}

func (f *form) readUDP(r *reply, b []byte) verdict {
	h, _, err := wire.ParseUDP(b)
	if err != nil {
		return malformed
	}
	r.port = h.SrcPort
	if !f.local.contain(h.DstPort) {
		return foreign
	}
	if h.DstPort != f.local.of(f.tags.tag(r.question)) {
		return forged
	}
	r.answer = Data
	return genuine
}

// quoteLen is how much of a packet's transport header an ICMP error quotes at
// the least (RFC 792).
const quoteLen = 8

// readQuote looks for a probe of ours in the front of the packet that an ICMP
// error is about. The packet is cut off anywhere behind quoteLen, and its length
// field no longer fits, so wire does not parse it.
func (f *form) readQuote(r *reply, b []byte) verdict {
	var src netip.Addr
	var proto wire.Protocol
	if f.is4 {
		if len(b) < wire.IPv4MinLen || b[0]>>4 != 4 {
			return malformed
		}
		hlen := int(b[0]&15) * 4
		if hlen < wire.IPv4MinLen || len(b) < hlen+quoteLen {
			return malformed
		}
		src, r.addr = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
		proto, b = wire.Protocol(b[9]), b[hlen:]
	} else {
		if len(b) < wire.IPv6Len+quoteLen || b[0]>>4 != 6 {
			return malformed
		}
		src, r.addr = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		proto, b = wire.Protocol(b[6]), b[wire.IPv6Len:]
	}
	if src != f.Source || proto != f.kind.protocol(f.is4) {
		return foreign
	}
	return f.checkQuote(r, b)
}

// checkQuote compares the first bytes of the transport header with those that
// the question must have had.
func (f *form) checkQuote(r *reply, b []byte) verdict {
	first, second := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	rest := binary.BigEndian.Uint32(b[4:])
	if f.kind == Echo {
		if uint16(rest>>16) != f.id {
			return foreign
		}
		if rest != wire.EchoRest(f.id, sequence(f.tags.tag(r.question))) {
			return forged
		}
		return genuine
	}
	r.port = second
	if !f.local.contain(first) {
		return foreign
	}
	tag := f.tags.tag(r.question)
	if first != f.local.of(tag) || f.kind == SYN && rest != initialSequence(tag) {
		return forged
	}
	return genuine
}

func errorAnswer4(h wire.ICMPv4) Answer {
	switch {
	case h.Type == wire.ICMPv4Unreachable && h.Code == wire.CodePortUnreachable:
		return PortUnreachable
	case h.Type == wire.ICMPv4Unreachable:
		return Unreachable
	case h.Type == wire.ICMPv4TimeExceeded:
		return TimeExceeded
	}
	return OtherError
}

func errorAnswer6(h wire.ICMPv6) Answer {
	const portUnreachable = 4 // RFC 4443 section 3.1
	switch {
	case h.Type == wire.ICMPv6Unreachable && h.Code == portUnreachable:
		return PortUnreachable
	case h.Type == wire.ICMPv6Unreachable:
		return Unreachable
	case h.Type == wire.ICMPv6TimeExceeded:
		return TimeExceeded
	}
	return OtherError
}
