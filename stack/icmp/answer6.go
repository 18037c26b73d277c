package icmp

import (
	"net/netip"

	"loam/wire"
)

// maxQuote6 is the maximum size of the quoted packet in an error in bytes: an error fits into the minimum MTU of IPv6 (RFC
// 4443 section 3.1).
const maxQuote6 = 1280 - wire.IPv6Len - wire.ICMPv6Len

// Answerable6 is Answerable for IPv6, by RFC 4443 section 2.4 (e). No error is sent about
//
//   - an ICMPv6 error, or a redirect;
//   - a packet to a multicast address, unless toMany is set: "packet too big" and
//     "unrecognized option" are also sent about multicast packets;
//   - a fragment other than the first, since its protocol is unknown;
//   - a packet whose source is not a single host, or a packet from a loopback
//     address to another address.
func Answerable6(b []byte, toMany bool) (about wire.IPv6, quote []byte, ok bool) {
	h, payload, err := wire.ParseIPv6(b)
	if err != nil || !oneHost6(h.Src) || h.Dst.IsMulticast() && !toMany || h.Src.IsLoopback() && !h.Dst.IsLoopback() {
		return h, nil, false
	}
	proto, rest, later, ok := wire.SkipIPv6Ext(h.NextHeader, payload)
	if later || ok && proto == wire.ProtoICMPv6 && !isQuery6(rest) {
		return h, nil, false
	}
	return h, b[:min(wire.IPv6Len+h.PayloadLen, maxQuote6)], true
}

func oneHost6(a netip.Addr) bool { return !a.IsUnspecified() && !a.IsMulticast() }

// isQuery6 reports whether an ICMPv6 message is certainly neither an error nor a redirect.
func isQuery6(b []byte) bool {
	h, _, err := wire.ParseICMPv6(b)
	return err == nil && !h.IsError() && h.Type != wire.ICMPv6Redirect
}
