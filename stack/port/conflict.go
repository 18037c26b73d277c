package port

import (
	"net/netip"

	"loam/wire"
)

// Options determine with which other sockets a socket may share its port. A socket with the zero value shares its port with
// no other socket.
type Options struct {
	ReuseAddr bool   // SO_REUSEADDR
	ReusePort bool   // SO_REUSEPORT
	Owner     uint32 // effective user ID of the program: SO_REUSEPORT shares only between sockets of one user
	Interface int    // SO_BINDTODEVICE: index of the interface; 0: all interfaces
	V6Only    bool   // IPV6_V6ONLY: the unspecified IPv6 address means IPv6 only
}

// Claim describes a socket's use of a port, requested or granted.
type Claim struct {
	Addr netip.Addr // local address; unspecified: all addresses
	Options
	Listening bool // a TCP socket that accepts connections
}

// Conflict reports whether the claim want cannot be granted because another socket has
// the claim have, for the same port and protocol. The rules are those of Linux
// (socket(7), ip(7); inet_bind_conflict and udp_lib_lport_inuse in its source):
//
//   - Claims without a common address or interface do not conflict.
//   - Two claims with SO_REUSEPORT of the same user share the port, even if both listen.
//   - Two claims with SO_REUSEADDR share the port, but for TCP not while the claim have is
//     listening. A server can thus restart while its old connections end, and cannot take
//     over the connections of a running server.
//   - All other claims conflict.
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

// overlap reports whether one packet could belong to both claims.
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

// takesIPv4 reports whether an IPv6 claim also receives IPv4 packets (RFC 3493 section 5.3).
func (c *Claim) takesIPv4() bool { return c.Addr.IsUnspecified() && !c.V6Only }
