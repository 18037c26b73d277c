package link

import (
	"encoding/binary"

	"loam/wire"
)

// Segmentation and coalescing work on headers in place: they copy most bytes unchanged and modify a
// few. This file finds where the headers of a frame begin and end. Package wire, which decodes
// headers into values, is not used for that.

// headers holds the offsets of the headers of a TCP or UDP packet in a frame. Each is checked to
// lie inside the frame.
type headers struct {
	ip        int // offset of the start of the IP header
	transport int
	payload   int
	end       int // end of the IP packet; padding of a short Ethernet frame may follow
	v6        bool
	protocol  wire.Protocol // protocol of the transport header: ProtoTCP or ProtoUDP
}

// Offsets inside the headers (RFC 791, 8200, 9293, 768).
const (
	ipv4TotalLen, ipv4ID, ipv4Frag, ipv4Proto, ipv4Sum, ipv4Src = 2, 4, 6, 9, 10, 12
	ipv6PayloadLen, ipv6Next, ipv6Src, ipv6Len                  = 4, 6, 8, 40
	tcpSeq, tcpAck, tcpOffset, tcpFlags, tcpWindow, tcpSum      = 4, 8, 12, 13, 14, 16
	udpLength, udpSum                                           = 4, 6
)

// parseHeaders finds the headers of a complete TCP or UDP packet. ok is false for anything else,
// fragments included.
func parseHeaders(m Medium, b []byte) (h headers, ok bool) {
	if m == Ethernet {
		if h.ip, ok = skipEthernet(b); !ok {
			return h, false
		}
	}
	if len(b) < h.ip+wire.IPv4MinLen {
		return h, false
	}
	switch b[h.ip] >> 4 {
	case 4:
		ok = h.parseIPv4(b)
	case 6:
		ok = h.parseIPv6(b)
	default:
		ok = false
	}
	return h, ok && h.parseTransport(b)
}

// skipEthernet returns the length of the Ethernet header of an IP packet, up to two VLAN tags
// included. ok is false if b is no IP packet.
func skipEthernet(b []byte) (n int, ok bool) {
	for n = wire.EthernetLen; n <= wire.EthernetLen+2*wire.VLANTagLen && n <= len(b); n += wire.VLANTagLen {
		switch wire.EtherType(binary.BigEndian.Uint16(b[n-2:])) {
		case wire.TypeIPv4, wire.TypeIPv6:
			return n, true
		case wire.TypeVLAN, wire.TypeQinQ:
		default:
			return 0, false
		}
	}
	return 0, false
}

// parseIPv4 finds the transport header and the end of an IPv4 packet. It returns false for a fragment
// and for lengths that do not fit.
func (h *headers) parseIPv4(b []byte) bool {
	p := b[h.ip:]
	length, total := int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[ipv4TotalLen:]))
	const fragment = 0x3fff // the bit "more fragments", and the fragment offset
	if length < wire.IPv4MinLen || total < length || total > len(p) || binary.BigEndian.Uint16(p[ipv4Frag:])&fragment != 0 {
		return false
	}
	h.transport, h.end, h.protocol = h.ip+length, h.ip+total, wire.Protocol(p[ipv4Proto])
	return true
}

// IPv6 extension headers that may precede a complete packet (RFC 8200 section 4). The routing
// header is not supported: it changes the pseudo header.
const (
	extHopByHop    = 0
	extDestination = 60
)

// parseIPv6 finds the transport header after hop-by-hop and destination options, and the end of the
// packet. It returns false for lengths that do not fit.
func (h *headers) parseIPv6(b []byte) bool {
	p := b[h.ip:]
	if len(p) < ipv6Len {
		return false
	}
	total := ipv6Len + int(binary.BigEndian.Uint16(p[ipv6PayloadLen:]))
	if total > len(p) {
		return false
	}
	next, at := p[ipv6Next], ipv6Len
	for next == extHopByHop || next == extDestination {
		if at+8 > total {
			return false
		}
		next, at = p[at], at+8+8*int(p[at+1])
	}
	h.v6, h.transport, h.end, h.protocol = true, h.ip+at, h.ip+total, wire.Protocol(next)
	return at <= total
}

// parseTransport finds the payload of a TCP or UDP packet. It returns false for other protocols and for
// lengths that do not fit.
func (h *headers) parseTransport(b []byte) bool {
	p := b[h.transport:h.end]
	switch h.protocol {
	case wire.ProtoTCP:
		if len(p) < wire.TCPMinLen {
			return false
		}
		length := int(p[tcpOffset]>>4) * 4
		h.payload = h.transport + length
		return length >= wire.TCPMinLen && length <= len(p)
	case wire.ProtoUDP:
		h.payload = h.transport + wire.UDPLen
		return len(p) >= wire.UDPLen
	}
	return false
}

// sumAt returns the offset of the transport checksum.
func (h *headers) sumAt() int {
	if h.protocol == wire.ProtoUDP {
		return h.transport + udpSum
	}
	return h.transport + tcpSum
}

// pseudoSum returns the sum of the pseudo header of a packet that ends at offset end.
func (h *headers) pseudoSum(b []byte, end int) uint16 {
	addresses := b[h.ip+ipv4Src : h.ip+wire.IPv4MinLen]
	if h.v6 {
		addresses = b[h.ip+ipv6Src : h.ip+ipv6Len]
	}
	return wire.Sum(addresses, wire.AddSums(uint16(h.protocol), uint16(end-h.transport)))
}

// putLengths writes all length fields, and the IPv4 header checksum, of a packet that extends to
// the end of b.
func (h *headers) putLengths(b []byte) {
	p := b[h.ip:]
	if h.v6 {
		binary.BigEndian.PutUint16(p[ipv6PayloadLen:], uint16(len(p)-ipv6Len))
	} else {
		binary.BigEndian.PutUint16(p[ipv4TotalLen:], uint16(len(p)))
		binary.BigEndian.PutUint16(p[ipv4Sum:], 0)
		binary.BigEndian.PutUint16(p[ipv4Sum:], ^wire.Sum(p[:h.transport-h.ip], 0))
	}
	if h.protocol == wire.ProtoUDP {
		binary.BigEndian.PutUint16(b[h.transport+udpLength:], uint16(len(b)-h.transport))
	}
}

// putPartialSum stores the sum of the pseudo header in the transport checksum field, so that a
// device finishes the checksum. The packet extends to the end of b.
func (h *headers) putPartialSum(b []byte) {
	binary.BigEndian.PutUint16(b[h.sumAt():], h.pseudoSum(b, len(b)))
}

// putSum computes and stores the transport checksum of a packet that extends to the end of b. A UDP
// checksum of zero is sent as 0xffff, because zero means no checksum.
func (h *headers) putSum(b []byte) {
	at := h.sumAt()
	binary.BigEndian.PutUint16(b[at:], 0)
	sum := ^wire.Sum(b[h.transport:], h.pseudoSum(b, len(b)))
	if sum == 0 && h.protocol == wire.ProtoUDP {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[at:], sum)
}
