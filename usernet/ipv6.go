package usernet

import (
	"errors"
	"net/netip"

	"loam/stack"
	"loam/stack/autoconf"
	"loam/wire"
)

// IPv6 for the guest. Its flows end here as those of IPv4 do, and go on from sockets of
// the host; what is different is that the gateway is a router that advertises itself
// (RFC 4861), and that the host may have no IPv6. Then the gateway leads nowhere, which
// the guest knows: it is told "network is unreachable" by its own kernel, at once.

// startIPv6 gives the gateway its addresses of IPv6 and advertises it, where the device
// can carry IPv6.
func (g *Gateway) startIPv6(ifc *stack.Interface) error {
	c := &g.config
	if c.NoIPv6 {
		return nil
	}
	err := g.stack.AddAddress(linkName, netip.PrefixFrom(c.Gateway6, c.Prefix6.Bits()))
	if errors.Is(err, stack.ErrFamily) {
		return nil
	}
	if err == nil {
		err = g.stack.AddAddress(linkName, netip.PrefixFrom(c.DNS6, c.Prefix6.Bits())) // a longer one would be spoken from
	}
	if err == nil {
		err = g.startDNS(c.DNS6)
	}
	if err == nil {
		err = ifc.Advertise(c.advertisement())
	}
	if errors.Is(err, stack.ErrFamily) { // a link without stations, which has no such messages
		return nil
	}
	return err
}

// advertisement is what the gateway says of itself.
func (c *Config) advertisement() wire.RouterAdvertisement {
	const lifetime = uint32(autoconf.DefaultLifetime)
	a := wire.RouterAdvertisement{
		HopLimit: 64,
		Prefixes: []wire.PrefixInfo{{Prefix: c.Prefix6, OnLink: true, Autonomous: true, Valid: lifetime, Preferred: lifetime}},
		DNS:      []wire.DNSServers{{Servers: []netip.Addr{c.DNS6}, Lifetime: lifetime}},
	}
	if c.hostIPv6() {
		a.Lifetime = uint16(lifetime)
	}
	return a
}
