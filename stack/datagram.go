package stack

import (
	"net/netip"
	"time"

	"loam/stack/queue"
	"loam/stack/tcp"
)

// Datagram describes a received datagram.
type Datagram struct {
	From, To  netip.AddrPort // To is the destination address of the packet
	Len       int            // payload length, possibly more than was copied to the buffer
	Interface int            // index of the interface on which the datagram arrived
	TTL, TOS  uint8
	partial   uint16   // UDP-Lite: number of bytes that the checksum covers; 0: all
	at        tcp.Time // arrival time by the stack's clock: see Stack.Arrived
}

// Arrived returns when a datagram arrived, by the current wall clock.
func (s *Stack) Arrived(d *Datagram) time.Time { return time.Now().Add(d.at - s.now()) }

// datagram returns the description of a datagram of n bytes in a packet that arrived at the time now.
func (p *packet) datagram(now tcp.Time, from, to netip.AddrPort, n int) Datagram {
	return Datagram{From: from, To: to, Len: n, Interface: p.ifc.index, TTL: p.ttl, TOS: p.tos, at: now}
}

// datagramQueue is the receive buffer of a datagram socket.
type datagramQueue = queue.Messages[Datagram]

// defaultDatagramBuffer is the default size of a datagram socket's receive buffer, in
// bytes of frame buffers: about a thousand small datagrams, or 30 of the largest.
const defaultDatagramBuffer = 2 << 20
