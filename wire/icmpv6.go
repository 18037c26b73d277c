package wire

import (
	"encoding/binary"
	"net/netip"
)

// ICMP for IPv6 (RFC 4443) and the types of neighbour discovery (RFC 4861).

// ICMPv6Type is the type octet. Types below 128 are errors.
type ICMPv6Type uint8

// Types (IANA icmpv6-parameters).
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

// CodeAddrUnreachable6 is the code of ICMPv6Unreachable that says that the neighbour does not
// answer (RFC 4443 section 3.1).
const CodeAddrUnreachable6 = 3

// CodePortUnreachable6 is the code of ICMPv6Unreachable that says that nobody listens
// at the port (RFC 4443 section 3.1).
const CodePortUnreachable6 = 4

// ICMPv6Len is the size of the fixed part in bytes.
const ICMPv6Len = 8

// ICMPv6 is the fixed part of a message; the rest is its payload. Rest is the
// second word, whose meaning depends on the type; EchoRest joins what it holds
// in an echo.
type ICMPv6 struct {
	Type ICMPv6Type
	Code uint8
	Rest uint32
}

// ParseICMPv6 splits a message. It does not check the checksum, which covers
// the addresses too: see ICMPv6ChecksumOK.
func ParseICMPv6(b []byte) (h ICMPv6, payload []byte, err error) {
	if len(b) < ICMPv6Len {
		return h, nil, ErrShort
	}
	return ICMPv6{ICMPv6Type(b[0]), b[1], binary.BigEndian.Uint32(b[4:])}, b[ICMPv6Len:], nil
}

// ICMPv6ChecksumOK verifies the whole message b between src and dst.
func ICMPv6ChecksumOK(b []byte, src, dst netip.Addr) bool {
	return Sum(b, PseudoSum(ProtoICMPv6, src, dst, len(b))) == 0xffff
}

// IsError reports whether the message is about another packet (RFC 4443 section
// 2.1). An error is never answered by an error (section 2.4).
func (h ICMPv6) IsError() bool { return h.Type < 128 }

// QuoteLen is how many bytes of the payload are the packet that an error is about, padding with
// them; 0: the message does not say (RFC 4884 section 4).
func (h ICMPv6) QuoteLen() int {
	if h.Type != ICMPv6Unreachable && h.Type != ICMPv6TimeExceeded {
		return 0
	}
	return int(h.Rest>>24) * 8
}

// EchoID is the identifier of an echo or echo reply.
func (h ICMPv6) EchoID() uint16 { return uint16(h.Rest >> 16) }

// EchoSeq is the sequence number of an echo or echo reply.
func (h ICMPv6) EchoSeq() uint16 { return uint16(h.Rest) }

// Len is ICMPv6Len.
func (h ICMPv6) Len() int { return ICMPv6Len }

// Put writes the fixed part with an empty checksum into the first ICMPv6Len
// bytes of b.
func (h ICMPv6) Put(b []byte) {
	_ = b[ICMPv6Len-1]
	b[0], b[1], b[2], b[3] = uint8(h.Type), h.Code, 0, 0
	binary.BigEndian.PutUint32(b[4:], h.Rest)
}

// PutICMPv6Checksum fills in the checksum of the whole message b, whose checksum
// field is empty.
func PutICMPv6Checksum(b []byte, src, dst netip.Addr) {
	binary.BigEndian.PutUint16(b[2:], ^Sum(b, PseudoSum(ProtoICMPv6, src, dst, len(b))))
}
