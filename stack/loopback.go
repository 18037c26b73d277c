package stack

import (
	"net/netip"

	"loam/link/loop"
)

// loopbackPrefix is the address of this host on every host (RFC 1122 section
// 3.2.1.3).
var loopbackPrefix = netip.MustParsePrefix("127.0.0.1/8")

// loopbackPrefix6 is the same of IPv6 (RFC 4291 section 2.5.3).
var loopbackPrefix6 = netip.MustParsePrefix("::1/128")

// attachLoopback makes "lo", the first interface. What is sent through it comes
// back, large segments and unfinished checksums included.
func (s *Stack) attachLoopback() {
	dev := loop.New(loop.Config{Name: "lo"})
	if _, err := s.attach(dev, InterfaceConfig{Name: "lo", MTU: dev.Info().MTU}, true); err != nil {
		panic("stack: no loopback: " + err.Error())
	}
	for _, p := range []netip.Prefix{loopbackPrefix, loopbackPrefix6} {
		if p.Addr().Is6() && s.config.NoIPv6 {
			continue
		}
		if err := s.AddAddress("lo", p); err != nil {
			panic("stack: no loopback: " + err.Error())
		}
	}
}
