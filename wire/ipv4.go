package wire

import (
	"encoding/binary"
	"net/netip"
)

// IPv4 (RFC 791). The field TOS is used as DSCP and ECN (RFC 2474, RFC 3168), and the field ID as in RFC 6864.

// Protocol is an IP protocol number, the same for IPv4 and IPv6.
type Protocol uint8

// Protocols (IANA protocol-numbers).
const (
	ProtoICMP    Protocol = 1
	ProtoIGMP    Protocol = 2
	ProtoTCP     Protocol = 6
	ProtoUDP     Protocol = 17
	ProtoGRE     Protocol = 47
	ProtoICMPv6  Protocol = 58
	ProtoUDPLite Protocol = 136
)

// Sizes of IPv4 headers in bytes.
const (
	IPv4MinLen = 20
	IPv4MaxLen = 60
	MaxIPv4    = 65535 // maximum size of header and payload together
)

const (
	ipv4DF = 1 << 14
	ipv4MF = 1 << 13
)

// IPv4 is an IPv4 header. Put computes the total length from Len and PayloadLen. The reserved bit before the two
// fragment bits is ignored by ParseIPv4 and set to zero by Put.
type IPv4 struct {
	TOS          uint8 // DSCP in the upper six bits, ECN in the lower two
	ID           uint16
	DontFragment bool
	MoreFragment bool
	FragOffset   int // fragment offset in bytes, a multiple of 8
	TTL          uint8
	Protocol     Protocol
	Src, Dst     netip.Addr
	Options      []byte // whole 32-bit words; aliases the packet
	PayloadLen   int    // size in bytes of the data after the header
}

// IsFragment reports whether the packet is a fragment of a larger one.
func (h *IPv4) IsFragment() bool { return h.MoreFragment || h.FragOffset != 0 }

// ParseIPv4 parses a header and returns the payload without link-layer padding. It checks the version, the lengths, the
// structure of the options and the fragment fields. For a fragment it checks that its data does not extend beyond
// MaxIPv4 bytes of the whole datagram, and that its size is a multiple of eight bytes unless it is the last.
//
// ParseIPv4 does not check the header checksum: see IPv4ChecksumOK. It accepts a TTL of zero, which is not an error at
// the host to which the packet is addressed (RFC 1122 section 3.2.1.7).
func ParseIPv4(b []byte) (h IPv4, payload []byte, err error) {
	if len(b) < IPv4MinLen {
		return h, nil, ErrShort
	}
	if b[0]>>4 != 4 {
		return h, nil, ErrVersion
	}
	hlen, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	if hlen < IPv4MinLen || total < hlen || total > len(b) {
		return h, nil, ErrLength
	}
	frag := binary.BigEndian.Uint16(b[6:])
	h = IPv4{
		TOS:          b[1],
		ID:           binary.BigEndian.Uint16(b[4:]),
		DontFragment: frag&ipv4DF != 0,
		MoreFragment: frag&ipv4MF != 0,
		FragOffset:   int(frag&0x1fff) * 8,
		TTL:          b[8],
		Protocol:     Protocol(b[9]),
		Src:          netip.AddrFrom4([4]byte(b[12:16])),
		Dst:          netip.AddrFrom4([4]byte(b[16:20])),
		PayloadLen:   total - hlen,
	}
	if h.FragOffset+h.PayloadLen+hlen > MaxIPv4 {
		return h, nil, ErrLength
	}
	if h.MoreFragment && (h.PayloadLen == 0 || h.PayloadLen%8 != 0) {
		return h, nil, ErrLength
	}
	if hlen > IPv4MinLen {
		h.Options = b[IPv4MinLen:hlen]
		if !validIPv4Options(h.Options) {
			return h, nil, ErrOption
		}
	}
	return h, b[hlen:total], nil
}

// IPv4ChecksumOK verifies the checksum of the header at the front of b, which ParseIPv4 has accepted.
func IPv4ChecksumOK(b []byte) bool {
	return Sum(b[:int(b[0]&0xf)*4], 0) == 0xffff
}

// Len returns the size of the header with its options.
func (h *IPv4) Len() int { return IPv4MinLen + len(h.Options) }

// Put writes the header, including its checksum, into the first Len bytes of b. len(Options) must be a multiple of four
// and at most 40. Header and payload together must have at most MaxIPv4 bytes.
func (h *IPv4) Put(b []byte) {
	_ = b[IPv4MinLen-1]
	hlen := h.Len()
	b[0] = 4<<4 | uint8(hlen/4)
	b[1] = h.TOS
	binary.BigEndian.PutUint16(b[2:], uint16(hlen+h.PayloadLen))
	binary.BigEndian.PutUint16(b[4:], h.ID)
	frag := uint16(h.FragOffset / 8)
	if h.DontFragment {
		frag |= ipv4DF
	}
	if h.MoreFragment {
		frag |= ipv4MF
	}
	binary.BigEndian.PutUint16(b[6:], frag)
	b[8], b[9] = h.TTL, uint8(h.Protocol)
	b[10], b[11] = 0, 0
	s, d := h.Src.As4(), h.Dst.As4()
	copy(b[12:16], s[:])
	copy(b[16:20], d[:])
	copy(b[IPv4MinLen:hlen], h.Options)
	binary.BigEndian.PutUint16(b[10:], ^Sum(b[:hlen], 0))
}

// IPv4Option is the type octet of an IPv4 option (RFC 791 section 3.1).
type IPv4Option uint8

// Types of IPv4 options. If the top bit of the type is set, every fragment carries a copy
// of the option.
const (
	OptEnd         IPv4Option = 0
	OptNop         IPv4Option = 1
	OptRecordRoute IPv4Option = 7
	OptTimestamp   IPv4Option = 68
	OptLSRR        IPv4Option = 131
	OptSSRR        IPv4Option = 137
	OptRouterAlert IPv4Option = 148
)

// Copied reports whether every fragment of a datagram has a copy of the option.
func (o IPv4Option) Copied() bool { return o&0x80 != 0 }

func validIPv4Options(opts []byte) bool {
	for {
		_, _, rest, ok, bad := nextOption(opts)
		if !ok {
			return !bad
		}
		opts = rest
	}
}

// EachOption calls yield with each option of h and its data, without the type and length octets, until yield returns
// false. EachOption is usable as an iter.Seq2.
func (h *IPv4) EachOption(yield func(IPv4Option, []byte) bool) {
	opts := h.Options
	for {
		kind, data, rest, ok, _ := nextOption(opts)
		if !ok || !yield(IPv4Option(kind), data) {
			return
		}
		opts = rest
	}
}
