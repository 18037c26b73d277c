package usernet

import "net/netip"

// What the guest's destinations mean on the host. Every flow out of the guest
// passes here once, when it begins.

var (
	limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	thisNetwork      = netip.PrefixFrom(netip.IPv4Unspecified(), 8) // RFC 1122 section 3.2.1.3; Linux takes 0.0.0.0 for itself
)

// reach translates an address that the guest sent to into the one that the host
// is to use. It returns false for what the guest must not reach.
func (c *Config) reach(dst netip.Addr) (netip.Addr, bool) {
	switch {
	case dst == c.Gateway:
		return hostLoopback, c.HostLoopback
	case dst == c.Gateway6:
		return hostLoopback6, c.HostLoopback
	case c.Prefix.Contains(dst), c.Prefix6.Contains(dst): // nobody else is there
	case dst.IsLoopback(), dst.IsMulticast(), dst == limitedBroadcast, thisNetwork.Contains(dst):
	case dst.IsUnspecified(), dst.Is4In6(), dst.Is6() && dst.IsLinkLocalUnicast():
	default:
		return dst, true
	}
	return netip.Addr{}, false
}

// reachPort is reach for an address with a port.
func (c *Config) reachPort(dst netip.AddrPort) (netip.AddrPort, bool) {
	addr, ok := c.reach(dst.Addr())
	return netip.AddrPortFrom(addr, dst.Port()), ok && dst.Port() != 0
}

// deny counts what reach did not let pass. A guest that looks for the host's own
// services is a puzzle to whoever started them, so the log says once what to do.
func (g *Gateway) deny(which Counter, dst netip.Addr) {
	g.tally.count(which)
	if dst == g.config.Gateway || dst == g.config.Gateway6 {
		g.hint.Do(func() {
			g.config.Log.Warn("the guest tried to reach the host's own loopback network, which is not open to it (Config.HostLoopback; loam run --host-loopback)", "address", dst)
		})
	}
}
