package stack

import (
	"context"
	"net/netip"
	"slices"

	"loam/link"
	"loam/stack/autoconf"
	"loam/stack/configure"
	"loam/stack/neigh"
	"loam/stack/tcp"
	"loam/wire"
)

// IPv6 router discovery: an interface that configures itself from router advertisements,
// or that is a router itself. The interface loop runs both: see configure.Auto.

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

// advertising is the state of an interface that is a router.
type advertising struct {
	router        *autoconf.Router
	advertisement wire.RouterAdvertisement
}

// Autoconfigure starts to configure addresses, routes and name servers from router advertisements, and keeps them up to date
// until the interface is closed (RFC 4861, 4862, 4191, 8106). It also uses DHCPv6 if routers advertise that (RFC 8415). It
// returns the first usable address. If ctx ends first, it returns an error and the configuration continues in the background.
// Errors: ErrFamily without IPv6 or if the link is not Ethernet, ErrInvalid for an interface that is a router, ErrClosed.
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
		i.post(func(l *ifaceLoop) { l.auto.Forget(got) })
		return netip.Prefix{}, context.Cause(ctx)
	case <-i.ended:
		return netip.Prefix{}, ErrClosed
	}
}

// Advertise makes the interface a router for its link, which advertises a until the interface is closed. The link-layer
// address in a is filled in. Errors: ErrFamily without IPv6 or if the link is not Ethernet, ErrInvalid if the interface
// already has a role in router discovery.
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

// startAutoconf starts router discovery unless it is running. The first usable address is sent to the channel got.
func (l *ifaceLoop) startAutoconf(got chan netip.Prefix) {
	if l.auto == nil {
		config := autoconf.Config{MAC: l.mac, MTU: l.mtu, Seed: l.stack.seed ^ uint64(l.index)<<16}
		l.auto = configure.NewAuto(configured{l}, config, newRandom)
		l.linkLocalReady()
	}
	l.auto.Await(got)
}

// linkLocalReady starts router discovery once the link-local address is usable.
func (l *ifaceLoop) linkLocalReady() {
	switch {
	case !(configured{l}).Settled():
	case l.auto != nil:
		l.auto.Start(l.now)
	case l.advertised != nil && l.advertised.router == nil:
		l.advertised.router = autoconf.NewRouter(l.now, l.stack.seed^uint64(l.index)<<16)
	}
}

// receiveRouter processes a message from a receiver.
func (l *ifaceLoop) receiveRouter(m *routerMessage) {
	mac := m.solicitation.LinkAddr
	if m.advertisement != nil {
		mac = m.advertisement.LinkAddr
	}
	if !mac.IsZero() && !m.src.IsUnspecified() { // the message names the sender's link-layer address (RFC 4861 sections 6.2.6 and 6.3.4)
		l.ndp.Learn(l.now, m.src, mac, neigh.Asked)
	}
	switch {
	case m.advertisement != nil && l.auto != nil:
		l.auto.Receive(l.now, m.src, m.advertisement)
	case m.advertisement == nil && l.advertised != nil && l.advertised.router != nil:
		l.advertised.router.Solicited(l.now)
	}
}

// advanceRouters runs the timers of router discovery and sends its messages.
func (l *ifaceLoop) advanceRouters() {
	if l.auto != nil {
		l.auto.Advance(l.now)
	}
	if r := l.advertised; r != nil && r.router != nil && r.router.Poll(l.now) {
		l.sendRouterMessage(netip.IPv6LinkLocalAllNodes(), r.advertisement.Len(), r.advertisement.Put)
	}
	if l.auto != nil {
		l.auto.AdvanceDHCPv6(l.now)
	}
}

func (l *ifaceLoop) routersDeadline() tcp.Time {
	if l.advertised != nil && l.advertised.router != nil {
		return l.advertised.router.Deadline() // an interface that is a router does not configure itself, so auto has no deadline
	}
	return l.auto.Deadline()
}

// sendRouterMessage sends a message of n bytes from the link-local address to a group.
func (l *ifaceLoop) sendRouterMessage(group netip.Addr, n int, put func([]byte)) {
	f := link.NewFrame(n)
	put(f.Bytes())
	l.sendDiscovery(f, wire.LinkLocal6(l.mac), group, wire.MulticastMAC6(group))
}

// reached informs autoconfiguration, which selects routers, whether a neighbour is reachable.
func (l *ifaceLoop) reached(addr netip.Addr, answers bool) {
	if l.auto != nil && addr.Is6() {
		l.auto.Reached(addr, answers)
	}
}

// Settled implements configure.AutoLink.
func (c configured) Settled() bool {
	return c.l.stack.tables.Load().settled(c.l.Interface, wire.LinkLocal6(c.l.mac))
}

// Usable implements configure.AutoLink.
func (c configured) Usable(addr netip.Addr) bool {
	_, ready := c.l.stack.tables.Load().local[addr]
	return ready
}

// Scoped implements configure.AutoLink.
func (c configured) Scoped(addr netip.Addr) netip.Addr { return c.l.scoped(addr) }

// SetTimes implements configure.AutoLink.
func (c configured) SetTimes(said autoconf.Link) { c.l.ndp.SetTimes(said.Reachable, said.Retransmit) }

// Publish implements configure.AutoLink.
func (c configured) Publish(what configure.Learned, was, is []autoconf.Route) {
	before, after := c.routes(was), c.routes(is)
	c.l.stack.change(func(t *tables) error {
		t.routes = slices.DeleteFunc(t.routes, func(r Route) bool {
			return slices.Contains(before, r) && !slices.Contains(after, r)
		})
		for _, r := range after {
			if !slices.Contains(t.routes, r) {
				t.routes = append(t.routes, r)
			}
		}
		t.learned[c.l.index] = what
		return nil
	})
}

// routes converts routes of package autoconf to routes of the stack.
func (c configured) routes(list []autoconf.Route) []Route {
	var all []Route
	for _, r := range list {
		all = append(all, Route{Dst: r.Dst, Gateway: r.Gateway, Interface: c.l.name, Metric: r.Metric})
	}
	return all
}

// NotifyDNS implements configure.AutoLink.
func (c configured) NotifyDNS() { c.l.stack.notifyDNS() }

// SendSolicitation implements configure.AutoLink.
func (c configured) SendSolicitation(m wire.RouterSolicitation) {
	c.l.sendRouterMessage(netip.IPv6LinkLocalAllRouters(), m.Len(), m.Put)
}

// ExpectDHCPv6 implements configure.AutoLink.
func (c configured) ExpectDHCPv6() { c.l.asking6.Store(true) }

// receiveRouterMessage validates a router advertisement or solicitation (RFC 4861 sections 6.1.1 and 6.1.2), and passes it to
// the interface loop if the interface has the matching role.
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
