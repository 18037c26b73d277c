package wire

import (
	"encoding/binary"
	"net/netip"
)

// UDP (RFC 768).

// UDPLen is the size of a UDP header in bytes.
const UDPLen = 8

// UDP is a UDP header. PayloadLen is at most 65535-UDPLen.
type UDP struct {
	SrcPort, DstPort uint16
	PayloadLen       int
	NoChecksum       bool // the sender computed no checksum (IPv4 only)
}

// ParseUDP parses a header. It checks the length field, and removes bytes after the datagram from the payload.
func ParseUDP(b []byte) (h UDP, payload []byte, err error) {
	if len(b) < UDPLen {
		return h, nil, ErrShort
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < UDPLen || n > len(b) {
		return h, nil, ErrLength
	}
	h = UDP{
		SrcPort:    binary.BigEndian.Uint16(b[0:]),
		DstPort:    binary.BigEndian.Uint16(b[2:]),
		PayloadLen: n - UDPLen,
		NoChecksum: b[6] == 0 && b[7] == 0,
	}
	return h, b[UDPLen:n], nil
}

// UDPChecksumOK verifies the checksum of the datagram at the front of b, which was sent from src to dst and which
// ParseUDP has accepted. A datagram without a checksum is accepted over IPv4 and rejected over IPv6 (RFC 8200 section
// 8.1).
func UDPChecksumOK(b []byte, src, dst netip.Addr) bool {
	n := int(binary.BigEndian.Uint16(b[4:]))
	if b[6] == 0 && b[7] == 0 {
		return src.Is4()
	}
	return Sum(b[:n], PseudoSum(ProtoUDP, src, dst, n)) == 0xffff
}

// Len returns UDPLen.
func (h *UDP) Len() int { return UDPLen }

// Put writes the header with a zero checksum into the first UDPLen bytes of b. Unless PutUDPChecksum is
// called afterwards, the datagram has no checksum.
func (h *UDP) Put(b []byte) {
	_ = b[UDPLen-1]
	binary.BigEndian.PutUint16(b[0:], h.SrcPort)
	binary.BigEndian.PutUint16(b[2:], h.DstPort)
	binary.BigEndian.PutUint16(b[4:], uint16(UDPLen+h.PayloadLen))
	b[6], b[7] = 0, 0
}

// PutUDPChecksum sets the checksum of the whole datagram b, header and payload. The checksum field must be zero. A
// computed checksum of zero is written as 0xffff, since zero means no checksum.
func PutUDPChecksum(b []byte, src, dst netip.Addr) {
	sum := ^Sum(b, PseudoSum(ProtoUDP, src, dst, len(b)))
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[6:], sum)
}
