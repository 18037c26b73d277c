package dhcp

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Limits of the values that a client accepts.
const (
	// minLease is the shortest lease that is accepted. A client with a shorter lease would be busy renewing it.
	minLease = 10 * time.Second
	// maxServers is the maximum number of routers, name servers and time servers kept.
	maxServers = 8
	// maxRoutes is the maximum number of classless routes kept.
	maxRoutes = 64
	// minMTU is the smallest MTU that is accepted. Every host must support it (RFC 791 section 3.1). A smaller value from an
	// untrusted server would only reduce the throughput.
	minMTU = 576
)

// Lease is an address and the configuration that came with it. Lists are in the server's order of preference
// and bounded; malformed elements are omitted.
type Lease struct {
	Addr    netip.Prefix // assigned address, with the prefix length of the subnet
	Server  netip.Addr   // address of the server that granted the lease
	Routers []netip.Addr // default routers; empty if Routes is not (RFC 3442)
	Routes  []wire.DHCPv4Route
	DNS     []netip.Addr
	NTP     []netip.Addr
	Domain  string   // domain name; contains only letters, digits, hyphens, underscores and dots
	Search  []string // search domains
	MTU     int      // MTU of the link in bytes; 0: not given

	Start   Time // time at which the request for the lease was sent
	T1, T2  Time // times at which to ask the server of the lease (T1) and all servers (T2) for an extension
	Expires Time // time at which the address must be removed; Never: unlimited
}

// newLease parses the lease in an offer or acknowledgment of a request sent at start. ok is false if it is
// invalid.
func newLease(m *wire.DHCPv4, start Time) (l Lease, ok bool) {
	length, given := m.LeaseTime()
	if !given || length < minLease {
		return Lease{}, false
	}
	l = Lease{
		Addr:   netip.PrefixFrom(m.YIAddr, prefixBits(m)),
		Server: m.ServerID(),
		Routes: slices.Clone(firstN(m.ClasslessRoutes(), maxRoutes)),
		DNS:    hosts(m.DNS()),
		NTP:    hosts(m.NTP()),
		Domain: domain(m.DomainName()),
		Start:  start,
	}
	if !usable(l.Server) || !m.YIAddr.IsValid() || !usableIn(m.YIAddr, l.Addr) {
		return Lease{}, false
	}
	if len(l.Routes) == 0 {
		l.Routers = hosts(m.Routers())
	}
	for _, name := range m.DomainSearch() {
		if text := domain(name.String()); text != "" {
			l.Search = append(l.Search, text)
		}
	}
	if mtu, given := m.MTU(); given && mtu >= minMTU {
		l.MTU = mtu
	}
	l.setTimes(m, length)
	return l, true
}

// setTimes sets the times of RFC 2131 section 4.4.5. It uses the defaults of that section if the server's
// times are not in the order T1, T2, expiry, or if T1 is so small that it would keep the client busy.
func (l *Lease) setTimes(m *wire.DHCPv4, length time.Duration) {
	if length == wire.DHCPv4Infinite {
		l.T1, l.T2, l.Expires = Never, Never, Never
		return
	}
	t1, ok1 := m.T1()
	t2, ok2 := m.T2()
	if !ok2 {
		t2 = length / 8 * 7
	}
	if !ok1 {
		t1 = length / 2
	}
	if t1 < minLease/2 || t1 >= t2 || t2 >= length {
		t1, t2 = length/2, length/8*7
	}
	l.T1, l.T2, l.Expires = l.Start+t1, l.Start+t2, l.Start+length
}

// prefixBits returns the prefix length of the subnet. If the mask is missing or invalid, it returns the length for
// the address class (RFC 791 section 2.3).
func prefixBits(m *wire.DHCPv4) int {
	if n, ok := m.SubnetMask(); ok && n > 0 {
		return n
	}
	if !m.YIAddr.IsValid() {
		return 0
	}
	switch first := m.YIAddr.As4()[0]; {
	case first < 128:
		return 8
	case first < 192:
		return 16
	}
	return 24
}

// hosts returns the addresses of a list that can be hosts, at most maxServers.
func hosts(list []netip.Addr) []netip.Addr {
	list = slices.DeleteFunc(list, func(a netip.Addr) bool { return !usable(a) })
	return slices.Clone(firstN(list, maxServers))
}

func firstN[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// domain returns name if it contains only characters that are safe in configuration files and on command lines, and ""
// otherwise.
func domain(name string) string {
	if _, err := wire.ParseDNSName(name); err != nil || name[0] == '-' || name == "." {
		return ""
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return ""
		}
	}
	return name
}
