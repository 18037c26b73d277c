package usernet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// dialTimeout bounds an attempt to connect. The guest's own patience ends
// sooner, as a rule; what it has given up is still tried until then.
const dialTimeout = 30 * time.Second

// HostHasIPv6 reports whether this host has an address of IPv6 that is known beyond one
// link: without one, nobody can be reached by IPv6 but the host itself.
func HostHasIPv6() bool {
	list, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(list, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() == nil && n.IP.IsGlobalUnicast()
	})
}

// dialHost connects from the host.
func dialHost(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
