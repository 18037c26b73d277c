package configure

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"loam/stack/autoconf"
	"loam/stack/dhcp"
	"loam/wire"
)

// Learned is the configuration of an interface from routers and DHCPv6, in the form that routing tables use.
type Learned struct {
	Deprecated  []netip.Addr                // deprecated addresses of the interface
	Advertisers map[netip.Addr][]netip.Addr // routers that advertise the prefix of an address
	Routes      []autoconf.Route            // routes through routers that answer
	DNS         []netip.Addr                // DNS servers; link-local addresses have a zone
	MTU         int                         // largest IPv6 packet in bytes; 0: as the interface allows
	HopLimit    uint8                       // hop limit of IPv6 packets; 0: routers have not advertised one
}

// AutoLink is an interface that configures itself from router advertisements and DHCPv6.
type AutoLink interface {
	Addresses
	// Settled reports whether the link-local address is usable, and Usable whether packets to an address are accepted.
	Settled() bool
	Usable(netip.Addr) bool
	// Scoped returns an address with the interface as its zone, if it is valid on the link only.
	Scoped(netip.Addr) netip.Addr
	// SetTimes sets the times of Neighbor Discovery.
	SetTimes(autoconf.Link)
	// Publish publishes what the interface has learned, and replaces routes in the same step.
	Publish(l Learned, before, after []autoconf.Route)
	// NotifyDNS reports that the DNS servers may have changed.
	NotifyDNS()
	// SendSolicitation sends a message to all routers, and SendDHCPv6 one to all DHCP servers.
	SendSolicitation(wire.RouterSolicitation)
	SendDHCPv6(*wire.DHCPv6)
	// ExpectDHCPv6 is called before the first message to DHCP servers.
	ExpectDHCPv6()
}

// Auto keeps an interface configured from router advertisements (RFC 4861, 4862, 4191, 8106), and from DHCPv6 if routers
// advertise that.
type Auto struct {
	link    AutoLink
	host    *autoconf.Host
	held    autoconf.Setup        // the configuration applied last
	ours    []netip.Prefix        // addresses that this Auto has added; others were configured before
	waiting []chan<- netip.Prefix // one channel per call of Await, with capacity 1; the Auto sends to it once
	dhcp    dhcpv6
}

// NewAuto returns a configuration that begins with Start. random returns sources of random numbers, for router
// discovery and for DHCPv6.
func NewAuto(link AutoLink, c autoconf.Config, random func() *rand.Rand) *Auto {
	return &Auto{link: link, host: autoconf.NewHost(c), dhcp: dhcpv6{mac: c.MAC, random: random}}
}

// Start starts router discovery. The link-local address must be usable.
func (a *Auto) Start(now Time) {
	a.host.Start(now)
	a.startDHCPv6(now)
}

// Await sends the first usable address to the channel got, which has room for it.
func (a *Auto) Await(got chan<- netip.Prefix) {
	a.waiting = append(a.waiting, got)
	a.Answer()
}

// Forget undoes Await: the channel got receives no address.
func (a *Auto) Forget(got chan<- netip.Prefix) { a.waiting = without(a.waiting, got) }

// Answer sends a usable address to calls that wait for one. It is called when an address has become usable.
func (a *Auto) Answer() {
	var all []netip.Prefix
	for _, w := range a.held.Addresses {
		all = append(all, w.Prefix)
	}
	for _, p := range append(all, a.dhcp.addresses()...) {
		if !a.link.Usable(p.Addr()) {
			continue
		}
		for _, got := range a.waiting {
			got <- p
		}
		a.waiting = nil
		return
	}
}

// Receive processes a router advertisement from the address src.
func (a *Auto) Receive(now Time, src netip.Addr, m *wire.RouterAdvertisement) {
	a.host.Receive(now, src, m)
}

// Reached records whether a neighbour is reachable.
func (a *Auto) Reached(addr netip.Addr, answers bool) { a.host.Reached(addr, answers) }

// NotRouter reports that a neighbour is not, or no longer, a router.
func (a *Auto) NotRouter(now Time, addr netip.Addr) { a.host.NotRouter(now, addr) }

// Refused reports that another host uses an address of the interface, which has therefore been removed.
func (a *Auto) Refused(now Time, addr netip.Addr) {
	a.host.Refused(addr)
	if a.dhcp.client != nil {
		a.dhcp.client.Conflict(now, addr)
	}
}

// Deadline returns when to call Advance and AdvanceDHCPv6. a may be nil.
func (a *Auto) Deadline() Time {
	if a == nil {
		return never
	}
	return min(a.host.Deadline(), a.dhcp.deadline())
}

// Advance runs the timers of router discovery, sends the message that is due, and applies what has been learned from
// routers.
func (a *Auto) Advance(now Time) {
	a.host.Advance(now)
	if m, ok := a.host.Poll(now); ok {
		a.link.SendSolicitation(m)
	}
	if u, ok := a.host.Setup(); ok {
		a.setUp(now, u)
	}
}

