package wire

import (
	"encoding/binary"
	"net/netip"
)

// Router discovery (RFC 4861 sections 4.1 and 4.2): router solicitations from hosts, and router
// advertisements with the parameters of the router and the link. The supported options are those of RFC 4861
// sections 4.6.1, 4.6.2 and 4.6.4, RFC 4191 section 2.3 and RFC 8106 section 5.1. Other options are skipped.

// Sizes of the messages without options, in bytes.
const (
	RouterSolicitationLen  = 8
	RouterAdvertisementLen = 16
)

// Options of Neighbor Discovery that routers send, and their sizes in bytes.
const (
	optPrefixInfo = 3
	optMTU        = 5
	optRouteInfo  = 24
	optRDNSS      = 25

	prefixInfoLen = 32
	mtuOptionLen  = 8
)

// LifetimeForever is an unlimited lifetime in the 32-bit fields that count seconds.
const LifetimeForever uint32 = 1<<32 - 1

// Preference is the preference of a router or route compared with others (RFC 4191 section 2.1).
type Preference int8

// Preferences. The zero value applies to routers that do not send a preference.
const (
	PreferLow    Preference = -1
	PreferMedium Preference = 0
	PreferHigh   Preference = 1

	preferReserved Preference = -2
)

// RouterSolicitation asks the routers of a link for advertisements.
type RouterSolicitation struct {
	LinkAddr MAC // link-layer address of the source; zero: not given
}

// RouterAdvertisement is the message by which a router announces itself and the parameters of its link. Lifetimes are
// in seconds.
type RouterAdvertisement struct {
	HopLimit      uint8      // hop limit that hosts should use for their packets; 0: not given
	Managed       bool       // addresses are available by DHCPv6
	Other         bool       // other configuration is available by DHCPv6
	Preference    Preference // preference of the sender as a default router
	Lifetime      uint16     // time for which the sender is a default router; 0: it is not a default router
	ReachableTime uint32     // milliseconds for which a neighbour counts as reachable; 0: not given
	RetransTimer  uint32     // milliseconds between retransmitted neighbour solicitations; 0: not given
	LinkAddr      MAC        // link-layer address of the router; zero: not given
	MTU           uint32     // MTU of the link in bytes; 0: not given
	Prefixes      []PrefixInfo
	Routes        []RouteInfo
	DNS           []DNSServers
}

// PrefixInfo describes a prefix of the link.
type PrefixInfo struct {
	Prefix     netip.Prefix // masked: bits after the prefix length are zero
	OnLink     bool         // addresses with the prefix are reachable without a router
	Autonomous bool         // hosts may form addresses with the prefix
	Valid      uint32       // lifetime of the prefix, in seconds from now
	Preferred  uint32       // time for which addresses with the prefix are preferred, in seconds from now
}

// RouteInfo describes a network that is reachable through the sender of the advertisement.
type RouteInfo struct {
	Prefix     netip.Prefix // masked: bits after the prefix length are zero
	Preference Preference
	Lifetime   uint32
}

// DNSServers is a list of name servers. Lifetime is in seconds.
type DNSServers struct {
	Servers  []netip.Addr
	Lifetime uint32
}

// ParseRouterSolicitation parses a whole ICMPv6 message. Of the checks in RFC 4861 section 6.1.1, it performs those
// that need only the message. It does not verify the checksum.
func ParseRouterSolicitation(b []byte) (s RouterSolicitation, err error) {
	if err := checkRouterMessage(b, ICMPv6RouterSolicitation, RouterSolicitationLen); err != nil {
		return s, err
	}
	err = eachNDOption(b[RouterSolicitationLen:], func(kind uint8, data []byte) {
		if kind == optSourceLinkAddr && isStation(data) {
			s.LinkAddr = MAC(data)
		}
	})
	return s, err
}

// Len returns the size of the message in bytes.
func (s *RouterSolicitation) Len() int {
	return RouterSolicitationLen + s.LinkAddr.optionLen()
}

