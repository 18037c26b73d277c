package probe

import (
	"net/netip"
	"slices"

	"loam/wire"
)

// Probes of neighbours request the Ethernet address of a target, by ARP (RFC 826) or Neighbor Discovery (RFC 4861
// section 7.2). Every host answers them, even one that drops echo requests. The messages have no field for a tag. So
// any answer that is addressed to us is accepted, and a host on the same link could forge answers. The messages are
// never routed.

// solicitation returns the frame of a request from a source address, in which the target is blank.
func (f *form) solicitation(source netip.Addr) []byte {
	if f.is4 {
		b := make([]byte, wire.EthernetLen+wire.ARPLen)
		eth := wire.Ethernet{Dst: wire.Broadcast, Src: f.SourceMAC, Type: wire.TypeARP}
		eth.Put(b)
		arp := wire.ARP{Op: wire.ARPRequest, SenderMAC: f.SourceMAC, SenderIP: source, TargetIP: netip.IPv4Unspecified()}
		arp.Put(b[wire.EthernetLen:])
		return b
	}
	m := wire.Neighbor{Target: netip.IPv6Unspecified(), LinkAddr: f.SourceMAC}
	b := make([]byte, wire.EthernetLen+wire.IPv6Len+m.Len())
	eth := wire.Ethernet{Dst: wire.Broadcast, Src: f.SourceMAC, Type: wire.TypeIPv6}
	eth.Put(b)
	ip := wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: neighbourHopLimit, Src: source, Dst: netip.IPv6Unspecified(), PayloadLen: m.Len()}
	ip.Put(b[wire.EthernetLen:])
	m.Put(b[wire.EthernetLen+wire.IPv6Len:])
	return b
}

// neighbourHopLimit is the hop limit of Neighbor Discovery messages; it shows that a message has not been routed (RFC
// 4861 section 7.1.1).
const neighbourHopLimit = 255

// Offsets of the target's address in ARP and in Neighbor Discovery messages, in bytes.
const (
	arpTarget = 24
	ndTarget  = 8
)

// solicit writes the request for the Ethernet address of q.addr into slot and returns its length.
func (f *form) solicit(slot []byte, t *template, q question) int {
	n := copy(slot, t.bytes)
	if f.is4 {
		target := q.addr.As4()
		copy(slot[wire.EthernetLen+arpTarget:], target[:])
		return n
	}
	group, target := wire.SolicitedNode(q.addr), q.addr.As16()
	mac, to := wire.MulticastMAC6(group), group.As16()
	copy(slot, mac[:])
	ip := slot[wire.EthernetLen:]
	copy(ip[ipv6Dst:], to[:])
	m := slot[wire.EthernetLen+wire.IPv6Len : n]
	copy(m[ndTarget:], target[:])
	wire.PutICMPv6Checksum(m, netip.AddrFrom16([16]byte(ip[ipv6Src:])), group)
	return n
}

// readNeighbour classifies a frame that may be an answer to a solicitation.
func (f *form) readNeighbour(eth *wire.Ethernet, b []byte) (r reply, v verdict) {
	r.rtt, r.answer = -1, Resolved
	if f.is4 {
		arp, err := wire.ParseARP(b)
		if eth.Type != wire.TypeARP || err == nil && (arp.Op != wire.ARPReply || arp.TargetMAC != f.SourceMAC || !slices.Contains(f.sources, arp.TargetIP)) {
			return r, foreign
		}
		if err != nil || arp.SenderMAC.IsMulticast() || arp.SenderMAC.IsZero() {
			return r, malformed
		}
		r.addr, r.from, r.mac = arp.SenderIP, arp.SenderIP, arp.SenderMAC
		return r, genuine
	}
	if eth.Type != wire.TypeIPv6 {
		return r, foreign
	}
	ip, body, err := wire.ParseIPv6(b)
	if err != nil || ip.NextHeader != wire.ProtoICMPv6 || len(body) == 0 || body[0] != uint8(wire.ICMPv6NeighborAdvertisement) || !slices.Contains(f.sources, ip.Dst) {
		return r, foreign
	}
	m, err := wire.ParseNeighbor(body)
	if err != nil || ip.HopLimit != neighbourHopLimit || !wire.ICMPv6ChecksumOK(body, ip.Src, ip.Dst) {
		return r, malformed
	}
	if r.mac = m.LinkAddr; r.mac.IsZero() {
		r.mac = eth.Src
	}
	r.addr, r.from, r.hopLimit = m.Target, ip.Src, ip.HopLimit
	return r, genuine
}
