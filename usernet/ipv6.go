package usernet

import (
	"errors"
	"net/netip"

	"loam/stack"
	"loam/stack/autoconf"
	"loam/wire"
)

// IPv6 for the guest. As with IPv4, the guest's flows end in the gateway, which continues them from host sockets. There
// are two differences. The gateway is a router that advertises itself (RFC 4861). And the host may have no IPv6: then
// the gateway does not advertise itself as a default router, so that the guest's kernel reports "network is
// unreachable" immediately.

// startIPv6 configures and advertises the gateway's IPv6 addresses. It does nothing if
// the device cannot carry IPv6.
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
		// DNS6 gets a prefix of the same length as Gateway6. With a longer one, it would become the preferred source
		// address.
		err = g.stack.AddAddress(linkName, netip.PrefixFrom(c.DNS6, c.Prefix6.Bits()))
	}
	if err == nil {
		err = g.startDNS(c.DNS6)
	}
	if err == nil {
		err = ifc.Advertise(c.advertisement())
	}
	if errors.Is(err, stack.ErrFamily) { // the link has no link-layer addresses, so there are no router advertisements
		return nil
	}
	return err
}

// advertisement returns the gateway's router advertisement.
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
