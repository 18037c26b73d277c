package stack

import (
	"context"
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/autoconf"
	"loam/stack/neigh"
	"loam/stack/tcp"
	"loam/wire"
)

// IPv6 router discovery: an interface that configures itself from router advertisements,
// or that is a router itself. The interface loop runs the machines of package autoconf.

// routerMessage is a router advertisement or solicitation with its source.
type routerMessage struct {
	src           netip.Addr
	advertisement *wire.RouterAdvertisement // nil: a solicitation
	solicitation  wire.RouterSolicitation
}

// Roles of an interface in router discovery.
const (
	routerless int32 = iota // messages are ignored
	routerHost              // advertisements are processed
	routerSelf              // solicitations are answered
)

// autoconfigured is the state of an interface that processes router advertisements.
type autoconfigured struct {
	host    *autoconf.Host
	held    autoconf.Setup      // the configuration applied last
	ours    []netip.Prefix      // addresses that it has added; others were configured before
	waiting []chan netip.Prefix // one per waiting call of Autoconfigure; capacity 1, sent to once
}

// advertising is the state of an interface that is a router.
type advertising struct {
	router        *autoconf.Router
	advertisement wire.RouterAdvertisement
}

// learned is the configuration of an interface from routers and DHCPv6, published in tables.
type learned struct {
	deprecated  []netip.Addr                // deprecated addresses of the interface
	advertisers map[netip.Addr][]netip.Addr // routers that advertise the prefix of an address
	routes      []autoconf.Route            // routes through routers that answer
	dns         []netip.Addr                // DNS servers; link-local addresses have a zone
	mtu         int                         // IPv6 MTU in bytes; 0: the interface's
	hopLimit    uint8                       // IPv6 hop limit; 0: not advertised
}

// Autoconfigure starts to configure addresses, routes and name servers from router
// advertisements, and keeps them up to date until the interface is closed (RFC 4861,
// 4862, 4191, 8106). It also uses DHCPv6 if routers advertise that (RFC 8415). It returns
// the first usable address. If ctx ends first, it returns an error and the configuration
// continues in the background. Errors: ErrFamily without IPv6 or if the link is not
// Ethernet, ErrInvalid for an interface that is a router, ErrClosed.
func (i *Interface) Autoconfigure(ctx context.Context) (netip.Prefix, error) {
	switch {
	case !i.ipv6 || i.medium != link.Ethernet:
		return netip.Prefix{}, ErrFamily
	case !i.routing.CompareAndSwap(routerless, routerHost) && i.routing.Load() != routerHost:
		return netip.Prefix{}, ErrInvalid
	}
	got := make(chan netip.Prefix, 1)
	i.post(func(l *ifaceLoop) { l.startAutoconf(got) })
	select {
	case p := <-got:
		return p, nil
	case <-ctx.Done():
		i.post(func(l *ifaceLoop) { l.auto.waiting = removeOne(l.auto.waiting, got) })
		return netip.Prefix{}, context.Cause(ctx)
	case <-i.ended:
		return netip.Prefix{}, ErrClosed
	}
}

// Advertise makes the interface a router for its link, which advertises a until the
// interface is closed. The link-layer address in a is filled in. Errors: ErrFamily
// without IPv6 or if the link is not Ethernet, ErrInvalid if the interface already has a
// role in router discovery.
func (i *Interface) Advertise(a wire.RouterAdvertisement) error {
	switch {
	case !i.ipv6 || i.medium != link.Ethernet:
		return ErrFamily
	case !i.routing.CompareAndSwap(routerless, routerSelf):
		return ErrInvalid
	}
	a.LinkAddr = i.mac
	i.post(func(l *ifaceLoop) {
		l.ndp.SetRouter()
		l.join(netip.IPv6LinkLocalAllRouters())
		l.advertised = &advertising{advertisement: a}
		l.linkLocalReady()
	})
	return nil
}

