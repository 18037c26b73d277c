package icmp

import (
	"encoding/binary"
	"net/netip"

	"loam/wire"
)

// Quote is what an ICMP error says of the packet that it is about: the front of
// that packet, which is all that an error carries of it.
type Quote struct {
	Protocol         wire.Protocol
	Src, Dst         netip.Addr // of the packet: Src is the host that the error is for
	SrcPort, DstPort uint16     // TCP and UDP
	Seq              uint32     // TCP
	EchoID, EchoSeq  uint16     // ICMP echo
	Length           int        // of the whole packet that was sent, in bytes
}

// quoted is the least of the transport header that an error carries (RFC 792).
const quoted = 8

// ParseQuote reads the packet that an error quotes. It is cut short as a rule,
// so its length field is taken as what it says, not as a bound. False: it is not
// the front of an IPv4 packet, a later fragment, or too short to say whose it is.
func ParseQuote(b []byte) (q Quote, ok bool) {
	if len(b) < wire.IPv4MinLen || b[0]>>4 != 4 {
		return q, false
	}
	headerLen := int(b[0]&0xf) * 4
	fragOffset := binary.BigEndian.Uint16(b[6:]) & 0x1fff
	if headerLen < wire.IPv4MinLen || len(b) < headerLen+quoted || fragOffset != 0 {
		return q, false
	}
	q = Quote{
		Protocol: wire.Protocol(b[9]),
		Src:      netip.AddrFrom4([4]byte(b[12:16])),
		Dst:      netip.AddrFrom4([4]byte(b[16:20])),
		Length:   int(binary.BigEndian.Uint16(b[2:])),
	}
	t := b[headerLen:]
	switch q.Protocol {
	case wire.ProtoTCP:
		q.SrcPort, q.DstPort = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
		q.Seq = binary.BigEndian.Uint32(t[4:])
	case wire.ProtoUDP:
		q.SrcPort, q.DstPort = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	case wire.ProtoICMP:
		if wire.ICMPv4Type(t[0]) != wire.ICMPv4Echo {
			return q, false
		}
		q.EchoID, q.EchoSeq = binary.BigEndian.Uint16(t[4:]), binary.BigEndian.Uint16(t[6:])
	}
	return q, true
}

// MaxError is the longest error packet, IP header included (RFC 1812 section
// 4.3.2.3).
const MaxError = 576

// Answerable decides whether an error may be sent about the packet b (RFC 1122
// section 3.2.2, RFC 1812 section 4.3.2.7), whose header has been checked, and
// returns that header and how much of the packet the error quotes. That the
// packet was not sent to a link-layer broadcast is for the caller to know.
func Answerable(b []byte) (about wire.IPv4, quote []byte, ok bool) {
	h, payload, err := wire.ParseIPv4(b)
	switch {
	case err != nil:
		return h, nil, false
	case h.FragOffset != 0:
		return h, nil, false
	case !oneHost(h.Src), h.Dst.IsMulticast(), h.Dst == limitedBroadcast:
		return h, nil, false
	}
	if h.Protocol == wire.ProtoICMP {
		if m, _, err := wire.ParseICMPv4(payload); err != nil || m.IsError() {
			return h, nil, false
		}
	}
	const room = MaxError - wire.IPv4MinLen - wire.ICMPv4Len
	return h, b[:min(len(b), room, h.Len()+h.PayloadLen)], true
}

var limitedBroadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// oneHost reports whether a is the address of a single host.
func oneHost(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && a != limitedBroadcast
}
