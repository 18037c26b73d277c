package stack

import (
	"net/netip"
	"slices"
	"strconv"

	"loam/stack/autoconf"
	"loam/stack/ip"
	"loam/wire"
)

// Routes and addresses of IPv6. A link-local address is valid only on its link. Programs see it with the interface name as its
// zone; in packets and in the tables it has no zone.

// maxIPv6 is the size of the largest IPv6 packet, in bytes and including its header.
const maxIPv6 = wire.IPv6Len + wire.MaxIPv6Payload

// ipv6MTU returns the size of the largest IPv6 packet on the interface, in bytes.
func (i *Interface) ipv6MTU() int { return min(i.mtu, maxIPv6) }

// mtu6 is ipv6MTU limited by the MTU that routers advertise.
func (t *tables) mtu6(ifc *Interface) int {
	if m := t.learned[ifc.index].MTU; m != 0 {
		return min(m, ifc.ipv6MTU())
	}
	return ifc.ipv6MTU()
}

// hopLimit returns the hop limit for packets on the path if the program has set none. For
// IPv6, routers may advertise it (RFC 4861 section 6.3.4).
func (p *path) hopLimit() uint8 {
	if p.tables == nil || p.nextHop.Is4() {
		return defaultTTL
	}
	if h := p.tables.learned[p.ifc.index].HopLimit; h != 0 {
		return h
	}
	return defaultTTL
}

// isScoped reports whether an address is valid on one link or interface only.
func isScoped(a netip.Addr) bool {
	return a.Is6() && (a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast())
}

// bare returns an address without its zone.
func bare(a netip.AddrPort) netip.AddrPort {
	if a.Addr().Zone() == "" {
		return a
	}
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}

// zone returns the interface that a zone names, by interface name or index, or nil.
func (t *tables) zone(z string) *Interface {
	if ifc := t.byName(z); ifc != nil {
		return ifc
	}
	if index, err := strconv.Atoi(z); err == nil {
		return t.byIndex(index)
	}
	return nil
}

// normalZone returns an address with a normalized zone: the interface name if the address
// is scoped, otherwise none. Errors: ErrInvalid for a zone that does not exist.
func (t *tables) normalZone(a netip.Addr) (netip.Addr, error) {
	z := a.Zone()
	switch {
	case z == "":
		return a, nil
	case !isScoped(a):
		return a.WithZone(""), nil
	}
	ifc := t.zone(z)
	if ifc == nil {
		return a, ErrInvalid
	}
	return a.WithZone(ifc.name), nil
}

// route6 is route for IPv6. Errors: ErrNetUnreachable, and ErrInvalid for a link-local address without a zone.
func (t *tables) route6(source, dst netip.Addr) (path, error) {
	zone := dst.Zone()
	dst = dst.WithZone("")
	if _, ok := t.local[dst]; ok {
		lo := t.interfaces[0]
		return path{tables: t, ifc: lo, nextHop: dst, source: dst, mtu: lo.ipv6MTU()}, nil
	}
	if dst.IsMulticast() || isScoped(dst) {
		ifc, err := t.linkOf(zone, source, dst)
		if err != nil {
			return path{}, err
		}
		return path{tables: t, ifc: ifc, nextHop: dst, source: t.source6(ifc, dst, netip.Addr{}), mtu: t.mtu6(ifc)}, nil
	}
	r, ok := t.lookup.Lookup(dst)
	if !ok {
		return path{}, ErrNetUnreachable
	}
	ifc := t.byIndex(r.Interface)
	p := path{tables: t, ifc: ifc, nextHop: dst, source: t.source6(ifc, dst, r.Gateway), mtu: t.mtu6(ifc)}
	if r.Gateway.IsValid() {
		if source = source.WithZone(""); !source.IsValid() || source.IsUnspecified() {
			if isScoped(p.source) {
				return path{}, ErrNetUnreachable // routers do not forward packets with a link-local source (RFC 4291 section 2.5.6)
			}
			source = p.source
		}
		p.nextHop = t.gatewayFor(&r, source).WithZone("")
	}
	if r.MTU != 0 {
		p.mtu = min(p.mtu, max(r.MTU, ip.MinPathMTU6))
	}
	return t.redirected(p, dst), nil
}

