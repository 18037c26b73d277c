package wire

import (
	"encoding/binary"
	"net/netip"
)

// Neighbour Discovery for IPv6 (RFC 4861 section 4): neighbour solicitations and advertisements, which are
// ICMPv6 messages.

// NeighborLen is the size of a message without an option in bytes.
const NeighborLen = 24

// NDHopLimit is the hop limit with which every Neighbour Discovery message is sent. A received message with this hop
// limit has not passed a router (RFC 4861 section 11.2).
const NDHopLimit = 255

const (
	optSourceLinkAddr = 1
	optTargetLinkAddr = 2
	linkAddrOptionLen = 8 // size in bytes of a link-layer address option with an Ethernet address
)

// Flags of a neighbour advertisement.
const (
	ndRouter    = 1 << 31
	ndSolicited = 1 << 30
	ndOverride  = 1 << 29
)

// Neighbor is a neighbour solicitation or advertisement.
type Neighbor struct {
	Advertisement bool       // true for an advertisement, false for a solicitation
	Target        netip.Addr // the address that is resolved or advertised
	LinkAddr      MAC        // link-layer address: of the source in a solicitation, of the target in an advertisement; zero: not given
	Router        bool       // advertisement: the target is a router
	Solicited     bool       // advertisement: it is the answer to a solicitation
	Override      bool       // advertisement: replaces a known link-layer address
}

// ParseNeighbor parses a whole ICMPv6 message, a solicitation or an advertisement. Of the checks in RFC 4861 sections
// 7.1.1 and 7.1.2, it performs those that need only the message: code, length, target and the structure of the options.
// It does not verify the checksum.
func ParseNeighbor(b []byte) (n Neighbor, err error) {
	if len(b) < NeighborLen {
		return n, ErrShort
	}
	link := uint8(optSourceLinkAddr)
	switch ICMPv6Type(b[0]) {
	case ICMPv6NeighborSolicitation:
	case ICMPv6NeighborAdvertisement:
		flags := binary.BigEndian.Uint32(b[4:])
		n.Advertisement, link = true, optTargetLinkAddr
		n.Router, n.Solicited, n.Override = flags&ndRouter != 0, flags&ndSolicited != 0, flags&ndOverride != 0
	default:
		return n, ErrField
	}
	n.Target = netip.AddrFrom16([16]byte(b[8:24]))
	if b[1] != 0 || n.Target.IsMulticast() {
		return n, ErrField
	}
	n.LinkAddr, err = linkAddrOf(b[NeighborLen:], link)
	return n, err
}

// linkAddrOf returns the address in the last well-formed option of the kind wanted, or the zero MAC if there is none.
// It returns ErrOption for a malformed option list, and ErrField for a multicast address.
func linkAddrOf(options []byte, wanted uint8) (addr MAC, err error) {
	for len(options) > 0 {
		kind, data, rest, ok := nextNDOption(options)
		if !ok {
			return MAC{}, ErrOption
		}
		if kind == wanted && len(data) == linkAddrOptionLen-2 {
			if addr = MAC(data); addr.IsMulticast() {
				return MAC{}, ErrField
			}
		}
		options = rest
	}
	return addr, nil
}

// isStation reports whether the data of an option is the address of a single station.
func isStation(data []byte) bool {
	return len(data) == linkAddrOptionLen-2 && !MAC(data).IsMulticast()
}

// nextNDOption returns the first option of b, and the rest of b after it. The length field of an option counts units of
// eight bytes and must not be zero (RFC 4861 section 4.6).
func nextNDOption(b []byte) (kind uint8, data, rest []byte, ok bool) {
	if len(b) < 8 || b[1] == 0 || int(b[1])*8 > len(b) {
		return 0, nil, nil, false
	}
	n := int(b[1]) * 8
	return b[0], b[2:n], b[n:], true
}

// Len returns the size of the message in bytes.
func (n *Neighbor) Len() int {
	if n.LinkAddr.IsZero() {
		return NeighborLen
	}
	return NeighborLen + linkAddrOptionLen
}

// Put writes the message with a zero checksum into the first Len bytes of b. See PutICMPv6Checksum.
func (n *Neighbor) Put(b []byte) {
	h, link := ICMPv6{Type: ICMPv6NeighborSolicitation}, uint8(optSourceLinkAddr)
	if n.Advertisement {
		h.Type, link = ICMPv6NeighborAdvertisement, optTargetLinkAddr
		h.Rest = flag(n.Router, ndRouter) | flag(n.Solicited, ndSolicited) | flag(n.Override, ndOverride)
	}
	h.Put(b)
	target := n.Target.As16()
	copy(b[8:], target[:])
	if !n.LinkAddr.IsZero() {
		b[NeighborLen], b[NeighborLen+1] = link, linkAddrOptionLen/8
		copy(b[NeighborLen+2:], n.LinkAddr[:])
	}
}

func flag(on bool, bit uint32) uint32 {
	if on {
		return bit
	}
	return 0
}

// IsHost6 reports whether a can be the address of a single other host. It is used to check addresses that a message
// assigns, and addresses of servers.
func IsHost6(a netip.Addr) bool {
	return a.Is6() && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback() && !a.Is4In6()
}

// SolicitedNode returns the solicited-node multicast group that a host joins for its address a (RFC 4291
// section 2.7.1).
func SolicitedNode(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0xff, 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// MulticastMAC6 returns the Ethernet address of an IPv6 multicast group (RFC 2464 section 7).
func MulticastMAC6(group netip.Addr) MAC {
	b := group.As16()
	return MAC{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// LinkLocal6 returns the link-local address that a station derives from its MAC address: fe80::/64 with the modified
// EUI-64 (RFC 4291 appendix A, RFC 2464 section 5).
func LinkLocal6(m MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0xfe, 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5],
	})
}
