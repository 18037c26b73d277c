package icmp

import (
	"testing"

	"loam/wire"
)

// The error and the severity for each type and code, as in Linux's table icmp_err_convert and in RFC 1122 section
// 4.2.3.9.
func TestClassify(t *testing.T) {
	const soft, hard = false, true
	for _, test := range []struct {
		kind wire.ICMPv4Type
		code uint8
		want Kind
		hard bool
	}{
		{wire.ICMPv4Unreachable, 0, NetUnreachable, soft},
		{wire.ICMPv4Unreachable, 1, HostUnreachable, soft},
		{wire.ICMPv4Unreachable, 2, ProtocolUnreachable, hard},
		{wire.ICMPv4Unreachable, 3, PortUnreachable, hard},
		{wire.ICMPv4Unreachable, 4, TooBig, soft},
		{wire.ICMPv4Unreachable, 5, SourceRouteFailed, soft},
		{wire.ICMPv4Unreachable, 6, NetUnknown, hard},
		{wire.ICMPv4Unreachable, 7, HostUnknown, hard},
		{wire.ICMPv4Unreachable, 8, HostIsolated, hard},
		{wire.ICMPv4Unreachable, 9, NetProhibited, hard},
		{wire.ICMPv4Unreachable, 10, Prohibited, hard},
		{wire.ICMPv4Unreachable, 11, NetUnreachable, soft},
		{wire.ICMPv4Unreachable, 12, HostUnreachable, soft},
		{wire.ICMPv4Unreachable, 13, Prohibited, hard},
		{wire.ICMPv4Unreachable, 14, Prohibited, hard},
		{wire.ICMPv4Unreachable, 15, Prohibited, hard},
		{wire.ICMPv4Unreachable, 16, Ignored, soft},
		{wire.ICMPv4Unreachable, 255, Ignored, soft},
		{wire.ICMPv4TimeExceeded, wire.CodeTTLExceeded, TimeExceeded, soft},
		{wire.ICMPv4TimeExceeded, wire.CodeReassemblyExceeded, TimeExceeded, soft},
		{wire.ICMPv4ParamProblem, 0, ParameterProblem, hard},
		{wire.ICMPv4SourceQuench, 0, Ignored, soft},
		{wire.ICMPv4Redirect, 1, Ignored, soft},
		{wire.ICMPv4Echo, 0, Ignored, soft},
	} {
		got := Classify(wire.ICMPv4{Type: test.kind, Code: test.code})
		if got != test.want || got.Hard() != test.hard {
			t.Errorf("type %d code %d is %d, hard %v; want %d, %v", test.kind, test.code, got, got.Hard(), test.want, test.hard)
		}
	}
}