// gatewayFor returns the router for packets from source that use the route r. Of the routers that have advertised such a
// route, it prefers one that has also advertised the prefix of source, since other routers may drop the packets (RFC 8028
// section 3). Configured routes are not changed, and neither are routes to longer prefixes.
func (t *tables) gatewayFor(r *ip.Route, source netip.Addr) netip.Addr {
	said := t.learned[r.Interface]
	routers := said.Advertisers[source]
	if len(routers) == 0 || slices.Contains(routers, r.Gateway) || !hasRoute(said.Routes, r) {
		return r.Gateway
	}
	best := autoconf.Route{Gateway: r.Gateway}
	for _, other := range said.Routes {
		if other.Dst == r.Dst && slices.Contains(routers, other.Gateway) && (!best.Dst.IsValid() || other.Metric < best.Metric) {
			best = other
		}
	}
	return best.Gateway
}

// hasRoute reports whether a route has been learned from a router.
func hasRoute(learned []autoconf.Route, r *ip.Route) bool {
	return slices.ContainsFunc(learned, func(o autoconf.Route) bool { return o.Dst == r.Dst && o.Gateway == r.Gateway })
}

// linkOf returns the interface for a scoped or multicast address: the one of its zone, or of the source. For a group without
// either, it is the first interface with IPv6 other than the loopback.
func (t *tables) linkOf(zone string, source, dst netip.Addr) (*Interface, error) {
	if zone == "" {
		zone = source.Zone()
	}
	if zone != "" {
		if ifc := t.zone(zone); ifc != nil {
			return ifc, nil
		}
		return nil, ErrNetUnreachable
	}
	if ifc := t.local[source].ifc; ifc != nil && dst.IsMulticast() {
		return ifc, nil
	}
	if !dst.IsMulticast() {
		return nil, ErrInvalid
	}
	for _, ifc := range t.interfaces {
		if !ifc.loopback && ifc.ipv6 {
			return ifc, nil
		}
	}
	return nil, ErrNetUnreachable
}

// source6 returns the source address for packets to dst: one of the interface, otherwise one of any interface, otherwise the
// unspecified address. gateway is the next hop, or invalid if dst is on the link.
func (t *tables) source6(ifc *Interface, dst, gateway netip.Addr) netip.Addr {
	if a, ok := ip.Source(dst, gateway, t.own6[ifc.index]); ok {
		return a
	}
	for _, other := range t.interfaces {
		if a, ok := ip.Source(dst, netip.Addr{}, t.own6[other.index]); ok && !isScoped(a) && !a.IsLoopback() {
			return a
		}
	}
	return netip.IPv6Unspecified()
}

// hasIPv6 reports whether the stack has an IPv6 address that can reach other networks.
func (t *tables) hasIPv6() bool {
	for _, a := range t.addresses {
		if addr := a.Prefix.Addr(); addr.Is6() && !isScoped(addr) && !addr.IsLoopback() {
			return true
		}
	}
	return false
}

// destination returns the effective destination if a socket bound to local sends to remote: see normalRemote. Errors:
// ErrFamily for an address of the other IP version; ErrNetUnreachable for an IPv4 address from an IPv6 socket that is bound to
// a specific address or is IPv6-only; ErrInvalid for a zone that does not exist.
func (t *tables) destination(local netip.Addr, remote netip.AddrPort, v6Only bool) (netip.AddrPort, error) {
	remote = normalRemote(remote)
	to := remote.Addr()
	switch {
	case to.Is4() && !local.Is6():
		return remote, nil
	case to.Is4() && (v6Only || !local.IsUnspecified()):
		return remote, ErrNetUnreachable
	case to.Is4():
		return remote, nil
	case !to.IsValid() || local.Is4():
		return remote, ErrFamily
	case to.Zone() == "":
		return remote, nil
	}
	to, err := t.normalZone(to)
	return netip.AddrPortFrom(to, remote.Port()), err
}

// checkLocal6 is checkLocal for IPv6. A link-local address must have a zone.
func (s *Stack) checkLocal6(local netip.AddrPort) (netip.AddrPort, error) {
	t := s.tables.Load()
	addr, err := t.normalZone(local.Addr())
	if err == nil && isScoped(addr) && addr.Zone() == "" && !addr.IsMulticast() {
		err = ErrInvalid
	}
	if err != nil {
		return local, err
	}
	if s.config.NoIPv6 {
		return local, ErrFamily
	}
	if _, ours := t.local[addr.WithZone("")]; !ours && !addr.IsUnspecified() && !addr.IsMulticast() {
		return local, ErrNotAvailable
	}
	return netip.AddrPortFrom(addr, local.Port()), nil
}

// maxUDP returns the largest payload of a UDP datagram to an address, in bytes.
func maxUDP(to netip.Addr) int {
	if to.Is4() {
		return MaxUDP
	}
	return MaxUDP6
}

// HasIPv6 reports whether the stack supports IPv6: see Config.NoIPv6.
func (s *Stack) HasIPv6() bool { return !s.config.NoIPv6 }
