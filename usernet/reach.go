package usernet

import "net/netip"

// Translation of the guest's destinations to addresses of the host. Every flow of the
// guest is checked here once, when it begins.

var (
	limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	thisNetwork      = netip.PrefixFrom(netip.IPv4Unspecified(), 8) // RFC 1122 section 3.2.1.3; Linux treats 0.0.0.0 as the host itself
)

// reach translates a destination of the guest to the address that the host connects to.
// It returns false if the guest must not reach it.
func (c *Config) reach(dst netip.Addr) (netip.Addr, bool) {
	switch {
	case dst == c.Gateway:
		return hostLoopback, c.HostLoopback
	case dst == c.Gateway6:
		return hostLoopback6, c.HostLoopback
	case c.Prefix.Contains(dst), c.Prefix6.Contains(dst): // no other hosts exist in the guest's subnets
	case dst.IsLoopback(), dst.IsMulticast(), dst == limitedBroadcast, thisNetwork.Contains(dst):
	case dst.IsUnspecified(), dst.Is4In6(), dst.Is6() && dst.IsLinkLocalUnicast():
	default:
		return dst, true
	}
	return netip.Addr{}, false
}

// reachPort is reach for an address with a port. Port 0 is not reachable.
func (c *Config) reachPort(dst netip.AddrPort) (netip.AddrPort, bool) {
	addr, ok := c.reach(dst.Addr())
	return netip.AddrPortFrom(addr, dst.Port()), ok && dst.Port() != 0
}

// deny counts a destination that reach has rejected. A user may not understand why the
// guest cannot reach services of the host, so the first such attempt is logged with the
// remedy.
func (g *Gateway) deny(which Counter, dst netip.Addr) {
	g.tally.count(which)
	if dst == g.config.Gateway || dst == g.config.Gateway6 {
		g.hint.Do(func() {
			g.config.Log.Warn("the guest tried to reach the host's own loopback network, which is not open to it (Config.HostLoopback; loam run --host-loopback)", "address", dst)
		})
	}
}