// Put writes the message with a zero checksum into the first Len bytes of b. See PutICMPv6Checksum.
func (s *RouterSolicitation) Put(b []byte) {
	ICMPv6{Type: ICMPv6RouterSolicitation}.Put(b)
	s.LinkAddr.putOption(b[RouterSolicitationLen:])
}

// ParseRouterAdvertisement parses a whole ICMPv6 message. Of the checks in RFC 4861 section 6.1.2, it performs those
// that need only the message. It does not verify the checksum. Invalid options are skipped. The result does not alias
// b.
func ParseRouterAdvertisement(b []byte) (a RouterAdvertisement, err error) {
	if err := checkRouterMessage(b, ICMPv6RouterAdvertisement, RouterAdvertisementLen); err != nil {
		return a, err
	}
	flags := b[5]
	a = RouterAdvertisement{
		HopLimit: b[4], Managed: flags&0x80 != 0, Other: flags&0x40 != 0, Preference: preferenceOf(flags),
		Lifetime:      binary.BigEndian.Uint16(b[6:]),
		ReachableTime: binary.BigEndian.Uint32(b[8:]), RetransTimer: binary.BigEndian.Uint32(b[12:]),
	}
	if a.Preference == preferReserved { // the reserved value counts as PreferMedium (RFC 4191 section 2.2)
		a.Preference = PreferMedium
	}
	err = eachNDOption(b[RouterAdvertisementLen:], a.setOption)
	return a, err
}

// checkRouterMessage checks the length, type and code of a message. least is the minimum length in bytes.
func checkRouterMessage(b []byte, kind ICMPv6Type, least int) error {
	switch {
	case len(b) < least:
		return ErrShort
	case ICMPv6Type(b[0]) != kind || b[1] != 0:
		return ErrField
	}
	return nil
}

// eachNDOption calls f with the kind and data of each option. data does not include the two octets for kind and length.
func eachNDOption(b []byte, f func(kind uint8, data []byte)) error {
	for len(b) > 0 {
		kind, data, rest, ok := nextNDOption(b)
		if !ok {
			return ErrOption
		}
		f(kind, data)
		b = rest
	}
	return nil
}

// preferenceOf returns the preference in an octet of flags.
func preferenceOf(flags uint8) Preference {
	return Preference(int8(flags<<3) >> 6)
}

// flags returns the bits of the preference in an octet of flags. It is the inverse of preferenceOf.
func (p Preference) flags() uint8 { return uint8(p) & 3 << 3 }

// setOption stores the value of an option if it is valid.
func (a *RouterAdvertisement) setOption(kind uint8, data []byte) {
	switch {
	case kind == optSourceLinkAddr && isStation(data):
		a.LinkAddr = MAC(data)
	case kind == optMTU && len(data) == mtuOptionLen-2:
		a.MTU = binary.BigEndian.Uint32(data[2:])
	case kind == optPrefixInfo && len(data) == prefixInfoLen-2 && data[0] <= 128:
		a.Prefixes = append(a.Prefixes, PrefixInfo{
			Prefix: prefixOf(data[14:], data[0]), OnLink: data[1]&0x80 != 0, Autonomous: data[1]&0x40 != 0,
			Valid: binary.BigEndian.Uint32(data[2:]), Preferred: binary.BigEndian.Uint32(data[6:]),
		})
	case kind == optRouteInfo && len(data) <= 22 && data[0] <= 128 && len(data)-6 >= (int(data[0])+63)/64*8:
		if p := preferenceOf(data[1]); p != preferReserved {
			a.Routes = append(a.Routes, RouteInfo{prefixOf(data[6:], data[0]), p, binary.BigEndian.Uint32(data[2:])})
		}
	case kind == optRDNSS && len(data) >= 22 && len(data)%16 == 6:
		list := DNSServers{Lifetime: binary.BigEndian.Uint32(data[2:])}
		for rest := data[6:]; len(rest) > 0; rest = rest[16:] {
			list.Servers = append(list.Servers, netip.AddrFrom16([16]byte(rest)))
		}
		a.DNS = append(a.DNS, list)
	}
}

