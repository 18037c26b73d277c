package wire

import (
	"encoding/binary"
	"net/netip"
)

// ICMP for IPv6 (RFC 4443), including the message types of neighbour discovery (RFC 4861).

// ICMPv6Type is the type octet of an ICMPv6 message. Types below 128 are errors.
type ICMPv6Type uint8

// ICMPv6 message types (IANA icmpv6-parameters).
const (
	ICMPv6Unreachable           ICMPv6Type = 1
	ICMPv6PacketTooBig          ICMPv6Type = 2
	ICMPv6TimeExceeded          ICMPv6Type = 3
	ICMPv6ParamProblem          ICMPv6Type = 4
	ICMPv6Echo                  ICMPv6Type = 128
	ICMPv6EchoReply             ICMPv6Type = 129
	ICMPv6RouterSolicitation    ICMPv6Type = 133
	ICMPv6RouterAdvertisement   ICMPv6Type = 134
	ICMPv6NeighborSolicitation  ICMPv6Type = 135
	ICMPv6NeighborAdvertisement ICMPv6Type = 136
	ICMPv6Redirect              ICMPv6Type = 137
)

// CodeAddrUnreachable6 is the code of ICMPv6Unreachable for a neighbour that does not answer (RFC 4443
// section 3.1).
const CodeAddrUnreachable6 = 3

// CodePortUnreachable6 is the code of ICMPv6Unreachable for a port without a listener (RFC 4443 section 3.1).
const CodePortUnreachable6 = 4

// ICMPv6Len is the size of the fixed part of a message in bytes.
const ICMPv6Len = 8

// ICMPv6 is the fixed part of an ICMPv6 message; the remaining bytes of the message are the payload. Rest is the second
// 32-bit word, whose meaning depends on Type. For an echo, EchoRest returns it.
type ICMPv6 struct {
	Type ICMPv6Type
	Code uint8
	Rest uint32
}

// ParseICMPv6 splits a message into its fixed part and the payload. It does not verify the checksum, which also covers
// the IP addresses: see ICMPv6ChecksumOK.
func ParseICMPv6(b []byte) (h ICMPv6, payload []byte, err error) {
	if len(b) < ICMPv6Len {
		return h, nil, ErrShort
	}
	return ICMPv6{ICMPv6Type(b[0]), b[1], binary.BigEndian.Uint32(b[4:])}, b[ICMPv6Len:], nil
}

// ICMPv6ChecksumOK verifies the checksum of the whole message b, sent from src to dst.
func ICMPv6ChecksumOK(b []byte, src, dst netip.Addr) bool {
	return Sum(b, PseudoSum(ProtoICMPv6, src, dst, len(b))) == 0xffff
}

// IsError reports whether the message is an error about another packet (RFC 4443 section 2.1). A host must never send
// an error about an error (RFC 4443 section 2.4).
func (h ICMPv6) IsError() bool { return h.Type < 128 }

// QuoteLen returns the number of bytes of the payload that belong to the quoted packet, including padding. It returns 0
// if the message does not give this length (RFC 4884 section 4).
func (h ICMPv6) QuoteLen() int {
	if h.Type != ICMPv6Unreachable && h.Type != ICMPv6TimeExceeded {
		return 0
	}
	return int(h.Rest>>24) * 8
}

// EchoID returns the identifier of an echo or echo reply.
func (h ICMPv6) EchoID() uint16 { return uint16(h.Rest >> 16) }

// EchoSeq returns the sequence number of an echo or echo reply.
func (h ICMPv6) EchoSeq() uint16 { return uint16(h.Rest) }

// Len returns ICMPv6Len.
func (h ICMPv6) Len() int { return ICMPv6Len }

// Put writes the fixed part with a zero checksum into the first ICMPv6Len bytes of b.
func (h ICMPv6) Put(b []byte) {
	_ = b[ICMPv6Len-1]
	b[0], b[1], b[2], b[3] = uint8(h.Type), h.Code, 0, 0
	binary.BigEndian.PutUint32(b[4:], h.Rest)
}

// PutICMPv6Checksum sets the checksum of the whole message b, whose checksum field must be zero.
func PutICMPv6Checksum(b []byte, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(b[2:], ^Sum(b, PseudoSum(ProtoICMPv6, src, dst, len(b))))
}
