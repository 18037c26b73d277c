// Package match selects Ethernet frames by a list of rules over the fields that steer a frame. The
// receivers of the packet engine apply it to frames that the kernel copied to them. Package
// link/afxdp translates the same rules into a program that runs in the driver, and is tested
// against this package.
package match

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"loam/wire"
)

// Rule matches a frame if every field that is set matches. The zero rule matches every frame.
type Rule struct {
	EtherType wire.EtherType // 0: any. The EtherType of the frame itself, not the one after VLAN tags
	Protocol  wire.Protocol  // protocol in the IPv4 or IPv6 header; IPv6 extension headers are not skipped; 0: any
	Remote    netip.Prefix   // prefix that contains the source address; the zero Prefix: any
	Local     netip.Prefix   // prefix that contains the destination address; the zero Prefix: any
	Ports     Ports          // destination port of TCP or UDP; the zero value: any
	ICMP      ICMP           // message of ICMP or ICMPv6, which Protocol must be set to; the zero value: any message
}

// ICMP selects a kind of ICMP or ICMPv6 message.
type ICMP struct {
	Kind   ICMPKind
	ID     uint16        // identifier of the echo reply, or of the quoted echo request
	Quoted wire.Protocol // protocol of the packet quoted by an error: TCP, UDP, or ICMP or ICMPv6 for echo requests
	Ports  Ports         // source port of the packet quoted by an error
}

// ICMPKind is a kind of ICMP message.
type ICMPKind uint8

// Values of ICMPKind.
const (
	AnyICMP   ICMPKind = iota
	EchoReply          // an echo reply with ID
	Quote              // an error that quotes a packet sent from Rule.Local, with ID or Ports
)

// Errors4 are the types of ICMP messages that quote a packet (RFC 1122 section 3.2.2).
var Errors4 = [...]wire.ICMPv4Type{wire.ICMPv4Unreachable, wire.ICMPv4SourceQuench, wire.ICMPv4Redirect, wire.ICMPv4TimeExceeded, wire.ICMPv4ParamProblem}

// Ports is a range of ports, both ends included.
type Ports struct{ First, Last uint16 }

// Port returns the range that contains only port p.
func Port(p uint16) Ports { return Ports{p, p} }

// Any reports whether frame b matches one of the rules. Without rules, every frame matches.
func Any(rules []Rule, b []byte) bool {
	for i := range rules {
		if rules[i].Agrees(b) {
			return true
		}
	}
	return len(rules) == 0
}

// Offsets in the headers (RFC 791, RFC 8200).
const (
	ipv4Frag, ipv4Proto, ipv4Src, ipv4Dst = 6, 9, 12, 16
	ipv6Next, ipv6Src, ipv6Dst, ipv6Len   = 6, 8, 24, 40
)

// Agrees reports whether Ethernet frame b matches the rule. A frame too short for a field that the
// rule sets does not match.
func (r *Rule) Agrees(b []byte) bool {
	if len(b) < wire.EthernetLen {
		return false
	}
	kind := wire.EtherType(binary.BigEndian.Uint16(b[12:]))
	if r.EtherType != 0 && r.EtherType != kind {
		return false
	}
	if !r.NamesIP() {
		return true
	}
	switch p := b[wire.EthernetLen:]; {
	case kind == wire.TypeIPv4 && len(p) >= wire.IPv4MinLen:
		return r.agrees4(p)
	case kind == wire.TypeIPv6 && len(p) >= ipv6Len:
		return r.agrees6(p)
	}
	return false
}

// NamesIP reports whether the rule matches only IP packets.
func (r *Rule) NamesIP() bool {
	return r.Protocol != 0 || r.Remote.IsValid() || r.Local.IsValid() || r.NamesTransport()
}

// NamesTransport reports whether the rule sets fields of the transport header (TCP, UDP, ICMP).
func (r *Rule) NamesTransport() bool { return r.Ports != Ports{} || r.ICMP.Kind != AnyICMP }

func (r *Rule) agrees4(p []byte) bool {
	src, dst := netip.AddrFrom4([4]byte(p[ipv4Src:])), netip.AddrFrom4([4]byte(p[ipv4Dst:]))
	// Only the first fragment of a packet has ports or an ICMP type, so a later fragment does not match.
	const offset = 0x1fff
	if r.NamesTransport() && binary.BigEndian.Uint16(p[ipv4Frag:])&offset != 0 {
		return false
	}
	return r.agreesIP(wire.Protocol(p[ipv4Proto]), src, dst, p, int(p[0]&15)*4)
}

