package linktest

import (
	"net/netip"

	"loam/link"
	"loam/wire"
)

// KindCase is a frame and its kind, such as link.KindSYN.
type KindCase struct {
	Name  string
	Kind  link.Kinds
	Frame []byte
}

// Sender is the sender of the frames of Kinds.
var Sender = netip.AddrFrom4([4]byte{10, 9, 0, 200})

// Port is the destination port of the UDP datagrams of Kinds, except for one of them.
const Port = 9

// Kinds returns frames of every kind. It also returns frames that resemble them but have no kind.
func Kinds() []KindCase {
	segment := func(flags wire.TCPFlags) []byte {
		h := wire.TCP{SrcPort: 1, DstPort: 80, Flags: flags}
		b := make([]byte, h.Len())
		h.Put(b)
		return b
	}
	icmp := func(kind wire.ICMPv4Type) []byte {
		b := make([]byte, wire.ICMPv4Len)
		wire.ICMPv4{Type: kind}.Put(b)
		return b
	}
	datagram := make([]byte, 16)
	h := wire.UDP{SrcPort: 1, DstPort: Port, PayloadLen: 8}
	h.Put(datagram)
	elsewhere := make([]byte, 16)
	h.DstPort++
	h.Put(elsewhere)
	return []KindCase{
		{"SYN", link.KindSYN, packet(wire.IPv4{Protocol: wire.ProtoTCP}, segment(wire.SYN))},
		{"SYN with ECN", link.KindSYN, packet(wire.IPv4{Protocol: wire.ProtoTCP}, segment(wire.SYN|wire.ECE|wire.CWR))},
		{"SYN and ACK", 0, packet(wire.IPv4{Protocol: wire.ProtoTCP}, segment(wire.SYN|wire.ACK))},
		{"ACK", 0, packet(wire.IPv4{Protocol: wire.ProtoTCP}, segment(wire.ACK))},
		{"echo request", link.KindEcho, packet(wire.IPv4{Protocol: wire.ProtoICMP}, icmp(wire.ICMPv4Echo))},
		{"echo reply", 0, packet(wire.IPv4{Protocol: wire.ProtoICMP}, icmp(wire.ICMPv4EchoReply))},
		{"first fragment", link.KindFragment, packet(wire.IPv4{Protocol: wire.ProtoUDP, MoreFragment: true}, datagram)},
		{"last fragment", link.KindFragment, packet(wire.IPv4{Protocol: wire.ProtoTCP, FragOffset: 1480}, datagram)},
		{"datagram not to be fragmented", link.KindUDP, packet(wire.IPv4{Protocol: wire.ProtoUDP, DontFragment: true}, datagram)},
		{"datagram to another port", link.KindUDP, packet(wire.IPv4{Protocol: wire.ProtoUDP}, elsewhere)},
		{"datagram", link.KindUDP, packet(wire.IPv4{Protocol: wire.ProtoUDP}, datagram)},
		{"ARP request", link.KindARP, arp(wire.ARPRequest)},
		{"ARP reply", 0, arp(wire.ARPReply)},
		{"IPv6", 0, append(ethernet(wire.TypeIPv6), make([]byte, 60)...)},
	}
}

func ethernet(kind wire.EtherType) []byte {
	b := make([]byte, wire.EthernetLen)
	h := wire.Ethernet{Dst: wire.Broadcast, Src: wire.MAC{2, 0, 0, 0, 0, 9}, Type: kind}
	h.Put(b)
	return b
}

func packet(h wire.IPv4, payload []byte) []byte {
	h.TTL, h.Src, h.Dst, h.PayloadLen = 64, Sender, netip.AddrFrom4([4]byte{10, 9, 0, 2}), len(payload)
	b := make([]byte, h.Len())
	h.Put(b)
	return append(append(ethernet(wire.TypeIPv4), b...), payload...)
}

func arp(op wire.ARPOp) []byte {
	a := wire.ARP{Op: op, SenderMAC: wire.MAC{2, 0, 0, 0, 0, 9}, SenderIP: Sender, TargetIP: netip.AddrFrom4([4]byte{10, 9, 0, 2})}
	b := make([]byte, wire.ARPLen)
	a.Put(b)
	return append(ethernet(wire.TypeARP), b...)
}
