// Package match says which Ethernet frames are meant: a list of rules over the
// fields that steer a frame. The receivers of the packet engine ask it about
// frames that the kernel copied to them; link/afxdp turns the same rules into a
// program that runs in the driver, and is tested against this package.
package match

import (
	"encoding/binary"
	"net/netip"

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
}

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
	return r.Protocol != 0 || r.Remote.IsValid() || r.Local.IsValid() || r.Ports != Ports{}
}

func (r *Rule) agrees4(p []byte) bool {
	src, dst := netip.AddrFrom4([4]byte(p[ipv4Src:])), netip.AddrFrom4([4]byte(p[ipv4Dst:]))
	// Ports are only in the first fragment.
	const offset = 0x1fff
	if r.Ports != (Ports{}) && binary.BigEndian.Uint16(p[ipv4Frag:])&offset != 0 {
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
	if r.Ports == (Ports{}) {
		return true
	}
	if proto != wire.ProtoTCP && proto != wire.ProtoUDP || transport < wire.IPv4MinLen || len(p) < transport+4 {
		return false
	}
	port := binary.BigEndian.Uint16(p[transport+2:])
	return r.Ports.First <= port && port <= r.Ports.Last
}
