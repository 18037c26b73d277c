//go:build linux

package nexthop

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"loam/gen/method"
	"loam/link/match"
	"loam/wire"
)

// Number of requests to a neighbour, and the time to wait for an answer to each.
const (
	tries   = 3
	patient = 400 * time.Millisecond
)

// ask resolves the Ethernet address of p.Gateway by ARP (RFC 826) or Neighbor Discovery (RFC 4861 section 7.2), through
// a packet socket.
func ask(p Path) (wire.MAC, error) {
	if !p.Source.IsValid() {
		return wire.MAC{}, fmt.Errorf("%s has no address to ask for %s with: give it one, or say --src and --dst-mac", p.Interface, p.Gateway)
	}
	var question []byte
	answer, rule := arpAnswer, match.Rule{EtherType: wire.TypeARP}
	if p.Gateway.Is4() {
		question = arpRequest(p)
	} else {
		question, answer = solicitation(p), advertisement
		rule = match.Rule{EtherType: wire.TypeIPv6, Protocol: wire.ProtoICMPv6}
	}
	c := method.Config{Interface: p.Interface, Batch: 8, Match: []match.Rule{rule}}
	m, err := method.ByName("packet")
	if err != nil {
		return wire.MAC{}, err
	}
	rx, err := m.Listen(c)
	if err != nil {
		return wire.MAC{}, err
	}
	defer rx.Close()
	tx, err := m.Open(c)
	if err != nil {
		return wire.MAC{}, err
	}
	defer tx.Close()
	for range tries {
		if _, err := tx.Send(1, func(slot []byte) int { return copy(slot, question) }); err != nil {
			return wire.MAC{}, err
		}
		if mac, ok := await(rx, p.Gateway, answer); ok {
			return mac, nil
		}
	}
	if p.own {
		return wire.MAC{}, fmt.Errorf("%s is an address of this host, which nobody on %s answers for: give another, or an Ethernet address with --dst-mac", p.Gateway, p.Interface)
	}
	return wire.MAC{}, fmt.Errorf("%s %w on %s: check the address, or give its Ethernet address with --dst-mac", p.Gateway, ErrSilent, p.Interface)
}

// ErrSilent is wrapped by the error about a neighbour that has not answered.
var ErrSilent = errors.New("does not answer")

// await waits for an answer that contains the Ethernet address of a. The function answer parses a received frame.
func await(rx method.Receiver, a netip.Addr, answer func(frame []byte) (netip.Addr, wire.MAC, bool)) (mac wire.MAC, ok bool) {
	for deadline := time.Now().Add(patient); !ok; {
		left := time.Until(deadline)
		if left <= 0 {
			return mac, false
		}
		_, err := rx.Receive(left, func(b []byte, _ int64) {
			if who, m, fine := answer(b); fine && who == a {
				mac, ok = m, true
			}
		})
		if err != nil {
			return mac, false
		}
	}
	return mac, true
}

// arpRequest returns a broadcast frame with an ARP request for p.Gateway.
func arpRequest(p Path) []byte {
	b := make([]byte, wire.EthernetLen+wire.ARPLen)
	eth := wire.Ethernet{Dst: wire.Broadcast, Src: p.SourceMAC, Type: wire.TypeARP}
	eth.Put(b)
	arp := wire.ARP{Op: wire.ARPRequest, SenderMAC: p.SourceMAC, SenderIP: p.Source, TargetIP: p.Gateway}
	arp.Put(b[wire.EthernetLen:])
	return b
}

// arpAnswer returns the IP and Ethernet addresses of the sender of an ARP reply. ok is false for any other frame.
func arpAnswer(b []byte) (a netip.Addr, m wire.MAC, ok bool) {
	_, rest, err := wire.ParseEthernet(b)
	if err != nil {
		return a, m, false
	}
	arp, err := wire.ParseARP(rest)
	return arp.SenderIP, arp.SenderMAC, err == nil && arp.Op == wire.ARPReply
}

// Messages of Neighbor Discovery (RFC 4861 sections 4.3 and 4.4). A solicitation and an advertisement each consist of
// an ICMPv6 header, the target, and an option with a link-layer address.
const (
	ndLen         = wire.ICMPv6Len + 16 + optionLen
	optionLen     = 8
	sourceOption  = 1
	targetOption  = 2
	ndHopLimit    = 255
	ndTarget      = wire.ICMPv6Len
	ndOption      = wire.ICMPv6Len + 16
	solicitedNode = 104 // length of the prefix of solicited-node multicast addresses, ff02::1:ff00:0, in bits
)

// solicitation returns a frame with a Neighbor Solicitation for p.Gateway, sent to its solicited-node multicast
// address.
func solicitation(p Path) []byte {
	group := netip.MustParseAddr("ff02::1:ff00:0").As16()
	target := p.Gateway.As16()
	copy(group[solicitedNode/8:], target[solicitedNode/8:])
	to := netip.AddrFrom16(group)

	b := make([]byte, wire.EthernetLen+wire.IPv6Len+ndLen)
	eth := wire.Ethernet{Dst: wire.MAC{0x33, 0x33, 0xff, group[13], group[14], group[15]}, Src: p.SourceMAC, Type: wire.TypeIPv6}
	eth.Put(b)
	ip := wire.IPv6{NextHeader: wire.ProtoICMPv6, HopLimit: ndHopLimit, Src: p.Source, Dst: to, PayloadLen: ndLen}
	ip.Put(b[wire.EthernetLen:])
	m := b[wire.EthernetLen+wire.IPv6Len:]
	wire.ICMPv6{Type: wire.ICMPv6NeighborSolicitation}.Put(m)
	copy(m[ndTarget:], target[:])
	m[ndOption], m[ndOption+1] = sourceOption, 1
	copy(m[ndOption+2:], p.SourceMAC[:])
	wire.PutICMPv6Checksum(m, p.Source, to)
	return b
}

// advertisement returns the target and its Ethernet address from a Neighbor Advertisement. ok is false for any
// other frame.
func advertisement(b []byte) (a netip.Addr, m wire.MAC, ok bool) {
	eth, rest, err := wire.ParseEthernet(b)
	if err != nil {
		return a, m, false
	}
	ip, body, err := wire.ParseIPv6(rest)
	if err != nil || ip.HopLimit != ndHopLimit || len(body) < ndTarget+16 || body[0] != uint8(wire.ICMPv6NeighborAdvertisement) || !wire.ICMPv6ChecksumOK(body, ip.Src, ip.Dst) {
		return a, m, false
	}
	m = eth.Src // m is the sender's address unless an option contains another one
	if len(body) >= ndLen && body[ndOption] == targetOption {
		copy(m[:], body[ndOption+2:])
	}
	return netip.AddrFrom16([16]byte(body[ndTarget:])), m, true
}
