package wire

import "encoding/binary"

// VXLAN (RFC 7348 section 5): an Ethernet frame in a UDP datagram.

// VXLANPort is the UDP destination port of VXLAN (IANA).
const VXLANPort = 4789

// VXLANLen is the size of the header in bytes.
const VXLANLen = 8

// MaxVNI is the largest VXLAN network identifier, which has 24 bits.
const MaxVNI = 1<<24 - 1

const vxlanHasVNI = 1 << 27 // the I flag, in the first word: the VNI is valid

// VXLAN is a VXLAN header.
type VXLAN struct {
	VNI uint32 // 0 to MaxVNI
}

// ParseVXLAN parses a header. It checks the I flag, which "MUST be set to 1 for a valid VXLAN Network ID". It ignores
// the reserved bits; Put sets them to zero.
func ParseVXLAN(b []byte) (h VXLAN, frame []byte, err error) {
	if len(b) < VXLANLen {
		return h, nil, ErrShort
	}
	if binary.BigEndian.Uint32(b)&vxlanHasVNI == 0 {
		return h, nil, ErrField
	}
	return VXLAN{binary.BigEndian.Uint32(b[4:]) >> 8}, b[VXLANLen:], nil
}

// Len returns VXLANLen.
func (h VXLAN) Len() int { return VXLANLen }

// Put writes the header into the first VXLANLen bytes of b.
func (h VXLAN) Put(b []byte) {
	_ = b[VXLANLen-1]
	binary.BigEndian.PutUint32(b, vxlanHasVNI)
	binary.BigEndian.PutUint32(b[4:], h.VNI<<8)
}
