package configure

import (
	"math/rand/v2"
	"net/netip"

	"loam/stack/dhcp"
	"loam/wire"
)

// DHCPv6. If routers advertise that addresses are available by DHCPv6 (flag M), the
// interface requests an address and name servers. If they advertise only
// other information (flag O), it requests name servers alone.

// dhcpv6 is the DHCPv6 state of an interface.
type dhcpv6 struct {
	mac    wire.MAC
	random func() *rand.Rand
	client *dhcp.Client6  // the DHCPv6 client; nil: routers have not advertised addresses
	inform *dhcp.Inform   // nil: routers have not advertised other information alone
	ours   []netip.Prefix // addresses of the client that were not configured before
}

// startDHCPv6 starts to request what routers advertise, as soon as the link-local address is usable.
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

// ReceiveDHCPv6 processes a message that arrived at the port of DHCPv6 clients.
func (a *Auto) ReceiveDHCPv6(now Time, m *wire.DHCPv6) {
	if a.dhcp.client != nil {
		a.dhcp.client.Receive(now, m)
	}
	if a.dhcp.inform != nil && a.dhcp.inform.Receive(now, m) {
		a.publish()
	}
}

// configureDHCPv6 applies the addresses that the client has obtained to the interface. If the server has no addresses, it
// requests other information.
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

// publish publishes what the interface has learned, and reports that the DNS servers may have changed.
func (a *Auto) publish() {
	a.link.Publish(a.learned(), nil, nil)
	a.link.NotifyDNS()
}

// ReleaseDHCPv6 releases the addresses and ends the requests for addresses.
func (a *Auto) ReleaseDHCPv6(now Time) {
	if a.dhcp.client == nil {
		return
	}
	if m, ok := a.dhcp.client.Close(); ok {
		a.link.SendDHCPv6(&m)
	}
	a.AdvanceDHCPv6(now)
}

func (d *dhcpv6) deadline() Time {
	at := never
	if d.client != nil {
		at = d.client.Deadline()
	}
	if d.inform != nil {
		at = min(at, d.inform.Deadline())
	}
	return at
}

// addresses returns the client's addresses, each as a /128. Only router advertisements
// say which other addresses are on the link (RFC 5942 section 4).
func (d *dhcpv6) addresses() (list []netip.Prefix) {
	if d.client != nil {
		for _, a := range d.client.Addresses() {
			list = append(list, netip.PrefixFrom(a.Addr, a.Addr.BitLen()))
		}
	}
	return list
}

// deprecated returns the client's deprecated addresses.
func (d *dhcpv6) deprecated() (list []netip.Addr) {
	if d.client != nil {
		for _, a := range d.client.Addresses() {
			if a.Preferred == 0 {
				list = append(list, a.Addr)
			}
		}
	}
	return list
}

// servers returns the name servers of both clients.
func (d *dhcpv6) servers() (list []netip.Addr) {
	if d.client != nil {
		list = append(list, d.client.Servers()...)
	}
	if d.inform != nil {
		list = append(list, d.inform.Servers()...)
	}
	return list
}
