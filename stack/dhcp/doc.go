// Package dhcp implements DHCP clients and a DHCP server as pure state machines, without a clock, goroutine
// or socket. For IPv4 (RFC 2131), Client gets an address for an interface and keeps it, and Server assigns
// the addresses of one subnet. For IPv6 (RFC 8415), Client6 gets addresses, and Inform gets only the
// configuration that is available without an address.
//
// The owner of a machine calls it with the time and with messages that wire.ParseDHCPv4 or ParseDHCPv6
// accepted, and sends the messages that it returns.
//
// Read client.go first; its head describes the states. client_input.go handles received messages,
// client_output.go builds the client's messages, and lease.go validates leases. The server is in server.go
// (the rules of RFC 2131 section 4.3), pool.go (the bindings) and reply.go. For IPv6, read question.go,
// client6.go, client6_input.go and inform.go.
//
// All input from the network is bounded. Lists in a lease are truncated. A message that is unexpected, meant
// for another host, or contains an invalid address is counted and otherwise ignored. The server never has
// more bindings than its pool has addresses.
package dhcp

import (
	"net/netip"
	"time"

	"loam/wire"
)

// Time is the time since an epoch that the owner chose, on a monotonic clock.
type Time = time.Duration

// Never is the deadline of a client that has nothing to do.
const Never = Time(1<<63 - 1)

// Message is one UDP datagram to send. The owner may keep Data.
type Message struct {
	Data []byte
	Src  netip.AddrPort // source: 0.0.0.0 until the client has an address
	Dst  netip.AddrPort // destination: 255.255.255.255 means every station on the link
	// MAC is the link-layer address of Dst if ARP cannot resolve Dst, because the client that is answered may not use the
	// address yet. If MAC is zero, Dst is resolved or broadcast as usual.
	MAC wire.MAC
}

var everyone = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// newMessage encodes m as a Message.
func newMessage(m *wire.DHCPv4, src, dst netip.AddrPort, mac wire.MAC) Message {
	data := make([]byte, m.Len())
	m.Put(data)
	return Message{Data: data, Src: src, Dst: dst, MAC: mac}
}

// usable reports whether a can be the address of a single host: not in 0/8 or 127/8, multicast or reserved
// (RFC 1122 section 3.2.1.3, RFC 1112 section 4).
func usable(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	first := a.As4()[0]
	return first != 0 && first != 127 && first < 224
}

// usableIn reports whether a can be the address of a single host in the subnet p. The first and last address
// are the network and its broadcast address and cannot, except in subnets of one or two addresses (RFC 3021).
func usableIn(a netip.Addr, p netip.Prefix) bool {
	if !usable(a) || !p.Contains(a) {
		return false
	}
	return p.Bits() >= 31 || a != p.Masked().Addr() && a != lastAddr(p)
}

// lastAddr returns the highest address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := range b {
		b[i] |= uint8(0xff >> min(max(p.Bits()-8*i, 0), 8))
	}
	return netip.AddrFrom4(b)
}
