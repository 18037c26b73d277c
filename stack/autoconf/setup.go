package autoconf

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Setup is the configuration of an interface derived from the learned data.
type Setup struct {
	Addresses []Address
	Routes    []Route
	DNS       []netip.Addr // name servers, in the order in which they were learned
	MTU       int          // MTU for IPv6 in bytes, at most the MTU of the interface; 0: the MTU of the interface
	Link      Link
}

// Link holds the parameters of the link that routers have advertised. A parameter that no router has advertised is zero. A
// value remains valid until a router advertises another one (RFC 4861 section 6.3.4).
type Link struct {
	HopLimit   uint8         // hop limit for packets that we send
	Reachable  time.Duration // average time for which a neighbour counts as reachable after a confirmation
	Retransmit time.Duration // time between neighbour solicitations
	Managed    bool          // addresses are available by DHCPv6
	Other      bool          // other configuration is available by DHCPv6
}

// Address is one of our addresses. It has the length of the prefix if the prefix is on-link, and otherwise the length 128.
type Address struct {
	Prefix     netip.Prefix
	Deprecated bool         // the address is not used for new connections if another one is available
	Routers    []netip.Addr // routers that have advertised the prefix of the address (RFC 6724 section 5, rule 5.5)
}

func (a Address) equal(o Address) bool {
	return a.Prefix == o.Prefix && a.Deprecated == o.Deprecated && slices.Equal(a.Routers, o.Routers)
}

// Route is a route to a network.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // link-local address of the router; invalid: the network is on the link
	Metric  int        // among routes to the same network, the lowest Metric wins, and then the first in the list
}

// Answers reports whether the gateway of the route is reachable, as far as the Host knows.
func (r Route) Answers() bool { return r.Metric < downMetric }

// Metrics, by preference. Routers that do not answer come after all others. 0 is reserved for routes that a
// user has configured.
const (
	mediumMetric = 2
	downMetric   = 4
)

// Setup returns the configuration of the interface if it has changed since the last call.
func (h *Host) Setup() (Setup, bool) {
	if !h.changed {
		return Setup{}, false
	}
	h.changed = false
	s := Setup{MTU: h.mtu, Link: h.link}
	for i := range h.prefixes {
		h.prefixes[i].setUp(&s, h.cfg.MAC)
	}
	for _, r := range h.routes {
		if h.down[r.via] && h.bypassed(r.dst) {
			continue
		}
		s.Routes = append(s.Routes, Route{r.dst, r.via, h.metric(r.via, r.preference)})
	}
	everywhere := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	for _, r := range h.routers {
		s.Routes = append(s.Routes, Route{everywhere, r.addr, h.metric(r.addr, r.preference)})
	}
	for _, r := range h.servers {
		s.DNS = append(s.DNS, r.addr)
	}
	if s.equal(&h.reported) { // most advertisements repeat the previous one, and change nothing
		return Setup{}, false
	}
	h.reported = s
	return s, true
}

// bypassed reports whether packets to a network can use another router that answers. Such a router is
// preferred over a longer prefix of a router that does not answer (RFC 4191 section 3.2).
func (h *Host) bypassed(dst netip.Prefix) bool {
	return slices.ContainsFunc(h.routers, func(r router) bool { return !h.down[r.addr] }) ||
		slices.ContainsFunc(h.routes, func(r route) bool {
			return !h.down[r.via] && r.dst.Bits() <= dst.Bits() && r.dst.Contains(dst.Addr())
		})
}

func (s *Setup) equal(o *Setup) bool {
	return s.MTU == o.MTU && s.Link == o.Link && slices.EqualFunc(s.Addresses, o.Addresses, Address.equal) && slices.Equal(s.Routes, o.Routes) && slices.Equal(s.DNS, o.DNS)
}

// metric returns the metric of a route through router with preference p.
func (h *Host) metric(router netip.Addr, p wire.Preference) int {
	m := mediumMetric - int(p)
	if h.down[router] {
		m += downMetric
	}
	return m
}

// setUp adds the address and routes of the prefix to s.
func (p *prefix) setUp(s *Setup, mac wire.MAC) {
	if p.valid == 0 || p.refused {
		if p.onLink != 0 {
			s.Routes = append(s.Routes, Route{Dst: p.prefix, Metric: mediumMetric})
		}
		return
	}
	a := p.address(mac)
	if p.onLink == 0 {
		a = netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
	}
	s.Addresses = append(s.Addresses, Address{Prefix: a, Deprecated: p.preferred == 0, Routers: p.routers})
}

// address returns the station's address in the prefix.
func (p *prefix) address(mac wire.MAC) netip.Prefix {
	a, id := p.prefix.Addr().As16(), wire.LinkLocal6(mac).As16()
	copy(a[8:], id[8:])
	return netip.PrefixFrom(netip.AddrFrom16(a), p.prefix.Bits())
}
