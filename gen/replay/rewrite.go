package replay

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"

	"loam/wire"
)

// Rewrite changes the addresses and ports of captured frames. The zero value changes nothing.
//
// Maps apply to both source and destination, so that the two directions of a connection are changed in the same way.
// They apply to the outermost IP header, to ARP for IPv4, and to the UDP or TCP header after the IP header. Checksums
// are updated for the change, not recomputed: a checksum that was wrong stays wrong.
type Rewrite struct {
	Src, Dst  wire.MAC // Ethernet addresses; zero: as captured
	Addresses []AddressMap
	Ports     []PortMap
}

// AddressMap moves the addresses of a prefix into another prefix of the same IP version, which must not be smaller. The
// bits after From's prefix stay unchanged. If To is larger, it contains several blocks of From's size: loop n of the
// capture uses block n. After the last block, the first is used again.
type AddressMap struct{ From, To netip.Prefix }

// PortMap moves the ports of a range into another range, which must not be smaller. If it is larger, it is used in
// blocks, as by AddressMap.
type PortMap struct{ From, To Ports }

// Ports is a range of port numbers.
type Ports struct{ First, Last uint16 }

func (p Ports) len() int { return int(p.Last) - int(p.First) + 1 }

// ParseAddressMap parses FROM=TO. Each of the two is an address or a prefix.
func ParseAddressMap(s string) (m AddressMap, err error) {
	from, to, ok := strings.Cut(s, "=")
	if !ok {
		return m, fmt.Errorf("%s has no =", s)
	}
	if m.From, err = parsePrefix(from); err != nil {
		return m, err
	}
	if m.To, err = parsePrefix(to); err != nil {
		return m, err
	}
	switch {
	case m.From.Addr().Is4() != m.To.Addr().Is4():
		return m, fmt.Errorf("%s: one side is IPv4, the other IPv6", s)
	case m.To.Bits() > m.From.Bits():
		return m, fmt.Errorf("%v has no room for the addresses of %v", m.To, m.From)
	}
	return m, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not an address or a prefix", s)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// ParsePortMap parses FROM=TO. Each of the two is a port or FIRST-LAST.
func ParsePortMap(s string) (m PortMap, err error) {
	from, to, ok := strings.Cut(s, "=")
	if !ok {
		return m, fmt.Errorf("%s has no =", s)
	}
	if m.From, err = parsePorts(from); err != nil {
		return m, err
	}
	if m.To, err = parsePorts(to); err != nil {
		return m, err
	}
	if m.To.len() < m.From.len() {
		return m, fmt.Errorf("%s has no room for the ports of %s", to, from)
	}
	return m, nil
}

func parsePorts(s string) (p Ports, err error) {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 16)
	last, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || last < first {
		return p, fmt.Errorf("%q is not a port or a range of ports", s)
	}
	return Ports{uint16(first), uint16(last)}, nil
}

// of returns the address that replaces a in the given loop. ok is false if a is not in From.
func (m *AddressMap) of(a netip.Addr, loop uint64) (to netip.Addr, ok bool) {
	if !m.From.Contains(a) {
		return a, false
	}
	host := a.BitLen() - m.From.Bits() // number of bits that stay unchanged
	blocks := m.From.Bits() - m.To.Bits()
	if blocks < 64 {
		loop &= 1<<blocks - 1
	}
	base := m.To.Addr().As16()
	own := a.As16()
	hi, lo := shiftLeft(loop, host)
	keepHi, keepLo := lowBits(host)
	hi |= binary.BigEndian.Uint64(base[:]) | binary.BigEndian.Uint64(own[:])&keepHi
	lo |= binary.BigEndian.Uint64(base[8:]) | binary.BigEndian.Uint64(own[8:])&keepLo
	var out [16]byte
	binary.BigEndian.PutUint64(out[:], hi)
	binary.BigEndian.PutUint64(out[8:], lo)
	to = netip.AddrFrom16(out)
	if a.Is4() {
		to = to.Unmap()
	}
	return to, true
}

// shiftLeft returns the low 128 bits of x<<n, as two words.
func shiftLeft(x uint64, n int) (hi, lo uint64) {
	if n >= 64 {
		return x << (n - 64), 0
	}
	return bits.Mul64(x, 1<<n)
}

// lowBits returns a 128-bit number, as two words, in which the lowest n bits are set.
func lowBits(n int) (hi, lo uint64) {
	if n >= 64 {
		return 1<<(n-64) - 1, 1<<64 - 1
	}
	return 0, 1<<n - 1
}

// of returns the port that replaces p in the given loop. ok is false if p is not in From.
func (m *PortMap) of(p uint16, loop uint64) (to uint16, ok bool) {
	if p < m.From.First || p > m.From.Last {
		return p, false
	}
	blocks := uint64(m.To.len() / m.From.len())
	return m.To.First + uint16(loop%blocks)*uint16(m.From.len()) + p - m.From.First, true
}

// address returns the address that replaces a in the given loop. The first map that contains a applies.
func (r *Rewrite) address(a netip.Addr, loop uint64) (netip.Addr, *AddressMap) {
	for i := range r.Addresses {
		if to, ok := r.Addresses[i].of(a, loop); ok {
			return to, &r.Addresses[i]
		}
	}
	return a, nil
}

// port returns the port that replaces p in the given loop.
func (r *Rewrite) port(p uint16, loop uint64) uint16 {
	for i := range r.Ports {
		if to, ok := r.Ports[i].of(p, loop); ok {
			return to
		}
	}
	return p
}

