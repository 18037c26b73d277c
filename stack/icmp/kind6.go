package icmp

import "loam/wire"

// unreachable6 lists the kinds of the codes of wire.ICMPv6Unreachable (RFC 4443
// section 3.1), as Linux's tab_unreach has them; policy and rejected routes are
// EACCES there.
var unreachable6 = [...]Kind{
	NetUnreachable,  // no route
	Prohibited,      // by an administrator
	HostUnreachable, // beyond the scope of the source address
	HostUnreachable, // address
	PortUnreachable,
	Prohibited, // the source address failed a policy
	Prohibited, // the route is to be rejected
}

// Classify6 says what an error message of ICMPv6 means.
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
