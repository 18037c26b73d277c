package icmp

import "loam/wire"

// Kind is the meaning of an ICMP error for the socket that sent the packet. There is one Kind for each error
// that a Linux program can distinguish, including whether it is fatal, as in the table icmp_err_convert of
// Linux's ipv4/icmp.c. The caller maps a Kind to an error number.
type Kind uint8

// Kinds of errors. The comment of each starts with the error number that Linux returns to a program.
const (
	Ignored             Kind = iota // not an error for a program: source quench (RFC 6633), redirects, unknown codes
	NetUnreachable                  // ENETUNREACH
	HostUnreachable                 // EHOSTUNREACH
	ProtocolUnreachable             // ENOPROTOOPT
	PortUnreachable                 // ECONNREFUSED
	TooBig                          // EMSGSIZE: the packet exceeds the MTU
	SourceRouteFailed               // EOPNOTSUPP
	NetUnknown                      // ENETUNREACH
	HostUnknown                     // EHOSTDOWN
	HostIsolated                    // ENONET
	NetProhibited                   // ENETUNREACH
	Prohibited                      // EHOSTUNREACH: prohibited by the host, a filter, or precedence
	TimeExceeded                    // EHOSTUNREACH: the time to live or the time for reassembly has expired
	ParameterProblem                // EPROTO
	numKinds
)

// unreachable maps the codes of wire.ICMPv4Unreachable to kinds.
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

// Classify returns the kind of an ICMP error.
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

// Hard reports whether the error is fatal, so that retrying will not help. It ends a TCP connection in its
// handshake. An established connection continues, since anyone can send such a message (RFC 5927 section
// 5.2).
func (k Kind) Hard() bool { return hard[k] }
