package icmp

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// Quote describes the packet that caused an ICMP error, as far as the quoted part of the packet shows. It identifies the
// socket that sent the packet.
type Quote struct {
	Protocol         wire.Protocol
	Src, Dst         netip.Addr // addresses of the packet: Src is the host that receives the error
	SrcPort, DstPort uint16     // ports of a TCP or UDP packet
	Seq              uint32     // sequence number of a TCP segment, which a forger must guess (RFC 5927 section 4.1)
	EchoID, EchoSeq  uint16     // identifier and sequence number of an ICMP echo request
	Length           int        // length of the whole packet that was sent, in bytes
	Header           int        // length of the packet's IP headers, in bytes
}

// minQuoted is the minimum number of bytes of the packet's payload that an error quotes (RFC 792).
const minQuoted = 8

// ParseQuote parses the packet that an error quotes in its payload. The packet is normally truncated, so its length field is
// only returned, not checked. ok is false if b does not start with an IP packet, if the packet is a fragment other than the
// first or an ICMP message that no socket sends, or if b is too short to identify the sender.
func ParseQuote(b []byte) (q Quote, ok bool) {
	if len(b) < wire.IPv4MinLen || b[0]>>4 != 4 {
		return parseQuote6(b)
	}
	headerLen := int(b[0]&0xf) * 4
	fragOffset := binary.BigEndian.Uint16(b[6:]) & 0x1fff
	if headerLen < wire.IPv4MinLen || len(b) < headerLen+minQuoted || fragOffset != 0 {
		return q, false
	}
	q = Quote{
		Protocol: wire.Protocol(b[9]),
		Src:      netip.AddrFrom4([4]byte(b[12:16])),
		Dst:      netip.AddrFrom4([4]byte(b[16:20])),
		Length:   int(binary.BigEndian.Uint16(b[2:])),
		Header:   headerLen,
	}
	return q, q.setTransport(b[headerLen:])
}

// parseQuote6 parses a quoted IPv6 packet, as ParseQuote does for IPv4.
func parseQuote6(b []byte) (q Quote, ok bool) {
	if len(b) < wire.IPv6Len || b[0]>>4 != 6 {
		return q, false
	}
	proto, rest, later, ok := wire.SkipIPv6Ext(wire.Protocol(b[6]), b[wire.IPv6Len:])
	if !ok || later || len(rest) < minQuoted {
		return q, false
	}
	q = Quote{
		Protocol: proto,
		Src:      netip.AddrFrom16([16]byte(b[8:24])),
		Dst:      netip.AddrFrom16([16]byte(b[24:40])),
		Length:   wire.IPv6Len + int(binary.BigEndian.Uint16(b[4:])),
		Header:   len(b) - len(rest),
	}
	return q, q.setTransport(rest)
}

// setTransport parses the first minQuoted bytes of the payload.
func (q *Quote) setTransport(b []byte) bool {
	switch q.Protocol {
	case wire.ProtoTCP:
		q.SrcPort, q.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		q.Seq = binary.BigEndian.Uint32(b[4:])
	case wire.ProtoUDP, wire.ProtoUDPLite:
		q.SrcPort, q.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	case wire.ProtoICMP:
		return !q.Src.Is4() || q.setEcho(b, byte(wire.ICMPv4Echo))
	case wire.ProtoICMPv6:
		return q.Src.Is4() || q.setEcho(b, byte(wire.ICMPv6Echo))
	}
	return true
}

// setEcho parses an ICMP message of the packet's IP version. It returns false unless it is an echo request,
// the only ICMP message that sockets send.
func (q *Quote) setEcho(b []byte, request byte) bool {
	q.EchoID, q.EchoSeq = binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
	return b[0] == request
}
