package autoconf

import (
	"net/netip"
	"slices"
	"time"

	"loam/wire"
)

// Setup is what an interface is to be by what is believed now.
type Setup struct {
	Addresses []Address
	Routes    []Route
	DNS       []netip.Addr // servers, in the order in which they were learnt
	MTU       int          // of IPv6 on the link, not above the interface's; 0: the interface's
	Link      Link
}

// Link is what routers have said of the link; what none has is zero. What one says is good
// until another says something else (RFC 4861 section 6.3.4).
type Link struct {
	HopLimit   uint8         // of packets
	Reachable  time.Duration // how long it is believed on average that a neighbour is there
	Retransmit time.Duration // between questions for a neighbour
	Managed    bool          // addresses are to be had by DHCPv6
	Other      bool          // more than addresses is
}

// Address is an address of ours. Its length is that of the prefix if addresses in that
// are on the link; else it is by itself.
type Address struct {
	Prefix     netip.Prefix
	Deprecated bool         // not for new connections, if there is another
	Routers    []netip.Addr // that have advertised the prefix (RFC 6724 section 5, rule 5.5)
}

func (a Address) equal(o Address) bool {
	return a.Prefix == o.Prefix && a.Deprecated == o.Deprecated && slices.Equal(a.Routers, o.Routers)
}

// Route leads to a network.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr // link-local; not valid: the network is on the link
	Metric  int        // the lowest wins among equal networks, the first of equal metrics
}

// Answers reports whether the gateway has not failed to answer.
func (r Route) Answers() bool { return r.Metric < downMetric }

// Metrics: by preference, and behind all that answer those that do not. 0 is left to
// what a user has configured.
const (
	mediumMetric = 2
	downMetric   = 4
)

// Setup says what the interface is to be, if that has changed since it was last asked.
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
	if s.equal(&h.told) { // most advertisements say what the last one said
		return Setup{}, false
	}
	h.told = s
	return s, true
}

// bypassed reports whether packets to a network have a way by a router that answers: such a one
// is preferred to a longer prefix of one that does not (RFC 4191 section 3.2).
func (h *Host) bypassed(dst netip.Prefix) bool {
	return slices.ContainsFunc(h.routers, func(r router) bool { return !h.down[r.addr] }) ||
		slices.ContainsFunc(h.routes, func(r route) bool {
			return !h.down[r.via] && r.dst.Bits() <= dst.Bits() && r.dst.Contains(dst.Addr())
		})
}

func (s *Setup) equal(o *Setup) bool {
	return s.MTU == o.MTU && s.Link == o.Link && slices.EqualFunc(s.Addresses, o.Addresses, Address.equal) && slices.Equal(s.Routes, o.Routes) && slices.Equal(s.DNS, o.DNS)
}

func (h *Host) metric(router netip.Addr, p wire.Preference) int {
	m := mediumMetric - int(p)
	if h.down[router] {
		m += downMetric
	}
	return m
}

// setUp adds what the prefix gives.
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

// address is the one of a station in the prefix.
func (p *prefix) address(mac wire.MAC) netip.Prefix {
	a, id := p.prefix.Addr().As16(), wire.LinkLocal6(mac).As16()
	copy(a[8:], id[8:])
	return netip.PrefixFrom(netip.AddrFrom16(a), p.prefix.Bits())
}
