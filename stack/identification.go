package stack

import (
	"net/netip"

	"loam/wire"
)

// nextID returns the identification of the next IPv4 packet from src to dst.
func (s *Stack) nextID(src, dst netip.Addr, proto wire.Protocol) uint16 {
	return uint16(s.identify(src, dst, proto))
}

// identify returns a 32-bit identification, for either version of IP.
func (s *Stack) identify(src, dst netip.Addr, proto wire.Protocol) uint32 {
	return s.ids.Next(s.now(), src, dst, proto)
}
