package configure

import (
	"net/netip"
	"slices"

	"loam/stack/dhcp"
	"loam/wire"
)

// Route is a route of a lease.
type Route struct {
	Dst     netip.Prefix
	Gateway netip.Addr
	Metric  int // among routes with equal prefixes, the one with the lowest metric is used
	MTU     int // largest packet in bytes; zero: as the interface allows
}

// LeaseLink is an interface that a Lease configures by DHCP.
type LeaseLink interface {
	Addresses
	AddRoute(Route)
	RemoveRoute(Route)
	SetDNS([]netip.Addr)
	// Lost reports that the interface has lost an address, and why.
	Lost(netip.Prefix, dhcp.Reason)
	// SendDHCP sends a message of the DHCP client. last says that the address of the interface is about to be removed.
	SendDHCP(m dhcp.Message, last bool)
}

// Lease keeps the lease of an interface, and configures its addresses, routes and DNS servers.
type Lease struct {
	link    LeaseLink
	client  *dhcp.Client
	waiting []chan<- dhcp.Lease // one channel per call of Await, with capacity 1; the Lease sends to it once
	held    dhcp.Lease          // the configured lease; valid if the field holds is set
	holds   bool
}

// NewLease starts a DHCP client on an interface.
func NewLease(now Time, link LeaseLink, c dhcp.Config) *Lease {
	l := &Lease{link: link, client: dhcp.NewClient(c)}
	l.client.Start(now)
	return l
}

// Await sends the current lease, or else the next one, to the channel got, which has room
// for it.
func (l *Lease) Await(got chan<- dhcp.Lease) {
	if l.holds {
		got <- l.held
		return
	}
	l.waiting = append(l.waiting, got)
}

// Forget undoes Await: the channel got receives no lease.
func (l *Lease) Forget(got chan<- dhcp.Lease) { l.waiting = without(l.waiting, got) }

// Receive processes a message to the client.
func (l *Lease) Receive(now Time, m *wire.DHCPv4) { l.client.Receive(now, m) }

// Advance runs the timers of the DHCP client, sends its message, and applies its events.
func (l *Lease) Advance(now Time) {
	l.client.Tick(now)
	if m, ok := l.client.Poll(); ok {
		l.link.SendDHCP(m, l.client.State() == dhcp.Stopped)
	}
	if e, ok := l.client.NextEvent(); ok {
		l.apply(e)
	}
}

// Deadline returns when to call Advance. l may be nil.
func (l *Lease) Deadline() Time {
	if l == nil {
		return never
	}
	return l.client.Deadline()
}

// Conflict notifies the client that another host uses an address of the interface.
func (l *Lease) Conflict(now Time, addr netip.Addr) {
	if l.holds && l.held.Addr.Addr() == addr {
		l.client.Conflict(now)
	}
}

// Close releases the lease, and ends the client.
func (l *Lease) Close(now Time) {
	l.client.Close(now)
	l.Advance(now)
}

// apply applies an event of the client to the interface.
func (l *Lease) apply(e dhcp.Event) {
	before := routesOf(&l.held)
	if l.holds && (e.Kind == dhcp.Lost || e.Lease.Addr != l.held.Addr) {
		l.link.RemoveAddress(l.held.Addr)
		l.changeRoutes(before, nil)
		l.holds, l.held, before = false, dhcp.Lease{}, nil
	}
	if e.Kind == dhcp.Lost {
		l.link.Lost(e.Lease.Addr, e.Reason)
		return
	}
	if !l.holds {
		l.link.AddAddress(e.Lease.Addr)
	}
	l.changeRoutes(before, routesOf(&e.Lease))
	if len(e.Lease.DNS) > 0 {
		l.link.SetDNS(e.Lease.DNS)
	}
	l.held, l.holds = e.Lease, true
	for _, got := range l.waiting {
		got <- e.Lease
	}
	l.waiting = nil
}

// changeRoutes removes the routes of the first list (before) and adds the routes of the
// second list (after). Routes in both lists are not touched.
func (l *Lease) changeRoutes(before, after []Route) {
	for _, r := range before {
		if !slices.Contains(after, r) {
			l.link.RemoveRoute(r)
		}
	}
	for _, r := range after {
		if !slices.Contains(before, r) {
			l.link.AddRoute(r)
		}
	}
}

// routesOf returns the routes of a lease.
func routesOf(lease *dhcp.Lease) []Route {
	var routes []Route
	for _, r := range lease.Routes {
		routes = append(routes, Route{Dst: r.Dst, Gateway: r.Gateway, MTU: lease.MTU})
	}
	for n, router := range lease.Routers {
		routes = append(routes, Route{Dst: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Gateway: router, Metric: n, MTU: lease.MTU})
	}
	return routes
}
