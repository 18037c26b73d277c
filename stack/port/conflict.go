package port

import (
	"net/netip"

	"loam/wire"
)

// Options say how far a socket is ready to share its port. The zero value shares
// nothing.
type Options struct {
	ReuseAddr bool   // SO_REUSEADDR
	ReusePort bool   // SO_REUSEPORT
	Owner     uint32 // effective user: strangers do not share by SO_REUSEPORT
	Interface int    // SO_BINDTODEVICE: on this interface only; 0: on all
	V6Only    bool   // IPV6_V6ONLY: the unspecified IPv6 address means IPv6 only
}

// Claim is what one socket wants of a port, or has.
type Claim struct {
	Addr netip.Addr // unspecified: all addresses
	Options
	Listening bool // TCP: takes connections
}

// Conflict reports whether a socket cannot have what it wants since another one
// has what it has, of the same port and protocol. The rules are those of Linux
// (socket(7), ip(7); inet_bind_conflict and udp_lib_lport_inuse in its source):
//
//   - Claims that have no address or no interface in common do not meet.
//   - Both with SO_REUSEPORT and of one user: they share, and so do listeners.
//   - Both with SO_REUSEADDR: they share, but for TCP not while the one that is
//     there listens. So a server can be started again while its old connections
//     end, and cannot steal the connections of one that runs.
//   - Else they conflict.
func Conflict(proto wire.Protocol, want, have Claim) bool {
	if !overlap(want, have) {
		return false
	}
	if want.ReusePort && have.ReusePort && want.Owner == have.Owner {
		return false
	}
	busy := proto == wire.ProtoTCP && have.Listening
	return !want.ReuseAddr || !have.ReuseAddr || busy
}

// overlap reports whether a packet could be for both.
func overlap(a, b Claim) bool {
	if a.Interface != b.Interface && a.Interface != 0 && b.Interface != 0 {
		return false
	}
	switch {
	case a.Addr.Is4() == b.Addr.Is4():
		return a.Addr == b.Addr || a.Addr.IsUnspecified() || b.Addr.IsUnspecified()
	case a.Addr.Is4():
		return b.takesIPv4()
	default:
		return a.takesIPv4()
	}
}

// takesIPv4 reports whether an IPv6 claim is for IPv4 too (RFC 3493 section 5.3).
func (c *Claim) takesIPv4() bool { return c.Addr.IsUnspecified() && !c.V6Only }
