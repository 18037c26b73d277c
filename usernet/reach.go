package usernet

import "net/netip"

// Translation of destinations that the guest uses to addresses that the host connects to. Every flow of the guest is
// checked once, when it begins.

var (
	limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	thisNetwork      = netip.PrefixFrom(netip.IPv4Unspecified(), 8) // RFC 1122 section 3.2.1.3; Linux treats 0.0.0.0 as the host itself
)

// reach translates a destination that the guest uses to the address that the host connects to. It returns false if the
// guest must not reach the destination.
func (c *Config) reach(dst netip.Addr) (netip.Addr, bool) {
	switch {
	case dst == c.Gateway:
		return hostLoopback, c.HostLoopback
	case dst == c.Gateway6:
		return hostLoopback6, c.HostLoopback
	case c.Prefix.Contains(dst), c.Prefix6.Contains(dst): // the guest's subnets contain no other hosts
	case dst.IsLoopback(), dst.IsMulticast(), dst == limitedBroadcast, thisNetwork.Contains(dst):
	case dst.IsUnspecified(), dst.Is4In6(), dst.Is6() && dst.IsLinkLocalUnicast():
	default:
		return dst, true
	}
	return netip.Addr{}, false
}

// reachPort is like the method reach, for an address with a port. Port 0 is not
// reachable.
func (c *Config) reachPort(dst netip.AddrPort) (netip.AddrPort, bool) {
	addr, ok := c.reach(dst.Addr())
	return netip.AddrPortFrom(addr, dst.Port()), ok && dst.Port() != 0
}

// deny counts a destination that reach has rejected. The user may not know why the guest cannot reach services of the
// host. So the first such attempt is logged, with advice.
func (g *Gateway) deny(which Counter, dst netip.Addr) {
	g.tally.count(which)
	if dst == g.config.Gateway || dst == g.config.Gateway6 {
		g.hint.Do(func() {
			g.config.Log.Warn("the guest tried to reach the host's own loopback network, which is not open to it (Config.HostLoopback; loam run --host-loopback)", "address", dst)
		})
	}
}