func (r *Rule) agrees6(p []byte) bool {
	src, dst := netip.AddrFrom16([16]byte(p[ipv6Src:])), netip.AddrFrom16([16]byte(p[ipv6Dst:]))
	return r.agreesIP(wire.Protocol(p[ipv6Next]), src, dst, p, ipv6Len)
}

// agreesIP compares the protocol and the addresses, and then the transport header, at offset transport
// in IP packet p.
func (r *Rule) agreesIP(proto wire.Protocol, src, dst netip.Addr, p []byte, transport int) bool {
	if r.Protocol != 0 && r.Protocol != proto {
		return false
	}
	if r.Remote.IsValid() && !r.Remote.Contains(src) || r.Local.IsValid() && !r.Local.Contains(dst) {
		return false
	}
	if !r.NamesTransport() {
		return true
	}
	if transport < wire.IPv4MinLen || len(p) < transport {
		return false
	}
	return r.agreesPorts(proto, p[transport:]) && r.agreesICMP(proto, p[transport:], src.Is4())
}

func (r *Rule) agreesPorts(proto wire.Protocol, b []byte) bool {
	if r.Ports == (Ports{}) {
		return true
	}
	return (proto == wire.ProtoTCP || proto == wire.ProtoUDP) && len(b) >= 4 && r.Ports.contain(b[2:])
}

// contain reports whether the port in the first two bytes of b is in the range.
func (p Ports) contain(b []byte) bool {
	port := binary.BigEndian.Uint16(b)
	return p.First <= port && port <= p.Last
}

// agreesICMP compares the ICMP message b with r.ICMP.
func (r *Rule) agreesICMP(proto wire.Protocol, b []byte, is4 bool) bool {
	const headerLen = 8
	icmp, reply := wire.ProtoICMPv6, uint8(wire.ICMPv6EchoReply)
	if is4 {
		icmp, reply = wire.ProtoICMP, uint8(wire.ICMPv4EchoReply)
	}
	switch {
	case r.ICMP.Kind == AnyICMP:
		return true
	case proto != icmp || r.Protocol != icmp || len(b) < headerLen:
		return false
	case r.ICMP.Kind == EchoReply:
		return b[0] == reply && r.ICMP.echo(b)
	case is4:
		return slices.Contains(Errors4[:], wire.ICMPv4Type(b[0])) && r.quoted4(b[headerLen:])
	}
	return wire.ICMPv6{Type: wire.ICMPv6Type(b[0])}.IsError() && r.quoted6(b[headerLen:])
}

// echo reports whether the identifier of echo message b is i.ID.
func (i *ICMP) echo(b []byte) bool { return binary.BigEndian.Uint16(b[4:]) == i.ID }

// quotedLen is the number of bytes of the transport header that an error quotes at least (RFC 792).
const quotedLen = 8

// quoted4 reports whether the quoted IPv4 packet p matches. Only packets without IP options match,
// because the packet engine sends none.
func (r *Rule) quoted4(p []byte) bool {
	if len(p) < wire.IPv4MinLen+quotedLen || p[0] != 0x45 || wire.Protocol(p[ipv4Proto]) != r.ICMP.Quoted {
		return false
	}
	return r.from(netip.AddrFrom4([4]byte(p[ipv4Src:])), p[wire.IPv4MinLen:], wire.ProtoICMP, uint8(wire.ICMPv4Echo))
}

func (r *Rule) quoted6(p []byte) bool {
	if len(p) < ipv6Len+quotedLen || p[0]>>4 != 6 || wire.Protocol(p[ipv6Next]) != r.ICMP.Quoted {
		return false
	}
	return r.from(netip.AddrFrom16([16]byte(p[ipv6Src:])), p[ipv6Len:], wire.ProtoICMPv6, uint8(wire.ICMPv6Echo))
}

// from reports whether a quoted packet with source address src and transport header b matches.
func (r *Rule) from(src netip.Addr, b []byte, icmp wire.Protocol, echo uint8) bool {
	if r.Local.IsValid() && !r.Local.Contains(src) {
		return false
	}
	if r.ICMP.Quoted == icmp {
		return b[0] == echo && r.ICMP.echo(b)
	}
	return r.ICMP.Ports.contain(b)
}