// prefixOf returns the prefix with the given number of bits whose first bytes are b.
func prefixOf(b []byte, bits uint8) netip.Prefix {
	var a [16]byte
	copy(a[:], b)
	return netip.PrefixFrom(netip.AddrFrom16(a), int(bits)).Masked()
}

// Len returns the size of the message in bytes.
func (a *RouterAdvertisement) Len() int {
	n := RouterAdvertisementLen + a.LinkAddr.optionLen() + prefixInfoLen*len(a.Prefixes)
	if a.MTU != 0 {
		n += mtuOptionLen
	}
	for i := range a.Routes {
		n += a.Routes[i].optionLen()
	}
	for i := range a.DNS {
		n += 8 + 16*len(a.DNS[i].Servers)
	}
	return n
}

// optionLen returns the size in bytes of the shortest option that can hold the prefix (RFC 4191 section 2.3).
func (r *RouteInfo) optionLen() int { return 8 + (r.Prefix.Bits()+63)/64*8 }

// Put writes the message with a zero checksum into the first Len bytes of b. See PutICMPv6Checksum.
func (a *RouterAdvertisement) Put(b []byte) {
	ICMPv6{Type: ICMPv6RouterAdvertisement}.Put(b)
	b[4], b[5] = a.HopLimit, uint8(flag(a.Managed, 0x80)|flag(a.Other, 0x40))|a.Preference.flags()
	binary.BigEndian.PutUint16(b[6:], a.Lifetime)
	binary.BigEndian.PutUint32(b[8:], a.ReachableTime)
	binary.BigEndian.PutUint32(b[12:], a.RetransTimer)
	b = b[RouterAdvertisementLen:]
	b = b[a.LinkAddr.putOption(b):]
	if a.MTU != 0 {
		b = begunOption(b, optMTU, mtuOptionLen)
		binary.BigEndian.PutUint32(b[4:], a.MTU)
		b = b[mtuOptionLen:]
	}
	for i := range a.Prefixes {
		b = a.Prefixes[i].put(b)
	}
	for i := range a.Routes {
		r := &a.Routes[i]
		n := r.optionLen()
		b = begunOption(b, optRouteInfo, n)
		b[2], b[3] = uint8(r.Prefix.Bits()), r.Preference.flags()
		binary.BigEndian.PutUint32(b[4:], r.Lifetime)
		prefix := r.Prefix.Addr().As16()
		copy(b[8:n], prefix[:])
		b = b[n:]
	}
	for i := range a.DNS {
		n := 8 + 16*len(a.DNS[i].Servers)
		b = begunOption(b, optRDNSS, n)
		binary.BigEndian.PutUint32(b[4:], a.DNS[i].Lifetime)
		for j, s := range a.DNS[i].Servers {
			server := s.As16()
			copy(b[8+16*j:], server[:])
		}
		b = b[n:]
	}
}

// put writes the option and returns the rest of b.
func (p *PrefixInfo) put(b []byte) []byte {
	b = begunOption(b, optPrefixInfo, prefixInfoLen)
	b[2], b[3] = uint8(p.Prefix.Bits()), uint8(flag(p.OnLink, 0x80)|flag(p.Autonomous, 0x40))
	binary.BigEndian.PutUint32(b[4:], p.Valid)
	binary.BigEndian.PutUint32(b[8:], p.Preferred)
	prefix := p.Prefix.Addr().As16()
	copy(b[16:], prefix[:])
	return b[prefixInfoLen:]
}

// begunOption writes the first two octets of an option of n bytes and clears the rest of it.
func begunOption(b []byte, kind uint8, n int) []byte {
	clear(b[:n])
	b[0], b[1] = kind, uint8(n/8)
	return b
}

// optionLen returns the size of the source link-layer address option, 0 for the zero MAC.
func (m MAC) optionLen() int {
	if m.IsZero() {
		return 0
	}
	return linkAddrOptionLen
}

// putOption writes the source link-layer address option and returns its size; it writes nothing for the zero MAC.
func (m MAC) putOption(b []byte) int {
	if m.IsZero() {
		return 0
	}
	b[0], b[1] = optSourceLinkAddr, linkAddrOptionLen/8
	copy(b[2:], m[:])
	return linkAddrOptionLen
}
