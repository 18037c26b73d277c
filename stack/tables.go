package stack

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"loam/stack/configure"
	"loam/stack/ip"
	"loam/stack/neigh"
)

// tables holds the interfaces, addresses and routes that packets are looked up in. It is
// immutable. A change creates a new version and publishes it in Stack.tables, so readers
// need no lock and see a consistent state. Changes are rare and made under Stack.mu.
type tables struct {
	interfaces []*Interface                     // interfaces in order of index, without gaps
	local      map[netip.Addr]local             // destination addresses that belong to this host
	addresses  []Address                        // addresses as configured, in order
	tentative  []Address                        // addresses under duplicate detection (RFC 4862): see Interface.trial
	own6       map[int][]ip.Own                 // usable IPv6 source addresses, by interface index
	routes     []Route                          // routes as configured, in order
	learned    map[int]configure.Learned        // configuration learned from IPv6 routers, by interface index
	lookup     ip.Table                         // routes and prefixes of addresses
	detours    map[int]map[netip.Addr]ip.Detour // redirects, by interface index and destination: see redirected
}

// local describes a local destination address.
type local struct {
	ifc       *Interface
	broadcast bool
}

// Address is an address of this host and its prefix, on an interface.
type Address struct {
	Interface string
	Prefix    netip.Prefix // the address with its prefix length, not masked
}

// Route is an entry of the routing table.
type Route struct {
	Dst       netip.Prefix
	Gateway   netip.Addr // next router; zero: the destination is on the link
	Interface string     // name of the outgoing interface; empty: the interface whose prefix contains Gateway
	Source    netip.Addr // preferred source address; zero: the interface's first suitable address
	Metric    int        // among routes with equal prefixes, the one with the lowest metric is used
	MTU       int        // largest packet in bytes; zero: as the interface allows
}

// byIndex returns the interface with an index, or nil.
func (t *tables) byIndex(index int) *Interface {
	for _, ifc := range t.interfaces {
		if ifc.index == index {
			return ifc
		}
	}
	return nil
}

// byName returns the interface with a name, or nil.
func (t *tables) byName(name string) *Interface {
	for _, ifc := range t.interfaces {
		if ifc.name == name {
			return ifc
		}
	}
	return nil
}

// rebuild derives local, own6 and lookup from the configured lists.
func (t *tables) rebuild() {
	t.local = make(map[netip.Addr]local)
	t.own6 = make(map[int][]ip.Own)
	var routes []ip.Route
	for _, a := range t.addresses {
		ifc := t.byName(a.Interface)
		addr := a.Prefix.Addr()
		if addr.Is6() {
			onTrial := slices.Contains(t.tentative, a)
			if onTrial && ifc.trial() == neigh.Tentative {
				continue
			}
			said := t.learned[ifc.index]
			t.own6[ifc.index] = append(t.own6[ifc.index], ip.Own{
				Prefix: a.Prefix, Deprecated: onTrial || slices.Contains(said.Deprecated, addr), Routers: said.Advertisers[addr],
			})
		}
		t.local[addr] = local{ifc: ifc}
		if last, ok := broadcastOf(a.Prefix); ok {
			if _, taken := t.local[last]; !taken {
				t.local[last] = local{ifc, true}
			}
		}
		if !ifc.loopback && !a.Prefix.IsSingleIP() && !isScoped(addr) {
			routes = append(routes, ip.Route{Dst: a.Prefix.Masked(), Interface: ifc.index, Source: addr})
		}
	}
	for _, r := range t.routes {
		ifc := t.byName(r.Interface)
		routes = append(routes, ip.Route{Dst: r.Dst.Masked(), Gateway: r.Gateway, Interface: ifc.index, Source: r.Source, Metric: r.Metric, MTU: r.MTU})
	}
	t.lookup = ip.NewTable(routes)
}

// change calls f on a copy of the tables and publishes the copy. If f returns an error, nothing changes.
func (s *Stack) change(f func(*tables) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	old := s.tables.Load()
	t := &tables{
		interfaces: slices.Clone(old.interfaces),
		addresses:  slices.Clone(old.addresses),
		tentative:  slices.Clone(old.tentative),
		routes:     slices.Clone(old.routes),
		learned:    make(map[int]configure.Learned),
		detours:    maps.Clone(old.detours),
	}
	maps.Copy(t.learned, old.learned)
	if err := f(t); err != nil {
		return err
	}
	t.rebuild()
	s.tables.Store(t)
	return nil
}

