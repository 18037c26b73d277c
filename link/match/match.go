// Package match says which Ethernet frames are meant: a list of rules over the
// fields that steer a frame. The receivers of the packet engine ask it about
// frames that the kernel copied to them; link/afxdp turns the same rules into a
// program that runs in the driver, and is tested against this package.
package match

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"loam/wire"
)

// Rule is what a frame has to agree with: every field that is set. The zero rule
// agrees with every frame.
type Rule struct {
	EtherType wire.EtherType // 0: any. Of the frame itself: tags are not looked through
	Protocol  wire.Protocol  // behind the IPv4 or IPv6 header, without extension headers; 0: any
	Remote    netip.Prefix   // of the source address; the zero Prefix: any
	Local     netip.Prefix   // of the destination address; the zero Prefix: any
	Ports     Ports          // destination port of TCP or UDP; the zero value: any
	ICMP      ICMP           // of Protocol ICMP or ICMPv6; the zero value: any message
}

// ICMP is one kind of message of ICMP or ICMPv6.
type ICMP struct {
	Kind   ICMPKind
	ID     uint16        // of the echo reply, or of the echo request that is quoted
	Quoted wire.Protocol // that an error quotes: ICMP or ICMPv6, of which echo requests are meant, TCP or UDP
	Ports  Ports         // source port that an error quotes
}

// ICMPKind is a kind of message.
type ICMPKind uint8

// Kinds of messages.
const (
	AnyICMP   ICMPKind = iota
	EchoReply          // with ID
	Quote              // an error about a packet that came from Rule.Local, with ID or Ports
)

// Errors4 are the types of ICMP that quote a packet (RFC 1122 section 3.2.2).
var Errors4 = [...]wire.ICMPv4Type{wire.ICMPv4Unreachable, wire.ICMPv4SourceQuench, wire.ICMPv4Redirect, wire.ICMPv4TimeExceeded, wire.ICMPv4ParamProblem}

// Ports is a range with both its ends.
type Ports struct{ First, Last uint16 }

// Port is the range of one port.
func Port(p uint16) Ports { return Ports{p, p} }

// Any reports whether frame b agrees with one of the rules, or there is no rule.
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

// Agrees reports whether Ethernet frame b agrees with the rule. A frame that is
// too short for a field which the rule names does not.
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

// NamesIP reports whether the rule is only about IP packets.
func (r *Rule) NamesIP() bool {
	return r.Protocol != 0 || r.Remote.IsValid() || r.Local.IsValid() || r.NamesTransport()
}

// NamesTransport reports whether the rule is about what stands behind the IP header.
func (r *Rule) NamesTransport() bool { return r.Ports != Ports{} || r.ICMP.Kind != AnyICMP }

func (r *Rule) agrees4(p []byte) bool {
	src, dst := netip.AddrFrom4([4]byte(p[ipv4Src:])), netip.AddrFrom4([4]byte(p[ipv4Dst:]))
	// Ports and types are only in the first fragment.
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

// contain reports whether the port that b begins with is in the range.
func (p Ports) contain(b []byte) bool {
	port := binary.BigEndian.Uint16(b)
	return p.First <= port && port <= p.Last
}

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

// echo reports whether the message b has the identifier.
func (i *ICMP) echo(b []byte) bool { return binary.BigEndian.Uint16(b[4:]) == i.ID }

// quotedLen is how much of a transport header an error quotes at least (RFC 792).
const quotedLen = 8

// quoted4 reports whether the quoted packet p is the one that is meant. One of ours
// has no options.
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

// from reports whether a quoted packet is from src and begins with b.
func (r *Rule) from(src netip.Addr, b []byte, icmp wire.Protocol, echo uint8) bool {
	if r.Local.IsValid() && !r.Local.Contains(src) {
		return false
	}
	if r.ICMP.Quoted == icmp {
		return b[0] == echo && r.ICMP.echo(b)
	}
	return r.ICMP.Ports.contain(b)
}
