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