// Apply rewrites a frame. loop is the number of the loop, counted from 0. If a frame is malformed, or was captured only
// in part, Apply rewrites the headers that are complete.
func (r *Rewrite) Apply(b []byte, loop uint64) {
	if len(b) < wire.EthernetLen {
		return
	}
	if !r.Dst.IsZero() {
		copy(b, r.Dst[:])
	}
	if !r.Src.IsZero() {
		copy(b[6:], r.Src[:])
	}
	if len(r.Addresses)+len(r.Ports) == 0 {
		return
	}
	h, rest, err := wire.ParseEthernet(b)
	if err != nil {
		return
	}
	switch h.Type {
	case wire.TypeIPv4:
		r.ipv4(rest, loop)
	case wire.TypeIPv6:
		r.ipv6(rest, loop)
	case wire.TypeARP:
		r.arp(rest, loop)
	}
}

func (r *Rewrite) ipv4(b []byte, loop uint64) {
	if len(b) < wire.IPv4MinLen || b[0]>>4 != 4 {
		return
	}
	const sumAt, src, dst, size = 10, 12, 16, 4
	var change delta
	r.field(b[src:][:size], loop, &change)
	r.field(b[dst:][:size], loop, &change)
	change.apply(b[sumAt:], false)
	header := 4 * int(b[0]&15)
	if fragment := binary.BigEndian.Uint16(b[6:]) & 0x1fff; fragment == 0 && header >= wire.IPv4MinLen && header <= len(b) {
		r.transport(wire.Protocol(b[9]), b[header:], change, loop)
	}
}

func (r *Rewrite) ipv6(b []byte, loop uint64) {
	if len(b) < wire.IPv6Len || b[0]>>4 != 6 {
		return
	}
	const next, src, dst, size = 6, 8, 24, 16
	var change delta
	r.field(b[src:][:size], loop, &change)
	r.field(b[dst:][:size], loop, &change)
	proto, rest := wire.Protocol(b[next]), b[wire.IPv6Len:]
	for {
		switch proto {
		case wire.ProtoHopByHop, wire.ProtoRouting, wire.ProtoDestOptions:
			h, behind, err := wire.ParseIPv6Ext(rest)
			if err != nil {
				return
			}
			proto, rest = h.Next, behind
		case wire.ProtoIPv6Fragment:
			if len(rest) < wire.IPv6FragmentLen || binary.BigEndian.Uint16(rest[2:])>>3 != 0 {
				return
			}
			proto, rest = wire.Protocol(rest[0]), rest[wire.IPv6FragmentLen:]
		default:
			r.transport(proto, rest, change, loop)
			return
		}
	}
}

// arp rewrites the IPv4 addresses in an ARP packet (RFC 826).
func (r *Rewrite) arp(b []byte, loop uint64) {
	const sender, target, size = 14, 24, 4
	if _, err := wire.ParseARP(b); err != nil {
		return
	}
	var change delta
	r.field(b[sender:][:size], loop, &change)
	r.field(b[target:][:size], loop, &change)
}

// field rewrites the address in b, and adds the resulting difference of checksums to
// *change.
func (r *Rewrite) field(b []byte, loop uint64, change *delta) {
	a, _ := netip.AddrFromSlice(b)
	to, m := r.address(a, loop)
	if m == nil {
		return
	}
	change.remove(b)
	copy(b, to.AsSlice())
	change.add(b)
}

// transport rewrites the ports of UDP and TCP, and updates the checksum. change is the difference that the rewritten
// addresses make: they are part of the pseudo header.
func (r *Rewrite) transport(proto wire.Protocol, b []byte, change delta, loop uint64) {
	sumAt, noZero, ports := 0, false, true
	switch proto {
	case wire.ProtoTCP:
		sumAt = 16
	case wire.ProtoUDP:
		sumAt, noZero = 6, true
	case wire.ProtoICMPv6:
		sumAt, ports = 2, false
	default:
		return
	}
	for at := 0; ports && at < 4 && len(b) >= 4; at += 2 {
		field := b[at : at+2]
		before := binary.BigEndian.Uint16(field)
		if after := r.port(before, loop); after != before {
			change.remove(field)
			binary.BigEndian.PutUint16(field, after)
			change.add(field)
		}
	}
	if len(b) < sumAt+2 || noZero && binary.BigEndian.Uint16(b[sumAt:]) == 0 {
		return // the packet has no checksum
	}
	change.apply(b[sumAt:], noZero)
}

// delta is the difference that rewritten fields make to an Internet checksum (RFC 1624, equation 3).
type delta struct {
	sum     uint16
	changed bool
}

// remove subtracts the bytes of a field from the checksum, before the field is changed. add adds them afterwards.
func (d *delta) remove(b []byte) { d.sum, d.changed = wire.AddSums(d.sum, ^wire.Sum(b, 0)), true }
func (d *delta) add(b []byte)    { d.sum = wire.AddSums(d.sum, wire.Sum(b, 0)) }

// apply updates the checksum at the start of b by the difference. noZero means that a result of 0 is written as 0xffff.
func (d *delta) apply(b []byte, noZero bool) {
	if !d.changed {
		return
	}
	c := ^wire.AddSums(^binary.BigEndian.Uint16(b), d.sum)
	if c == 0 && noZero {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(b, c)
}
