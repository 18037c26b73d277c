package wire

import (
	"encoding/binary"
	"net/netip"
)

// UDP-Lite (RFC 3828): UDP with a checksum that may cover only the front of a datagram. The header has the size of a
// UDP header. In place of the length, which follows from the IP header, it has the checksum coverage.

// UDPLite is a UDP-Lite header.
type UDPLite struct {
	SrcPort, DstPort uint16
	Coverage         uint16 // bytes that the checksum covers, from the start of the header; 0: the whole datagram
}

// ParseUDPLite parses the header of the datagram b. It rejects a coverage that is shorter than the header or longer
// than the datagram (RFC 3828 section 3.1).
func ParseUDPLite(b []byte) (h UDPLite, payload []byte, err error) {
	if len(b) < UDPLen {
		return h, nil, ErrShort
	}
	h = UDPLite{
		SrcPort:  binary.BigEndian.Uint16(b[0:]),
		DstPort:  binary.BigEndian.Uint16(b[2:]),
		Coverage: binary.BigEndian.Uint16(b[4:]),
	}
	if h.Coverage != 0 && h.Coverage < UDPLen || int(h.Coverage) > len(b) {
		return h, nil, ErrLength
	}
	return h, b[UDPLen:], nil
}

// Covered returns the number of bytes that the checksum of a datagram of n bytes covers.
func (h *UDPLite) Covered(n int) int {
	if h.Coverage == 0 {
		return n
	}
	return min(int(h.Coverage), n)
}

// Len returns UDPLen.
func (h *UDPLite) Len() int { return UDPLen }

// Put writes the header with a zero checksum into the first UDPLen bytes of b. PutUDPLiteChecksum must follow, because a
// datagram without a checksum is invalid.
func (h *UDPLite) Put(b []byte) {
	_ = b[UDPLen-1]
	binary.BigEndian.PutUint16(b[0:], h.SrcPort)
	binary.BigEndian.PutUint16(b[2:], h.DstPort)
	binary.BigEndian.PutUint16(b[4:], h.Coverage)
	b[6], b[7] = 0, 0
}

// udpLiteSum returns the partial sum of the covered part of the datagram b and of its pseudo header. The length in the
// pseudo header is the length of the whole datagram.
func udpLiteSum(b []byte, src, dst netip.Addr) uint16 {
	h := UDPLite{Coverage: binary.BigEndian.Uint16(b[4:])}
	return Sum(b[:h.Covered(len(b))], PseudoSum(ProtoUDPLite, src, dst, len(b)))
}

// UDPLiteChecksumOK verifies the checksum of the datagram b, which was sent from src to dst and which ParseUDPLite has
// accepted.
func UDPLiteChecksumOK(b []byte, src, dst netip.Addr) bool {
	return (b[6] != 0 || b[7] != 0) && udpLiteSum(b, src, dst) == 0xffff
}

// PutUDPLiteChecksum sets the checksum of the whole datagram b, whose checksum field must be zero.
func PutUDPLiteChecksum(b []byte, src, dst netip.Addr) {
	sum := ^udpLiteSum(b, src, dst)
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(b[6:], sum)
}
