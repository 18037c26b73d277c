package wire

import "encoding/binary"

// MPLS label stacks (RFC 3032, the traffic class by RFC 5462). ParseMPLS parses one entry of a stack. If BottomOfStack
// is false, another entry follows. The packet does not contain the type of the payload after the last entry. A receiver
// derives it from the label; a tool can only guess it from the first four bits of the payload.

// MPLSLen is the size of one entry of a label stack in bytes.
const MPLSLen = 4

// MaxLabel is the largest label, which has 20 bits. Labels 0 to 15 are reserved (RFC 3032 section 2.1, IANA
// mpls-label-values).
const MaxLabel = 1<<20 - 1

// MPLS is one entry of a label stack.
type MPLS struct {
	Label         uint32 // 0 to MaxLabel
	TrafficClass  uint8  // 0 to 7
	BottomOfStack bool
	TTL           uint8
}

// ParseMPLS parses the label stack entry at the front of b. rest is the data after the entry.
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
