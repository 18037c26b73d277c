package probe

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"loam/wire"
)

// Received frames may be answers to probes, other traffic, or forged answers. This file classifies them. It does not
// verify checksums after the IP header. On virtual links the sender leaves TCP and UDP checksums to a device that never
// computes them, and the tag in an answer (tag.go) is a stronger check.

// verdict is the classification of a received frame.
type verdict uint8

const (
	genuine   verdict = iota // an answer to one of our probes
	foreign                  // not an answer to a probe: other traffic
	malformed                // not a valid packet
	forged                   // has the form of an answer, but a wrong tag
)

// reply is a genuine answer to a probe.
type reply struct {
	question
	answer   Answer
	code     uint8      // code in an ICMP error
	from     netip.Addr // the sender of the answer: the target, or possibly a router if the answer is an ICMP error
	mac      wire.MAC   // Ethernet address of a neighbour; zero for other answers
	hopLimit uint8      // remaining hop limit or TTL
	rtt      int64      // round-trip time in nanoseconds; -1 if unknown
}

// read classifies frame b, which arrived at now, in nanoseconds of the run's clock.
func (f *form) read(b []byte, now int64) (r reply, v verdict) {
	eth, packet, err := wire.ParseEthernet(b)
	if err != nil {
		return r, malformed
	}
	if f.kind == Neighbour {
		return f.readNeighbour(&eth, packet)
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
	if !f.owns(to) {
		return r, foreign
	}
	v = f.readTransport(&r, proto, packet, now)
	if v == genuine && len(f.sources) > 1 && to != f.sources[f.sourceOf(f.tags.tag(r.question))] {
		v = forged
	}
	return r, v
}

// owns reports whether a is one of the source addresses of the run.
func (f *form) owns(a netip.Addr) bool { return a == f.Source || slices.Contains(f.sources[1:], a) }

// readTransport classifies the part of a packet after the IP header. r.from must already be set.
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

// readEcho classifies an echo reply. A host must return the data of the request (RFC 1122 section 3.2.2.6, RFC 4443
// section 4.2). A reply with truncated data is still accepted as an answer, but its round-trip time is unknown.
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

// readTCP classifies a TCP segment. A SYN-ACK or a reset is genuine if its port and its acknowledgment number match the
// tag.
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

// readUDP classifies a UDP datagram. It is genuine if its destination port matches the tag.
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

// quoteLen is the number of bytes of a packet's transport header that every ICMP error quotes (RFC 792).
const quoteLen = 8

// readQuote checks whether the packet that an ICMP error quotes is one of our probes. The quote may end anywhere after
// quoteLen bytes of the transport header. So the length fields do not match, and package wire cannot parse the quote.
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
	if !f.owns(src) || proto != f.kind.protocol(f.is4) {
		return foreign
	}
	return f.checkQuote(r, b)
}

// checkQuote compares the first bytes of the quoted transport header with the probe that we have sent for the question.
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