// AddAddress adds an address to an interface. Its prefix becomes reachable on the link, and the address is announced to
// neighbours. An IPv6 address first undergoes duplicate detection for one second, during which its use is restricted (RFC
// 4429): packets to unresolved neighbours wait. It is removed if another host uses it. Errors: ErrNoInterface, ErrExists,
// ErrInvalid, ErrFamily for IPv6 on an interface without IPv6, ErrClosed.
func (s *Stack) AddAddress(name string, p netip.Prefix) error {
	if !p.IsValid() || p.Addr().IsUnspecified() || p.Addr().IsMulticast() {
		return ErrInvalid
	}
	if p.Addr().Is4In6() {
		return ErrInvalid
	}
	return s.change(func(t *tables) error {
		ifc := t.byName(name)
		switch {
		case ifc == nil:
			return ErrNoInterface
		case p.Addr().Is6() && !ifc.ipv6:
			return ErrFamily
		case slices.ContainsFunc(t.addresses, func(a Address) bool {
			return a.Prefix.Addr() == p.Addr() && (a.Interface == name || !isScoped(p.Addr()))
		}):
			return ErrExists
		}
		t.addresses = append(t.addresses, Address{name, p})
		if p.Addr().Is6() && ifc.trial() != neigh.Untried {
			t.tentative = append(t.tentative, Address{name, p})
		}
		ifc.announce(p) // announced before its first use, because a neighbour request carries the source address
		return nil
	})
}

// RemoveAddress removes an address. Connections that use it are not reset; they time out
// unless the address is added again. Errors: ErrNotFound, ErrClosed.
func (s *Stack) RemoveAddress(name string, p netip.Prefix) error {
	return s.change(func(t *tables) error {
		if !t.removeAddress(Address{name, p}) {
			return ErrNotFound
		}
		t.byName(name).withdraw(p.Addr()) // called under the lock, so that a later AddAddress is processed afterwards
		return nil
	})
}

// removeAddress removes an address and reports whether it existed.
func (t *tables) removeAddress(address Address) bool {
	n := len(t.addresses)
	same := func(a Address) bool { return a == address }
	t.addresses = slices.DeleteFunc(t.addresses, same)
	t.tentative = slices.DeleteFunc(t.tentative, same)
	return len(t.addresses) < n
}

// AddRoute adds a route. Errors: ErrNoInterface if Interface does not exist, or is empty and no prefix contains Gateway;
// ErrExists; ErrInvalid; ErrFamily for IPv6 on an interface without IPv6; ErrClosed.
func (s *Stack) AddRoute(r Route) error {
	switch {
	case !r.Dst.IsValid():
		return fmt.Errorf("add route: there is no destination: set Dst, to 0.0.0.0/0 or ::/0 for the default route: %w", ErrInvalid)
	case r.Gateway.IsValid() && r.Gateway.BitLen() != r.Dst.Addr().BitLen():
		return fmt.Errorf("add route: the gateway %v is of another version of IP than %v: %w", r.Gateway, r.Dst, ErrInvalid)
	}
	r.Dst, r.Gateway = r.Dst.Masked(), r.Gateway.WithZone("")
	return s.change(func(t *tables) error {
		if r.Interface == "" {
			for _, a := range t.addresses {
				if r.Gateway.IsValid() && a.Prefix.Contains(r.Gateway) {
					r.Interface = a.Interface
				}
			}
		}
		switch ifc := t.byName(r.Interface); {
		case ifc == nil:
			return ErrNoInterface
		case r.Dst.Addr().Is6() && !ifc.ipv6:
			return ErrFamily
		}
		if slices.Contains(t.routes, r) {
			return ErrExists
		}
		t.routes = append(t.routes, r)
		return nil
	})
}

// RemoveRoute removes the route that equals r. Errors: ErrNotFound, ErrClosed.
func (s *Stack) RemoveRoute(r Route) error {
	r.Dst = r.Dst.Masked()
	return s.change(func(t *tables) error {
		n := len(t.routes)
		t.routes = slices.DeleteFunc(t.routes, func(x Route) bool { return x == r })
		if len(t.routes) == n {
			return ErrNotFound
		}
		return nil
	})
}

// Addresses returns all addresses in the order in which they were added.
func (s *Stack) Addresses() []Address { return slices.Clone(s.tables.Load().addresses) }

// Routes returns the routes that were added. The prefixes of addresses are routes too, but not included.
func (s *Stack) Routes() []Route { return slices.Clone(s.tables.Load().routes) }

