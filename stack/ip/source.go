package ip

import (
	"math/bits"
	"net/netip"
	"slices"
)

// Source address selection. It applies the rules of RFC 6724 section 5 that are relevant for a host without
// mobility or temporary addresses (1, 2, 3, 5.5, 6 and 8), for both families. Section 3.2 covers IPv4, for
// which RFC 1122 section 3.3.4.3 requires no more. The caller applies rule 5: it passes only the addresses of
// the outgoing interface to Source.

// Own is an address of this host with the prefix length of its subnet.
type Own struct {
	netip.Prefix
	Deprecated bool         // the preferred lifetime has ended, so other addresses are preferred (RFC 4862 section 5.5.4)
	Routers    []netip.Addr // routers that advertised the prefix of the address; none: the address was configured
}

// Source selects one of the addresses in the list own as the source of packets to dst through nextHop. nextHop may be
// invalid if it does not matter. Of equal candidates, the first wins. It returns false if the list has no address of
// the family of dst, or only loopback addresses while dst is not a loopback address.
func Source(dst, nextHop netip.Addr, own []Own) (netip.Addr, bool) {
	var best Own
	for _, p := range own {
		a := p.Addr()
		if a.Is4() != dst.Is4() || scopeOf(a) == hostScope && scopeOf(dst) != hostScope {
			continue
		}
		if !best.IsValid() || better(dst, nextHop, p, best) {
			best = p
		}
	}
	return best.Addr(), best.IsValid()
}

// better reports whether a is preferred over b as the source address for dst.
func better(dst, nextHop netip.Addr, a, b Own) bool {
	// Rule 1: prefer the destination address itself.
	if a.Addr() == dst || b.Addr() == dst {
		return b.Addr() != dst
	}
	// Rule 2: prefer the smallest scope that is sufficient, or else the largest scope.
	if sa, sb, sd := scopeOf(a.Addr()), scopeOf(b.Addr()), scopeOf(dst); sa != sb {
		if sa < sb {
			return sa >= sd
		}
		return sb < sd
	}
	// Rule 3: prefer an address that is not deprecated.
	if a.Deprecated != b.Deprecated {
		return b.Deprecated
	}
	// Rule 5.5: prefer an address from a prefix that the next hop has advertised.
	if ra, rb := a.of(nextHop), b.of(nextHop); ra != rb && len(a.Routers) > 0 && len(b.Routers) > 0 {
		return ra
	}
	// Rule 6: prefer an address with the label of the destination.
	if la, lb, ld := labelOf(a.Addr()), labelOf(b.Addr()), labelOf(dst); la != lb && (la == ld || lb == ld) {
		return la == ld
	}
	// Rule 8: prefer the longest common prefix.
	return commonBits(dst, a.Prefix) > commonBits(dst, b.Prefix)
}

// of reports whether router has advertised the prefix of the address.
func (o *Own) of(router netip.Addr) bool { return slices.Contains(o.Routers, router) }

// label groups addresses that prefer each other (RFC 6724 section 2.1): the labels of the default policy
// table that are still in use.
type label uint8

const (
	anyLabel    label = iota // ::/0 and IPv4
	uniqueLabel              // fc00::/7
	sixToFour                // 2002::/16
	teredo                   // 2001::/32
)

func labelOf(a netip.Addr) label {
	if a.Is4() {
		return anyLabel
	}
	b := a.As16()
	switch {
	case b[0]&0xfe == 0xfc:
		return uniqueLabel
	case b[0] == 0x20 && b[1] == 0x02:
		return sixToFour
	case b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0:
		return teredo
	}
	return anyLabel
}

// scope is the scope of an address.
type scope uint8

const (
	hostScope scope = iota
	linkScope
	globalScope
)

func scopeOf(a netip.Addr) scope {
	switch {
	case a.IsLoopback():
		return hostScope
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast():
		return linkScope
	}
	return globalScope
}

// commonBits returns the length of the common prefix of dst and a, at most the prefix length of a.
func commonBits(dst netip.Addr, a netip.Prefix) int {
	x, y := keyOf(dst), keyOf(a.Addr())
	n := bits.LeadingZeros64(x.hi ^ y.hi)
	if n == 64 {
		n += bits.LeadingZeros64(x.lo ^ y.lo)
	}
	return min(n, a.Bits())
}
