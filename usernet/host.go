package usernet

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// dialTimeout bounds an attempt to connect. The guest's own patience ends
// sooner, as a rule; what it has given up is still tried until then.
const dialTimeout = 30 * time.Second

// dialHost connects from the host.
func dialHost(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