// setUp applies a configuration to the interface. Addresses are applied before routes, so that there is a source address
// when a route becomes available.
func (a *Auto) setUp(now Time, u autoconf.Setup) {
	var wanted []netip.Prefix
	for _, w := range u.Addresses {
		wanted = append(wanted, w.Prefix)
	}
	a.ours = removeOthers(a.link, a.ours, wanted)
	held := a.held
	a.held = u
	a.link.SetTimes(u.Link)
	a.ours = addMissing(a.link, a.ours, wanted)
	a.link.Publish(a.learned(), held.Routes, u.Routes)
	if !slices.Equal(held.DNS, u.DNS) {
		a.link.NotifyDNS()
	}
	a.Answer()
	a.startDHCPv6(now)
}

// learned returns what router advertisements and DHCPv6 have supplied so far.
func (a *Auto) learned() Learned {
	u := &a.held
	l := Learned{MTU: u.MTU, HopLimit: u.Link.HopLimit, Advertisers: make(map[netip.Addr][]netip.Addr), DNS: a.servers()}
	for _, w := range u.Addresses {
		l.Advertisers[w.Prefix.Addr()] = w.Routers
		if w.Deprecated {
			l.Deprecated = append(l.Deprecated, w.Prefix.Addr())
		}
	}
	for _, r := range u.Routes {
		if r.Gateway.IsValid() && r.Answers() {
			l.Routes = append(l.Routes, r)
		}
	}
	l.Deprecated = append(l.Deprecated, a.dhcp.deprecated()...)
	return l
}

// servers returns the name servers of DHCPv6, followed by those of router
// advertisements (RFC 8106 section 5.3.1).
func (a *Auto) servers() (all []netip.Addr) {
	for _, server := range append(a.dhcp.servers(), a.held.DNS...) {
		if server = a.link.Scoped(server); !slices.Contains(all, server) {
			all = append(all, server)
		}
	}
	return all
}

// startDHCPv6 starts to request what routers advertise, once the link-local address is
// usable.
func (a *Auto) startDHCPv6(now Time) {
	d, said := &a.dhcp, a.held.Link
	switch {
	case !a.link.Settled():
	case said.Managed && d.client == nil:
		d.client = dhcp.NewClient6(d.mac, d.random())
		d.client.Start(now)
		a.link.ExpectDHCPv6()
	case said.Other && !said.Managed: // a request for addresses includes the rest (RFC 4861 section 4.2)
		a.startInform(now)
	}
}

// startInform starts to request configuration without addresses (RFC 8415 section
// 18.2.6).
func (a *Auto) startInform(now Time) {
	if d := &a.dhcp; d.inform == nil {
		d.inform = dhcp.NewInform(d.mac, d.random())
		d.inform.Start(now)
		a.link.ExpectDHCPv6()
	}
}

// AdvanceDHCPv6 sends the messages of the DHCPv6 clients and applies their results.
func (a *Auto) AdvanceDHCPv6(now Time) {
	if c := a.dhcp.client; c != nil {
		if m, ok := c.Poll(now); ok {
			a.link.SendDHCPv6(&m)
		}
		if c.Changed() {
			a.configureDHCPv6(now)
		}
	}
	if c := a.dhcp.inform; c != nil {
		if m, ok := c.Poll(now); ok {
			a.link.SendDHCPv6(&m)
		}
	}
}

// ReceiveDHCPv6 processes a DHCPv6 message to the client port.
func (a *Auto) ReceiveDHCPv6(now Time, m *wire.DHCPv6) {
	if a.dhcp.client != nil {
		a.dhcp.client.Receive(now, m)
	}
	if a.dhcp.inform != nil && a.dhcp.inform.Receive(now, m) {
		a.publish()
	}
}

// configureDHCPv6 applies the client's addresses to the interface. If the server has
// none, it requests other information.
func (a *Auto) configureDHCPv6(now Time) {
	d := &a.dhcp
	wanted := d.addresses()
	d.ours = addMissing(a.link, removeOthers(a.link, d.ours, wanted), wanted)
	if d.client.None() {
		a.startInform(now)
	}
	a.publish()
	a.Answer()
}

// publish publishes what the interface has learned and notifies of the new DNS
// servers.
func (a *Auto) publish() {
	a.link.Publish(a.learned(), nil, nil)
	a.link.NotifyDNS()
}

// ReleaseDHCPv6 releases the addresses and stops requesting them.
func (a *Auto) ReleaseDHCPv6(now Time) {
	if a.dhcp.client == nil {
		return
	}
	if m, ok := a.dhcp.client.Close(); ok {
		a.link.SendDHCPv6(&m)
	}
	a.AdvanceDHCPv6(now)
}
