package wire

import "encoding/binary"

// MPLS label stacks (RFC 3032, the traffic class by RFC 5462). One entry is parsed at a time; BottomOfStack
// is clear if another follows. The packet does not identify the payload behind the last entry: a receiver
// knows its type from the label, and a tool guesses it from the first four bits.

// MPLSLen is the size of one entry in bytes.
const MPLSLen = 4

// MaxLabel is the largest label, of 20 bits. Labels 0 to 15 are reserved (RFC 3032 section 2.1, IANA
// mpls-label-values).
const MaxLabel = 1<<20 - 1

// MPLS is one entry of a label stack.
type MPLS struct {
	Label         uint32 // 0 to MaxLabel
	TrafficClass  uint8  // 0 to 7
	BottomOfStack bool
	TTL           uint8
}

// ParseMPLS parses the first entry of b. rest is the data behind it.
func ParseMPLS(b []byte) (h MPLS, rest []byte, err error) {
	if len(b) < MPLSLen {
		return h, nil, ErrShort
	}
	v := binary.BigEndian.Uint32(b)
	h = MPLS{Label: v >> 12, TrafficClass: uint8(v >> 9 & 7), BottomOfStack: v>>8&1 != 0, TTL: uint8(v)}
	return h, b[MPLSLen:], nil
}

// Len returns MPLSLen.
func (h MPLS) Len() int { return MPLSLen }

// Put writes the entry into the first MPLSLen bytes of b.
func (h MPLS) Put(b []byte) {
	v := h.Label<<12 | uint32(h.TrafficClass&7)<<9 | uint32(h.TTL)
	if h.BottomOfStack {
		v |= 1 << 8
	}
	binary.BigEndian.PutUint32(b, v)
}