// startAutoconf starts router discovery unless it is running. The first usable address is
// sent to got.
func (l *ifaceLoop) startAutoconf(got chan netip.Prefix) {
	if l.auto == nil {
		config := autoconf.Config{MAC: l.mac, MTU: l.mtu, Seed: l.stack.seed ^ uint64(l.index)<<16}
		l.auto = &autoconfigured{host: autoconf.NewHost(config)}
		l.linkLocalReady()
	}
	l.auto.waiting = append(l.auto.waiting, got)
	l.answerWaiting()
}

// linkLocalReady starts router discovery once the link-local address is usable.
func (l *ifaceLoop) linkLocalReady() {
	if !l.stack.tables.Load().settled(l.Interface, wire.LinkLocal6(l.mac)) {
		return
	}
	switch {
	case l.auto != nil:
		l.auto.host.Start(l.now)
		l.startDHCPv6(l.auto.held.Link)
	case l.advertised != nil && l.advertised.router == nil:
		l.advertised.router = autoconf.NewRouter(l.now, l.stack.seed^uint64(l.index)<<16)
	}
}

// answerWaiting returns a usable address to waiting calls of Autoconfigure.
func (l *ifaceLoop) answerWaiting() {
	t := l.stack.tables.Load()
	var all []netip.Prefix
	for _, a := range l.auto.held.Addresses {
		all = append(all, a.Prefix)
	}
	for _, p := range append(all, l.dhcp6.addresses()...) {
		if _, ready := t.local[p.Addr()]; !ready {
			continue
		}
		for _, got := range l.auto.waiting {
			got <- p
		}
		l.auto.waiting = nil
		return
	}
}

// receiveRouter processes a message from a receiver.
func (l *ifaceLoop) receiveRouter(m *routerMessage) {
	mac := m.solicitation.LinkAddr
	if m.advertisement != nil {
		mac = m.advertisement.LinkAddr
	}
	if !mac.IsZero() && !m.src.IsUnspecified() { // RFC 4861 sections 6.2.6 and 6.3.4
		l.ndp.Learn(l.now, m.src, mac, neigh.Asked)
	}
	switch {
	case m.advertisement != nil && l.auto != nil:
		l.auto.host.Receive(l.now, m.src, m.advertisement)
	case m.advertisement == nil && l.advertised != nil && l.advertised.router != nil:
		l.advertised.router.Solicited(l.now)
	}
}

// advanceRouters runs the timers of the machines, sends their messages, and applies what
// they have learned.
func (l *ifaceLoop) advanceRouters() {
	if l.auto != nil {
		l.auto.host.Advance(l.now)
		if m, ok := l.auto.host.Poll(l.now); ok {
			l.sendRouterMessage(netip.IPv6LinkLocalAllRouters(), m.Len(), m.Put)
		}
		if u, ok := l.auto.host.Setup(); ok {
			l.setUp(u)
		}
	}
	if r := l.advertised; r != nil && r.router != nil && r.router.Poll(l.now) {
		l.sendRouterMessage(netip.IPv6LinkLocalAllNodes(), r.advertisement.Len(), r.advertisement.Put)
	}
}

func (l *ifaceLoop) routersDeadline() tcp.Time {
	d := tcp.Never
	if l.auto != nil {
		d = l.auto.host.Deadline()
	}
	if l.advertised != nil && l.advertised.router != nil {
		d = min(d, l.advertised.router.Deadline())
	}
	return d
}

// sendRouterMessage sends a message of n bytes from the link-local address to a group.
func (l *ifaceLoop) sendRouterMessage(group netip.Addr, n int, put func([]byte)) {
	f := link.NewFrame(n)
	put(f.Bytes())
	l.sendDiscovery(f, wire.LinkLocal6(l.mac), group, wire.MulticastMAC6(group))
}

// reached reports to the machine whether a neighbour is reachable.
func (l *ifaceLoop) reached(addr netip.Addr, answers bool) {
	if l.auto != nil && addr.Is6() {
		l.auto.host.Reached(addr, answers)
	}
}

