package stack

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"loam/stack/ip"
	"loam/stack/neigh"
)

// tables is what every packet is looked up in: interfaces, addresses, routes.
// It is immutable; a change makes a new one and publishes it (Stack.tables), so
// readers need no lock and see one consistent state. Changes are rare and made
// under Stack.mu.
type tables struct {
	interfaces []*Interface                     // in order of index, with gaps closed
	local      map[netip.Addr]local             // destinations that are this host
	addresses  []Address                        // as configured, in order
	tentative  []Address                        // of these, the ones on trial (RFC 4862): see Interface.trial
	own6       map[int][]ip.Own                 // the others of IPv6, by index of the interface
	routes     []Route                          // as configured, in order
	learned    map[int]learned                  // from routers of IPv6, by index of the interface
	lookup     ip.Table                         // routes and connected prefixes
	detours    map[int]map[netip.Addr]ip.Detour // what redirects say, by index of the interface and destination: see redirected
}

// local says what an address of ours is.
type local struct {
	ifc       *Interface
	broadcast bool
}

// Address is an address with its prefix on an interface.
type Address struct {
	Interface string
	Prefix    netip.Prefix // the address of this host, not masked
}

// Route says where packets to Dst go.
type Route struct {
	Dst       netip.Prefix
	Gateway   netip.Addr // zero: the destination is on the link
	Interface string     // empty: the interface on whose prefix Gateway lies
	Source    netip.Addr // preferred source address; zero: the interface's first that fits
	Metric    int        // the lowest wins among equal prefixes
	MTU       int        // zero: the interface's
}

// byIndex finds an interface by its index.
func (t *tables) byIndex(index int) *Interface {
	for _, ifc := range t.interfaces {
		if ifc.index == index {
			return ifc
		}
	}
	return nil
}

// byName finds an interface by its name.
func (t *tables) byName(name string) *Interface {
	for _, ifc := range t.interfaces {
		if ifc.name == name {
			return ifc
		}
	}
	return nil
}

// rebuild derives local and lookup from the configured lists.
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
				Prefix: a.Prefix, Deprecated: onTrial || slices.Contains(said.deprecated, addr), Routers: said.advertisers[addr],
			})
		}
		t.local[addr] = local{ifc: ifc}
		if ifc.loopback {
			continue
		}
		if last, ok := broadcastOf(a.Prefix); ok {
			if _, taken := t.local[last]; !taken {
				t.local[last] = local{ifc, true}
			}
		}
		if !a.Prefix.IsSingleIP() && !isScoped(addr) {
			routes = append(routes, ip.Route{Dst: a.Prefix.Masked(), Interface: ifc.index, Source: addr})
		}
	}
	for _, r := range t.routes {
		ifc := t.byName(r.Interface)
		routes = append(routes, ip.Route{Dst: r.Dst.Masked(), Gateway: r.Gateway, Interface: ifc.index, Source: r.Source, Metric: r.Metric, MTU: r.MTU})
	}
	t.lookup = ip.NewTable(routes)
}

// change publishes a changed copy of the tables. f works on the copy; an error
// leaves everything as it was.
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
		learned:    make(map[int]learned),
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

// AddAddress gives an interface an address; the prefix it lies in becomes
// reachable on the link. The address is announced to the neighbours. One of IPv6 is
// tried on the link for a second, in which it is used with care (RFC 4429): packets to
// neighbours that nobody has heard of wait, and it is gone if another host has it. Errors:
// ErrNoInterface, ErrExists, ErrInvalid, ErrFamily for IPv6 on an interface without.
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
		ifc.announce(p) // before anybody uses it: who asks for a neighbour says from where
		return nil
	})
}

// RemoveAddress takes an address away. Connections that use it are not ended:
// they time out unless it comes back. Errors: ErrNotFound.
func (s *Stack) RemoveAddress(name string, p netip.Prefix) error {
	return s.change(func(t *tables) error {
		if !t.removeAddress(Address{name, p}) {
			return ErrNotFound
		}
		t.byName(name).withdraw(p.Addr()) // in the order of the changes: it may be added again at once
		return nil
	})
}

// removeAddress takes an address out, on trial or not, and reports whether it was there.
func (t *tables) removeAddress(address Address) bool {
	n := len(t.addresses)
	same := func(a Address) bool { return a == address }
	t.addresses = slices.DeleteFunc(t.addresses, same)
	t.tentative = slices.DeleteFunc(t.tentative, same)
	return len(t.addresses) < n
}

// AddRoute adds a route. Errors: ErrNoInterface when Interface names none or,
// being empty, cannot be told from Gateway; ErrExists; ErrInvalid; ErrFamily for IPv6
// by an interface without.
func (s *Stack) AddRoute(r Route) error {
	if !r.Dst.IsValid() || r.Gateway.IsValid() && r.Gateway.BitLen() != r.Dst.Addr().BitLen() {
		return ErrInvalid
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

// RemoveRoute removes the route that equals r. Errors: ErrNotFound.
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

// Addresses lists all addresses in the order in which they were added.
func (s *Stack) Addresses() []Address { return slices.Clone(s.tables.Load().addresses) }

// Routes lists the routes that were added; the prefixes of addresses are routes
// too, and not listed here.
func (s *Stack) Routes() []Route { return slices.Clone(s.tables.Load().routes) }

// RouteTo says what way packets to an address take: Dst is that address alone, and MTU the
// way's as far as it is configured. The way to an address of this host is the loopback.
// Errors: ErrNetUnreachable; ErrInvalid for a link-local address without a zone.
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

// broadcastOf is the last address of an IPv4 prefix that has room for one (RFC
// 919; RFC 3021 leaves /31 without).
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

// path is how a packet leaves: found once for a connection, and again when the
// tables have changed.
type path struct {
	tables  *tables // the path is good as long as these are the current ones
	ifc     *Interface
	nextHop netip.Addr // on the link of ifc; the destination itself or a gateway
	source  netip.Addr // to use when the socket has none
	mtu     int
	narrow  bool // it is narrower than mtu: see ip.PathMTU

	confirmed time.Duration // when the next hop was last said to answer
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// route finds the path to dst. source may be zero: then the path suggests one.
// Errors: ErrNetUnreachable; ErrInvalid for a link-local address without a zone.
func (t *tables) route(source, dst netip.Addr) (path, error) {
	if dst.Is6() {
		return t.route6(source, dst)
	}
	if l, ok := t.local[dst]; ok && !l.broadcast || dst.IsLoopback() {
		lo := t.interfaces[0]
		p := path{tables: t, ifc: lo, nextHop: dst, source: dst, mtu: lo.ipv4MTU()}
		return p, nil
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

// routeOnLink is for destinations that no route names: the interface that has
// the source address, or the first that is not the loopback.
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

// pathOn is the path to an address of IPv4 that is on the link of an interface.
func (t *tables) pathOn(ifc *Interface, dst netip.Addr) path {
	return path{tables: t, ifc: ifc, nextHop: dst, source: t.sourceOn(ifc, dst), mtu: ifc.ipv4MTU()}
}

// sourceOn picks an address of ifc to speak to next hop from: one with a common
// prefix, else the first; the zero address when ifc has none yet.
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
