package dhcp

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Limits of what a client believes.
const (
	// minLease is the shortest lease that is taken. A shorter one would have the
	// client do nothing but renew it.
	minLease = 10 * time.Second
	// maxServers is how many routers, name servers and time servers are kept.
	maxServers = 8
	// maxRoutes is how many classless routes are kept.
	maxRoutes = 64
	// minMTU is the smallest MTU that is believed: what every host has to accept
	// (RFC 791 section 3.1). Less, from a stranger, would only slow us down.
	minMTU = 576
)

// Lease is an address and the configuration that came with it. Lists are in the
// server's order of preference and bounded; what was malformed is left out.
type Lease struct {
	Addr    netip.Prefix // the address, with the length of the subnet's prefix
	Server  netip.Addr   // who gave it
	Routers []netip.Addr // default routers; none if there are Routes (RFC 3442)
	Routes  []wire.DHCPv4Route
	DNS     []netip.Addr
	NTP     []netip.Addr
	Domain  string   // checked: letters, digits, hyphens, underscores and dots
	Search  []string // checked likewise
	MTU     int      // 0: not given

	Start   Time // when the request was sent that it was granted for
	T1, T2  Time // when to ask the server, and when to ask everyone, to extend it
	Expires Time // when the address has to go; Never if it may stay
}

// newLease reads the lease in an offer or acknowledgement that answers a request
// sent at start. ok is false if it cannot be one.
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

// setTimes follows RFC 2131 section 4.4.5. Times from the server that are not in
// the order T1, T2, expiry make no sense, and a T1 that is next to nothing would
// keep the client busy: the defaults there take their place.
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

// prefixBits is the length of the subnet's prefix. Without a mask, or with one
// that is no mask, it is that of the address's class (RFC 791 section 2.3), as
// it was before there were masks.
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

// hosts leaves out what cannot be a host, and what is too much.
func hosts(list []netip.Addr) []netip.Addr {
	list = slices.DeleteFunc(list, func(a netip.Addr) bool { return !usable(a) })
	return slices.Clone(firstN(list, maxServers))
}

func firstN[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// domain is name if it can stand in a configuration file or on a command line
// without surprise, and empty otherwise.
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
