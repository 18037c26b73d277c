package icmp

import "loam/wire"

// Kind is what an ICMP error means for the socket that sent the packet which it
// is about. There is one for each error that a Linux program can tell apart, and
// whether it is final, as in the table icmp_err_convert of its ipv4/icmp.c; the
// names of errors are the business of those who know what program asks.
type Kind uint8

// Kinds, with the error that Linux gives for each.
const (
	Ignored             Kind = iota // none: source quench (RFC 6633), redirects, unknown codes
	NetUnreachable                  // ENETUNREACH
	HostUnreachable                 // EHOSTUNREACH
	ProtocolUnreachable             // ENOPROTOOPT
	PortUnreachable                 // ECONNREFUSED
	TooBig                          // EMSGSIZE: fragmentation needed
	SourceRouteFailed               // EOPNOTSUPP
	NetUnknown                      // ENETUNREACH
	HostUnknown                     // EHOSTDOWN
	HostIsolated                    // ENONET
	NetProhibited                   // ENETUNREACH
	Prohibited                      // EHOSTUNREACH: the host, by a filter, or by precedence
	TimeExceeded                    // EHOSTUNREACH: on the way, or in reassembly
	ParameterProblem                // EPROTO
	numKinds
)

// unreachable lists the kinds of the codes of wire.ICMPv4Unreachable.
var unreachable = [...]Kind{
	wire.CodeNetUnreachable:   NetUnreachable,
	wire.CodeHostUnreachable:  HostUnreachable,
	wire.CodeProtoUnreachable: ProtocolUnreachable,
	wire.CodePortUnreachable:  PortUnreachable,
	wire.CodeFragNeeded:       TooBig,
	wire.CodeSourceRoute:      SourceRouteFailed,
	wire.CodeNetUnknown:       NetUnknown,
	wire.CodeHostUnknown:      HostUnknown,
	wire.CodeHostIsolated:     HostIsolated,
	wire.CodeNetProhibited:    NetProhibited,
	wire.CodeHostProhibited:   Prohibited,
	wire.CodeNetTOS:           NetUnreachable,
	wire.CodeHostTOS:          HostUnreachable,
	wire.CodeAdminProhibited:  Prohibited,
	wire.CodePrecedence:       Prohibited,
	wire.CodePrecedenceCutoff: Prohibited,
}

var hard = [numKinds]bool{
	ProtocolUnreachable: true,
	PortUnreachable:     true,
	NetUnknown:          true,
	HostUnknown:         true,
	HostIsolated:        true,
	NetProhibited:       true,
	Prohibited:          true,
	ParameterProblem:    true,
}

// Classify says what an error message means.
func Classify(h wire.ICMPv4) Kind {
	switch h.Type {
	case wire.ICMPv4TimeExceeded:
		return TimeExceeded
	case wire.ICMPv4ParamProblem:
		return ParameterProblem
	case wire.ICMPv4Unreachable:
		if int(h.Code) < len(unreachable) {
			return unreachable[h.Code]
		}
	}
	return Ignored
}

// Hard reports whether the error is final: trying again will not help. A TCP
// connection in its handshake ends by it; one that is established goes on, since
// anybody can send such a message (RFC 5927 section 5.2).
func (k Kind) Hard() bool { return hard[k] }