// RouteTo returns the path of packets to an address as a Route. Its Dst is that address alone, and its MTU is the configured
// MTU of the path. An address of this host has a path through the loopback. Errors: ErrNetUnreachable; ErrInvalid for a
// link-local address without a zone.
func (s *Stack) RouteTo(dst netip.Addr) (Route, error) {
	p, err := s.tables.Load().route(netip.Addr{}, dst)
	if err != nil {
		return Route{}, err
	}
	r := Route{Dst: netip.PrefixFrom(dst, dst.BitLen()), Interface: p.ifc.name, Source: p.source, MTU: p.mtu}
	if p.nextHop != dst.WithZone("") {
		r.Gateway = p.nextHop
	}
	return r, nil
}

// broadcastOf returns the broadcast address of an IPv4 prefix (RFC 919). A /31 or /32 has none (RFC 3021).
func broadcastOf(p netip.Prefix) (netip.Addr, bool) {
	if !p.Addr().Is4() || p.Bits() >= 31 {
		return netip.Addr{}, false
	}
	b := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(b), true
}

// path is the result of a route lookup. A connection keeps its path until the tables change.
type path struct {
	tables  *tables // the path is valid while these tables are current
	ifc     *Interface
	nextHop netip.Addr // the destination itself or a gateway, on the link of ifc
	source  netip.Addr // source address for a socket that has none
	mtu     int
	narrow  bool  // the path MTU is below mtu: see ip.PathMTU
	hops    uint8 // result of hopLimit; set only in the path of a TCP connection

	confirmed time.Duration // when the next hop was last confirmed reachable
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// route returns the path to dst. source may be zero; path.source is then the source to
// use. Errors: ErrNetUnreachable; ErrInvalid for a link-local address without a zone.
func (t *tables) route(source, dst netip.Addr) (path, error) {
	if dst.Is6() {
		return t.route6(source, dst)
	}
	if l, ok := t.local[dst]; ok && !l.broadcast || dst.IsLoopback() {
		lo := t.interfaces[0]
		if l.broadcast {
			return t.pathOn(lo, dst), nil
		}
		return path{tables: t, ifc: lo, nextHop: dst, source: dst, mtu: lo.ipv4MTU()}, nil
	}
	if dst == limitedBroadcast || dst.IsMulticast() {
		return t.routeOnLink(source, dst)
	}
	r, ok := t.lookup.Lookup(dst)
	if !ok {
		return path{}, ErrNetUnreachable
	}
	ifc := t.byIndex(r.Interface)
	p := path{tables: t, ifc: ifc, nextHop: dst, source: r.Source, mtu: ifc.ipv4MTU()}
	if r.Gateway.IsValid() {
		p.nextHop = r.Gateway
	}
	if r.MTU != 0 {
		p.mtu = min(p.mtu, r.MTU)
	}
	if !p.source.IsValid() {
		p.source = t.sourceOn(ifc, p.nextHop)
	}
	return t.redirected(p, dst), nil
}

// routeOnLink returns the path for broadcast and multicast destinations: through the interface that has the source address,
// otherwise the first one that is not the loopback.
func (t *tables) routeOnLink(source, dst netip.Addr) (path, error) {
	ifc := t.local[source].ifc
	for _, other := range t.interfaces {
		if ifc == nil && !other.loopback {
			ifc = other
		}
	}
	if ifc == nil {
		return path{}, ErrNetUnreachable
	}
	return t.pathOn(ifc, dst), nil
}

// pathOn returns the path to an IPv4 address on the link of an interface.
func (t *tables) pathOn(ifc *Interface, dst netip.Addr) path {
	return path{tables: t, ifc: ifc, nextHop: dst, source: t.sourceOn(ifc, dst), mtu: ifc.ipv4MTU()}
}

// sourceOn returns the IPv4 source address for a next hop: an address of ifc whose prefix contains nextHop, otherwise the
// first address. It is the unspecified address if ifc has none.
func (t *tables) sourceOn(ifc *Interface, nextHop netip.Addr) netip.Addr {
	var first netip.Addr
	for _, a := range t.addresses {
		if a.Interface != ifc.name || a.Prefix.Addr().Is6() {
			continue
		}
		if a.Prefix.Contains(nextHop) {
			return a.Prefix.Addr()
		}
		if !first.IsValid() {
			first = a.Prefix.Addr()
		}
	}
	if !first.IsValid() {
		return netip.IPv4Unspecified()
	}
	return first
}
