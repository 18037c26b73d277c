// Package dhcp is DHCP. For IPv4 (RFC 2131) there are two pure machines: Client, which
// gets an address for an interface and keeps it, and Server, which hands out the
// addresses of one subnet. Two more are clients of DHCP for IPv6 (RFC 8415): Client6 gets
// addresses, Inform only what there is without them. None has a clock, a goroutine or a socket.
// Whoever owns one calls it with the time and a message that wire.ParseDHCPv4 or ParseDHCPv6
// accepted, and sends the messages that come out.
//
// Read client.go first: its head draws the states. client_input.go is what
// messages do to them, client_output.go what the client says, lease.go what it
// believes of what it is told. The server is server.go (the rules of RFC 2131
// section 4.3), pool.go (who has which address) and reply.go. Of IPv6 read question.go,
// client6.go, client6_input.go and inform.go.
//
// Everything that comes from the network is bounded: lists in a lease are cut,
// a message of the wrong kind, for somebody else, or with an address that cannot
// be one, is counted and changes nothing; the server never has more bindings
// than its pool has addresses.
package dhcp

import (
	"net/netip"
	"time"

	"loam/wire"
)

// Time is the time since an epoch that the owner chose, on a monotonic clock.
type Time = time.Duration

// Never is the deadline of a machine that waits for nothing.
const Never = Time(1<<63 - 1)

// Message is one UDP datagram to send. The owner keeps Data.
type Message struct {
	Data []byte
	Src  netip.AddrPort // 0.0.0.0 as long as the client has no address
	Dst  netip.AddrPort // 255.255.255.255 is every station on the link
	// MAC is the link-layer address that Dst has, where ARP cannot be asked for
	// it: the client that the server answers does not have Dst yet. If it is
	// zero, Dst is resolved, or broadcast, as usual.
	MAC wire.MAC
}

var everyone = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// newMessage writes m into a message.
func newMessage(m *wire.DHCPv4, src, dst netip.AddrPort, mac wire.MAC) Message {
	data := make([]byte, m.Len())
	m.Put(data)
	return Message{Data: data, Src: src, Dst: dst, MAC: mac}
}

// usable reports whether a can be the address of one host: not of this network
// (0/8), of this host (127/8), of a group, or reserved (RFC 1122 section
// 3.2.1.3, RFC 1112 section 4).
func usable(a netip.Addr) bool {
	if !a.Is4() {
		return false
	}
	first := a.As4()[0]
	return first != 0 && first != 127 && first < 224
}

// usableIn reports whether a can be the address of one host in the subnet p: it
// is neither the first nor the last one there, which are the network itself and
// its broadcast address, except where there is no room for these (RFC 3021).
func usableIn(a netip.Addr, p netip.Prefix) bool {
	if !usable(a) || !p.Contains(a) {
		return false
	}
	return p.Bits() >= 31 || a != p.Masked().Addr() && a != lastAddr(p)
}

// lastAddr is the highest address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := range b {
		b[i] |= uint8(0xff >> min(max(p.Bits()-8*i, 0), 8))
	}
	return netip.AddrFrom4(b)
}
