package icmp

import (
	"net/netip"

	"loam/wire"
)

// MaxError is the maximum size of an error packet in bytes, including its IP header (RFC 1812 section
// 4.3.2.3: "as much of the original datagram as possible" within that).
const MaxError = 576

const maxQuote = MaxError - wire.IPv4MinLen - wire.ICMPv4Len

// Answerable reports whether an error may be sent about the packet b, which may be followed by padding. It
// returns the header of b and the part of b that the error quotes.
//
// No error is sent (RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7) about
//
//   - an ICMP error, or a message that may be one;
//   - a packet to a broadcast or multicast address;
//   - a fragment other than the first;
//   - a packet whose source is not a single host, or a packet from a loopback
//     address to another address.
//
// The caller must also check for link-layer broadcasts and for the broadcast address of a subnet.
func Answerable(b []byte) (about wire.IPv4, quote []byte, ok bool) {
	h, payload, err := wire.ParseIPv4(b)
	switch {
	case err != nil,
		h.FragOffset != 0,
		!oneHost(h.Src),
		!oneHost(h.Dst),
		h.Src.IsLoopback() && !h.Dst.IsLoopback(),
		h.Protocol == wire.ProtoICMP && !isQuery(payload):
		return h, nil, false
	}
	return h, b[:min(h.Len()+h.PayloadLen, maxQuote)], true
}

// oneHost reports whether a can be the address of a single host: not "this network" (RFC 1122 section
// 3.2.1.3), multicast, reserved or broadcast.
func oneHost(a netip.Addr) bool {
	// first octets: 0 is "this network"; 224 and above are multicast, reserved and broadcast addresses
	const thisNetwork, multicast = 0, 224
	first := a.As4()[0]
	return first != thisNetwork && first < multicast
}

// isQuery reports whether an ICMP message is certainly not an error.
func isQuery(b []byte) bool {
	h, _, err := wire.ParseICMPv4(b)
	if err != nil {
		return false
	}
	switch h.Type {
	case wire.ICMPv4Echo, wire.ICMPv4EchoReply, wire.ICMPv4Timestamp, wire.ICMPv4TimestampReply:
		return true
	}
	return false
}
