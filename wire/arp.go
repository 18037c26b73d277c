package wire

import (
	"encoding/binary"
	"net/netip"
)

// ARP for IPv4 over Ethernet (RFC 826).

// ARPOp is the operation of an ARP packet.
type ARPOp uint16

// Values of ARPOp (RFC 826).
const (
	ARPRequest ARPOp = 1
	ARPReply   ARPOp = 2
)

// ARPLen is the size of an ARP packet for IPv4 over Ethernet in bytes.
const ARPLen = 28

// ARP is an ARP packet. Both IP addresses are IPv4. A missing address is 0.0.0.0, not the zero netip.Addr; for example,
// a probe has no sender address (RFC 5227 section 1.1).
type ARP struct {
	Op                 ARPOp
	SenderMAC          MAC
	SenderIP, TargetIP netip.Addr
	TargetMAC          MAC
}

// ParseARP parses a request or reply for IPv4 over Ethernet. It returns an error for any other packet.
func ParseARP(b []byte) (a ARP, err error) {
	if len(b) < ARPLen {
		return a, ErrShort
	}
	const ethernet, ipv4 = 1, uint16(TypeIPv4)
	if binary.BigEndian.Uint16(b) != ethernet || binary.BigEndian.Uint16(b[2:]) != ipv4 {
		return a, ErrVersion
	}
	if b[4] != 6 || b[5] != 4 {
		return a, ErrLength
	}
	a.Op = ARPOp(binary.BigEndian.Uint16(b[6:]))
	if a.Op != ARPRequest && a.Op != ARPReply {
		return a, ErrField
	}
	a.SenderMAC = MAC(b[8:14])
	a.SenderIP = netip.AddrFrom4([4]byte(b[14:18]))
	a.TargetMAC = MAC(b[18:24])
	a.TargetIP = netip.AddrFrom4([4]byte(b[24:28]))
	return a, nil
}

// Len returns ARPLen.
func (a *ARP) Len() int { return ARPLen }

// Put writes the packet into the first ARPLen bytes of b.
func (a *ARP) Put(b []byte) {
	_ = b[ARPLen-1]
	binary.BigEndian.PutUint16(b[0:], 1)
	binary.BigEndian.PutUint16(b[2:], uint16(TypeIPv4))
	b[4], b[5] = 6, 4
	binary.BigEndian.PutUint16(b[6:], uint16(a.Op))
	copy(b[8:14], a.SenderMAC[:])
	s, t := a.SenderIP.As4(), a.TargetIP.As4()
	copy(b[14:18], s[:])
	copy(b[18:24], a.TargetMAC[:])
	copy(b[24:28], t[:])
}