// setUp applies a configuration to the interface. Addresses come first, so that there is
// a source address when a route becomes available.
func (l *ifaceLoop) setUp(u autoconf.Setup) {
	a := l.auto
	wanted := func(p netip.Prefix) bool {
		return slices.ContainsFunc(u.Addresses, func(w autoconf.Address) bool { return w.Prefix == p })
	}
	a.ours = slices.DeleteFunc(a.ours, func(p netip.Prefix) bool {
		if wanted(p) {
			return false
		}
		l.stack.RemoveAddress(l.name, p)
		return true
	})
	held := a.held
	a.held = u
	l.ndp.SetTimes(u.Link.Reachable, u.Link.Retransmit)
	for _, w := range u.Addresses {
		if !slices.Contains(a.ours, w.Prefix) && l.stack.AddAddress(l.name, w.Prefix) == nil {
			a.ours = append(a.ours, w.Prefix)
		}
	}
	what := l.learnt()
	before, after := l.learntRoutes(held.Routes), l.learntRoutes(u.Routes)
	l.stack.change(func(t *tables) error {
		t.routes = slices.DeleteFunc(t.routes, func(r Route) bool {
			return slices.Contains(before, r) && !slices.Contains(after, r)
		})
		for _, r := range after {
			if !slices.Contains(t.routes, r) {
				t.routes = append(t.routes, r)
			}
		}
		t.learned[l.index] = what
		return nil
	})
	if !slices.Equal(held.DNS, u.DNS) {
		l.stack.notifyDNS()
	}
	l.answerWaiting()
	l.startDHCPv6(u.Link)
}

// learnt returns the results of autoconfiguration in the form that the routing tables use.
func (l *ifaceLoop) learnt() learned {
	u := &l.auto.held
	what := learned{mtu: u.MTU, hopLimit: u.Link.HopLimit, advertisers: make(map[netip.Addr][]netip.Addr), dns: l.learntServers()}
	for _, w := range u.Addresses {
		what.advertisers[w.Prefix.Addr()] = w.Routers
		if w.Deprecated {
			what.deprecated = append(what.deprecated, w.Prefix.Addr())
		}
	}
	for _, r := range u.Routes {
		if r.Gateway.IsValid() && r.Answers() {
			what.routes = append(what.routes, r)
		}
	}
	if l.dhcp6.client != nil {
		for _, a := range l.dhcp6.client.Addresses() {
			if a.Preferred == 0 {
				what.deprecated = append(what.deprecated, a.Addr)
			}
		}
	}
	return what
}

// learntRoutes converts routes of the machine to routes of the stack.
func (l *ifaceLoop) learntRoutes(list []autoconf.Route) []Route {
	var all []Route
	for _, r := range list {
		all = append(all, Route{Dst: r.Dst, Gateway: r.Gateway, Interface: l.name, Metric: r.Metric})
	}
	return all
}

// receiveRouterMessage validates a router advertisement or solicitation (RFC 4861
// sections 6.1.1 and 6.1.2), and passes it to the interface loop if the interface has the
// matching role.
func (r *receiver) receiveRouterMessage(p *packet) {
	b := p.payload()
	m := routerMessage{src: p.src}
	var err error
	part, role := r.ifc.routing.Load(), routerSelf
	sound := p.ttl == wire.NDHopLimit
	switch wire.ICMPv6Type(b[0]) {
	case wire.ICMPv6RouterSolicitation:
		m.solicitation, err = wire.ParseRouterSolicitation(b)
		sound = sound && (!p.src.IsUnspecified() || m.solicitation.LinkAddr.IsZero())
	case wire.ICMPv6RouterAdvertisement:
		role = routerHost
		sound = sound && p.src.IsLinkLocalUnicast()
		if sound && part == role {
			var a wire.RouterAdvertisement
			a, err = wire.ParseRouterAdvertisement(b)
			m.advertisement = &a
		}
	}
	switch {
	case part != role:
		r.tally.count6(ICMPIgnored)
		return
	case err != nil || !sound:
		r.tally.count6(NDMalformed)
		return
	case !p.frame.ChecksumValid && !wire.ICMPv6ChecksumOK(b, p.src, p.dst):
		r.tally.count6(ICMPChecksum)
		return
	}
	select {
	case r.ifc.routersIn <- m:
	default:
		r.tally.count(NDOverflow)
	}
}
