package link

import (
	"encoding/binary"
	"net/netip"
	"time"

	"loam/wire"
)

// Receiving a frame that the stack drops anyway costs most in its delivery: for a TAP interface, a system call each. In
// a flood of such frames, a device that implements Thinner can drop some of them earlier.

// Kinds is a set of kinds of frames that any host can send without a connection, with a forged
// address. Only IPv4 over Ethernet and ARP are classified.
type Kinds uint8

// Members of Kinds.
const (
	KindSYN      Kinds = 1 << iota // TCP segments with SYN and without ACK
	KindFragment                   // fragments of IPv4 packets
	KindEcho                       // ICMP echo requests
	KindARP                        // ARP requests
	KindUDP                        // UDP datagrams, except fragments

	NumKinds = iota // number of kinds that KindOf returns

	// KindStray are TCP segments without a connection, except those of KindSYN and fragments. Only a FlowThinner drops
	// them.
	KindStray Kinds = 1 << NumKinds
)

// Thinning says which frames a device drops.
type Thinning struct {
	Kinds Kinds // kinds of frames that the device drops; 0: none
	// Port is the destination port of the UDP datagrams that are dropped. Others are all delivered.
	Port uint16
	// Shift is the share of these frames that is delivered: one in 1<<Shift, chosen at random. At most 31.
	Shift uint8
	// Known are IPv4 senders whose frames are all delivered, at most MaxKnown, except frames of KindStray. For ARP, the
	// sender is the sender's protocol address.
	Known []netip.Addr
}

// MaxKnown is the largest number of addresses in Thinning.Known.
const MaxKnown = 64

// Thinner is implemented by devices that can drop arriving frames before they reach Recv.
type Thinner interface {
	// Thin replaces the thinning of all queues. Dropped frames are not counted in Stats. An error means that
	// the device cannot do this; the earlier thinning is then still in force.
	Thin(Thinning) error
}

// FlowThinner is a Thinner that can also drop frames of KindStray.
type FlowThinner interface {
	Thinner
	// Flows returns the set of connections whose segments are not stray. All calls return the same set, which is empty
	// at first. The caller adds all connections before it calls Thin with KindStray, and each new one before the reply
	// to its first segment can arrive. While KindStray is being dropped, Thin must be called every StrayLife/2 or more
	// often; otherwise the device delivers all such frames again. An error means that the device cannot drop them.
	Flows() (*Flows, error)
}

// StrayLife is how long frames of KindStray are dropped after a call of Thin. The limit matters if the process is killed
// and the interface remains.
const StrayLife = 3 * time.Second

// KindOf returns the kind of an Ethernet frame and its sender. The kind is 0 if the frame has none. KindOf checks only
// the fields that determine the kind.
func KindOf(b []byte) (kind Kinds, sender netip.Addr) {
	const ip, ipv4Fragment, ipv4Protocol, ipv4Source = wire.EthernetLen, wire.EthernetLen + 6, wire.EthernetLen + 9, wire.EthernetLen + 12
	if len(b) < ip+wire.IPv4MinLen {
		return 0, netip.Addr{}
	}
	source := ipv4Source
	switch wire.EtherType(binary.BigEndian.Uint16(b[ip-2:])) {
	case wire.TypeARP:
		if len(b) < ip+wire.ARPLen || wire.ARPOp(binary.BigEndian.Uint16(b[ip+6:])) != wire.ARPRequest {
			return 0, netip.Addr{}
		}
		kind, source = KindARP, ip+14
	case wire.TypeIPv4:
		transport := ip + int(b[ip]&0xf)*4
		switch protocol := wire.Protocol(b[ipv4Protocol]); {
		case binary.BigEndian.Uint16(b[ipv4Fragment:])&0x3fff != 0: // offset, and more fragments
			kind = KindFragment
		case protocol == wire.ProtoTCP && len(b) > transport+13 && wire.TCPFlags(b[transport+13])&(wire.SYN|wire.ACK) == wire.SYN:
			kind = KindSYN
		case protocol == wire.ProtoICMP && len(b) > transport && wire.ICMPv4Type(b[transport]) == wire.ICMPv4Echo:
			kind = KindEcho
		case protocol == wire.ProtoUDP && len(b) >= transport+wire.UDPLen:
			kind = KindUDP
		}
	}
	if kind != 0 {
		sender, _ = netip.AddrFromSlice(b[source : source+4])
	}
	return kind, sender
}

// UDPPort returns the destination port of a frame of kind KindUDP.
func UDPPort(b []byte) uint16 {
	return binary.BigEndian.Uint16(b[wire.EthernetLen+int(b[wire.EthernetLen]&0xf)*4+2:])
}
