package icmp

import "loam/wire"

// unreachable6 maps the codes of wire.ICMPv6Unreachable (RFC 4443 section 3.1) to kinds, as in Linux's
// tab_unreach. Linux reports EACCES for policy and rejected routes.
var unreachable6 = [...]Kind{
	NetUnreachable,  // code 0: no route to the destination
	Prohibited,      // code 1: administratively prohibited
	HostUnreachable, // code 2: beyond the scope of the source address
	HostUnreachable, // code 3: address unreachable
	PortUnreachable,
	Prohibited, // code 5: the source address failed a policy
	Prohibited, // code 6: the route rejects packets
}

// Classify6 returns the kind of an ICMPv6 error.
func Classify6(h wire.ICMPv6) Kind {
	switch h.Type {
	case wire.ICMPv6PacketTooBig:
		return TooBig
	case wire.ICMPv6TimeExceeded:
		return TimeExceeded
	case wire.ICMPv6ParamProblem:
		return ParameterProblem
	case wire.ICMPv6Unreachable:
		if int(h.Code) < len(unreachable6) {
			return unreachable6[h.Code]
		}
	}
	return Ignored
}
