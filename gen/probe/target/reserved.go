package target

import (
	"net/netip"
	"slices"
)

// Addresses reserved by IANA: the registries iana-ipv4-special-registry and iana-ipv6-special-registry (RFC 6890), and
// the multicast blocks of RFC 5771 and RFC 4291. They are probed only if the user allows it.

// Block is a reserved range of addresses.
type Block struct {
	Prefix  netip.Prefix
	Private bool // the addresses are used within private networks
	Why     string
}

// blocks lists the entries of the registries. If one entry contains another and both are refused, only the wider one is
// listed.
var blocks = []Block{
	{prefix("0.0.0.0/8"), false, "this network (RFC 791)"},
	{prefix("10.0.0.0/8"), true, "private use (RFC 1918)"},
	{prefix("100.64.0.0/10"), true, "shared address space of carriers (RFC 6598)"},
	{prefix("127.0.0.0/8"), false, "loopback (RFC 1122)"},
	{prefix("169.254.0.0/16"), true, "link local (RFC 3927)"},
	{prefix("172.16.0.0/12"), true, "private use (RFC 1918)"},
	{prefix("192.0.0.0/24"), false, "IETF protocol assignments (RFC 6890)"},
	{prefix("192.0.2.0/24"), false, "documentation (RFC 5737)"},
	{prefix("192.88.99.0/24"), false, "6to4 relay anycast, deprecated (RFC 7526)"},
	{prefix("192.168.0.0/16"), true, "private use (RFC 1918)"},
	{prefix("198.18.0.0/15"), true, "benchmarking (RFC 2544)"},
	{prefix("198.51.100.0/24"), false, "documentation (RFC 5737)"},
	{prefix("203.0.113.0/24"), false, "documentation (RFC 5737)"},
	{prefix("224.0.0.0/4"), false, "multicast (RFC 5771)"},
	{prefix("240.0.0.0/4"), false, "reserved, and the broadcast address (RFC 1112)"},

	{prefix("::/96"), false, "unspecified, loopback, IPv4-compatible (RFC 4291)"},
	{prefix("::ffff:0:0/96"), false, "IPv4-mapped (RFC 4291)"},
	{prefix("64:ff9b:1::/48"), true, "local translation (RFC 8215)"},
	{prefix("100::/64"), false, "discard only (RFC 6666)"},
	{prefix("2001::/23"), false, "IETF protocol assignments (RFC 2928)"},
	{prefix("2001:db8::/32"), false, "documentation (RFC 3849)"},
	{prefix("2002::/16"), false, "6to4 (RFC 3056)"},
	{prefix("3fff::/20"), false, "documentation (RFC 9637)"},
	{prefix("5f00::/16"), false, "segment routing (RFC 9602)"},
	{prefix("fc00::/7"), true, "unique local (RFC 4193)"},
	{prefix("fe80::/10"), true, "link local (RFC 4291)"},
	{prefix("ff00::/8"), false, "multicast (RFC 4291)"},
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// Reserved returns the reserved ranges. Private networks are included only if private is set.
func Reserved(private bool) []Range {
	var rs []Range
	for _, b := range blocks {
		if private || !b.Private {
			rs = append(rs, RangeOf(b.Prefix))
		}
	}
	return rs
}

// BlockOf returns the reserved block that contains a. ok is false if there is none.
func BlockOf(a netip.Addr) (Block, bool) {
	i := slices.IndexFunc(blocks, func(b Block) bool { return b.Prefix.Contains(a) })
	if i < 0 {
		return Block{}, false
	}
	return blocks[i], true
}

// Without returns the addresses of rs that are not in the list allowed, as ranges.
func Without(rs, allowed []Range) []Range {
	var left []Range
	for _, is4 := range []bool{true, false} {
		of := func(all []Range) []Range {
			return slices.DeleteFunc(slices.Clone(all), func(r Range) bool { return r.First.Is4() != is4 })
		}
		for _, p := range subtract(merge(of(rs)), merge(of(allowed))) {
			left = append(left, Range{p.first.addr(is4), p.last.addr(is4)})
		}
	}
	return left
}
