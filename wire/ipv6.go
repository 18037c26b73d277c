package wire

import (
	"encoding/binary"
	"net/netip"
)

// IPv6 (RFC 8200): the fixed header. Extension headers are treated as part of the payload; see ipv6ext.go.

// Sizes of an IPv6 header and of a payload in bytes.
const (
	IPv6Len        = 40
	MaxIPv6Payload = 65535 // bytes; without the jumbo payload option (RFC 2675)
)

// MaxFlowLabel is the largest flow label, which has 20 bits (RFC 6437).
const MaxFlowLabel = 1<<20 - 1

// IPv6 is a fixed IPv6 header.
type IPv6 struct {
	TrafficClass uint8    // DSCP in the upper six bits, ECN in the lower two
	FlowLabel    uint32   // 0 to MaxFlowLabel
	NextHeader   Protocol // type of the next header: an extension header or the transport header
	HopLimit     uint8
	Src, Dst     netip.Addr
	PayloadLen   int // size in bytes of the data after this header, including extension headers
}

// ParseIPv6 parses a header and returns the payload without link-layer padding. It checks the version and the length.
// For a jumbogram, whose length field is 0, the payload is empty.
func ParseIPv6(b []byte) (h IPv6, payload []byte, err error) {
	if len(b) < IPv6Len {
		return h, nil, ErrShort
	}
	first := binary.BigEndian.Uint32(b)
	if first>>28 != 6 {
		return h, nil, ErrVersion
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if IPv6Len+n > len(b) {
		return h, nil, ErrLength
	}
	h = IPv6{
		TrafficClass: uint8(first >> 20),
		FlowLabel:    first & MaxFlowLabel,
		NextHeader:   Protocol(b[6]),
		HopLimit:     b[7],
		Src:          netip.AddrFrom16([16]byte(b[8:24])),
		Dst:          netip.AddrFrom16([16]byte(b[24:40])),
		PayloadLen:   n,
	}
	return h, b[IPv6Len : IPv6Len+n], nil
}

// Len returns IPv6Len.
func (h *IPv6) Len() int { return IPv6Len }

// Put writes the header into the first IPv6Len bytes of b. PayloadLen is at most
// MaxIPv6Payload.
func (h *IPv6) Put(b []byte) {
	_ = b[IPv6Len-1]
	binary.BigEndian.PutUint32(b, 6<<28|uint32(h.TrafficClass)<<20|h.FlowLabel&MaxFlowLabel)
	binary.BigEndian.PutUint16(b[4:], uint16(h.PayloadLen))
	b[6], b[7] = uint8(h.NextHeader), h.HopLimit
	s, d := h.Src.As16(), h.Dst.As16()
	copy(b[8:24], s[:])
	copy(b[24:40], d[:])
}
