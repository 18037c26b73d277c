package usernet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"
)

// dialTimeout is the maximum duration of a connection attempt to the outside. The guest usually gives up earlier, but
// the attempt continues.
const dialTimeout = 30 * time.Second

// HostHasIPv6 reports whether this host has a global unicast IPv6 address. Without one,
// no other host is reachable over IPv6.
func HostHasIPv6() bool {
	list, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(list, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.To4() == nil && n.IP.IsGlobalUnicast()
	})
}

// dialHost opens a TCP connection from the host to an address.
func dialHost(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
