package icmp

import "loam/wire"

// Kind is what an ICMP error means for the socket that sent the packet it is
// about. Linux's icmp_err_convert draws the same lines.
type Kind uint8

// Kinds.
const (
	Ignored             Kind = iota // source quench (RFC 6633), redirects, unknown codes
	NetUnreachable                  //
	HostUnreachable                 //
	ProtocolUnreachable             //
	PortUnreachable                 //
	TooBig                          // fragmentation needed
	Prohibited                      // by an administrator, by a filter
	TimeExceeded                    // on the way or in reassembly
	ParameterProblem                //
)

// Hard reports whether the error is final: trying again will not help. A TCP
// connection in its handshake ends by it; what is established goes on, since
// anybody can send such a message (RFC 5927 section 5.2).
func (k Kind) Hard() bool {
	return k == ProtocolUnreachable || k == PortUnreachable || k == Prohibited
}

// Classify says what an error message means.
func Classify(h wire.ICMPv4) Kind {
	switch h.Type {
	case wire.ICMPv4TimeExceeded:
		return TimeExceeded
	case wire.ICMPv4ParamProblem:
		return ParameterProblem
	case wire.ICMPv4Unreachable:
		return classifyUnreachable(h.Code)
	}
	return Ignored
}

// The codes that RFC 1122 section 3.2.2.1 adds to those that wire names.
const (
	codeSourceRouteFailed = 5
	codeNetUnknown        = 6
	codeHostUnknown       = 7
	codeHostIsolated      = 8
	codeNetTOS            = 11
	codeHostTOS           = 12
	codePrecedence        = 14
	codeCutoff            = 15
)

func classifyUnreachable(code uint8) Kind {
	switch code {
	case wire.CodeNetUnreachable, codeNetUnknown, codeNetTOS:
		return NetUnreachable
	case wire.CodeHostUnreachable, codeHostUnknown, codeHostIsolated, codeHostTOS, codeSourceRouteFailed:
		return HostUnreachable
	case wire.CodeProtoUnreachable:
		return ProtocolUnreachable
	case wire.CodePortUnreachable:
		return PortUnreachable
	case wire.CodeFragNeeded:
		return TooBig
	case wire.CodeNetProhibited, wire.CodeHostProhibited, wire.CodeAdminProhibited, codePrecedence, codeCutoff:
		return Prohibited
	}
	return Ignored
}
