package wire

import (
	"encoding/binary"
	"net/netip"
)

// ICMP for IPv4 (RFC 792, RFC 1191 for the next-hop MTU, RFC 1812 for codes).

// ICMPv4Type is the type octet of an ICMP message.
type ICMPv4Type uint8

// ICMP message types (IANA icmp-parameters).
const (
	ICMPv4EchoReply      ICMPv4Type = 0
	ICMPv4Unreachable    ICMPv4Type = 3
	ICMPv4SourceQuench   ICMPv4Type = 4 // deprecated and ignored (RFC 6633)
	ICMPv4Redirect       ICMPv4Type = 5
	ICMPv4Echo           ICMPv4Type = 8
	ICMPv4TimeExceeded   ICMPv4Type = 11
	ICMPv4ParamProblem   ICMPv4Type = 12
	ICMPv4Timestamp      ICMPv4Type = 13
	ICMPv4TimestampReply ICMPv4Type = 14
)

// Codes of ICMPv4Unreachable (RFC 792, 1122 section 3.2.2.1, 1812 section
// 5.2.7.1), and of ICMPv4TimeExceeded.
const (
	CodeNetUnreachable   = 0
	CodeHostUnreachable  = 1
	CodeProtoUnreachable = 2
	CodePortUnreachable  = 3
	CodeFragNeeded       = 4
	CodeSourceRoute      = 5 // source route failed
	CodeNetUnknown       = 6
	CodeHostUnknown      = 7
	CodeHostIsolated     = 8
	CodeNetProhibited    = 9
	CodeHostProhibited   = 10
	CodeNetTOS           = 11 // unreachable for this type of service
	CodeHostTOS          = 12
	CodeAdminProhibited  = 13
	CodePrecedence       = 14 // host precedence violation
	CodePrecedenceCutoff = 15

	CodeTTLExceeded        = 0
	CodeReassemblyExceeded = 1
)

// MaxCodeRedirect is the largest code of ICMPv4Redirect. The four codes are redirects for a network and for a host,
// each with and without a type of service (RFC 792).
const MaxCodeRedirect = 3

// ICMPv4Len is the size of the fixed part of a message in bytes.
const ICMPv4Len = 8

// ICMPv4 is the fixed part of an ICMP message; the remaining bytes of the message are the payload. Rest is the second
// 32-bit word, whose meaning depends on Type.
type ICMPv4 struct {
	Type ICMPv4Type
	Code uint8
	Rest uint32
}

// ParseICMPv4 splits a message into its fixed part and the payload. It does not verify the checksum, which also covers
// the payload: see ICMPv4ChecksumOK.
func ParseICMPv4(b []byte) (h ICMPv4, payload []byte, err error) {
	if len(b) < ICMPv4Len {
		return h, nil, ErrShort
	}
	return ICMPv4{ICMPv4Type(b[0]), b[1], binary.BigEndian.Uint32(b[4:])}, b[ICMPv4Len:], nil
}

// ICMPv4ChecksumOK verifies the checksum of the whole message b.
func ICMPv4ChecksumOK(b []byte) bool { return Sum(b, 0) == 0xffff }

// IsError reports whether the message is an error message. Its payload then quotes the front of the packet that caused
// the error. A host must never send an error about an error (RFC 1122 section 3.2.2).
func (h ICMPv4) IsError() bool {
	switch h.Type {
	case ICMPv4Unreachable, ICMPv4SourceQuench, ICMPv4Redirect, ICMPv4TimeExceeded, ICMPv4ParamProblem:
		return true
	}
	return false
}

// EchoID returns the identifier of an echo or echo reply.
func (h ICMPv4) EchoID() uint16 { return uint16(h.Rest >> 16) }

// EchoSeq returns the sequence number of an echo or echo reply.
func (h ICMPv4) EchoSeq() uint16 { return uint16(h.Rest) }

// EchoRest returns the value of the field Rest for an echo or echo reply.
func EchoRest(id, seq uint16) uint32 { return uint32(id)<<16 | uint32(seq) }

// NextHopMTU returns the MTU in a "fragmentation needed" message, or 0 if the router is too old to report it
// (RFC 1191 section 4).
func (h ICMPv4) NextHopMTU() int { return int(h.Rest & 0xffff) }

// QuoteLen returns the number of bytes of the payload that belong to the quoted packet, including padding. It returns 0
// if the message does not give this length (RFC 4884 section 4).
func (h ICMPv4) QuoteLen() int {
	switch h.Type {
	case ICMPv4Unreachable, ICMPv4TimeExceeded, ICMPv4ParamProblem:
		return int(h.Rest>>16&0xff) * 4
	}
	return 0
}

// Gateway returns the address of the router that a redirect names.
func (h ICMPv4) Gateway() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(h.Rest >> 24), byte(h.Rest >> 16), byte(h.Rest >> 8), byte(h.Rest)})
}

// Pointer returns the offset, in the quoted packet, of the byte that caused a parameter problem.
func (h ICMPv4) Pointer() int { return int(h.Rest >> 24) }

// Len returns ICMPv4Len.
func (h ICMPv4) Len() int { return ICMPv4Len }

// Put writes the fixed part with a zero checksum into the first ICMPv4Len bytes of b.
func (h ICMPv4) Put(b []byte) {
	_ = b[ICMPv4Len-1]
	b[0], b[1], b[2], b[3] = uint8(h.Type), h.Code, 0, 0
	binary.BigEndian.PutUint32(b[4:], h.Rest)
}

// PutICMPv4Checksum sets the checksum of the whole message b, whose checksum field must be zero.
func PutICMPv4Checksum(b []byte) {
	binary.BigEndian.PutUint16(b[2:], ^Sum(b, 0))
}
