package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/wire"
)

// inputRaw delivers a copy of a packet to each matching raw socket and reports whether there was one. It
// runs on a shard or a receiver; counts is the set of counters of the caller.
func (s *Stack) inputRaw(counts *tally, p *packet) bool {
	received := false
	for _, c := range s.rawConns() {
		if c.receives(s.tables.Load(), p) {
			received = true
			c.input(counts, p)
		}
	}
	return received
}

// receives reports whether the socket receives a packet.
func (c *RawConn) receives(t *tables, p *packet) bool {
	at := *c.bound.Load()
	if c.proto != p.proto || at.Is4() != p.dst.Is4() || !c.receivesOn(p.ifc) {
		return false
	}
	if peer := c.peer.Load(); peer != nil && peer.Addr().WithZone("") != p.src {
		return false
	}
	switch {
	case at.WithZone("") == p.dst:
		return at.Zone() == "" || at.Zone() == p.ifc.name
	case !p.dst.IsMulticast() || p.dst.Is4() && !at.IsUnspecified():
		return at.IsUnspecified()
	}
	received, member := c.Memberships.receives(p)
	return received || !member && (c.receivesAsOthers(p) || at.IsUnspecified() && t.receivesGroup(p.ifc, p.dst))
}

// receivesGroup reports whether the host receives a multicast group without any socket: the
// groups of all hosts, and the solicited-node groups of the interface's IPv6 addresses.
func (t *tables) receivesGroup(ifc *Interface, group netip.Addr) bool {
	if group == allHosts || group == netip.IPv6LinkLocalAllNodes() || group == ownNodes {
		return true
	}
	for _, own := range t.own6[ifc.index] {
		if wire.SolicitedNode(own.Prefix.Addr()) == group {
			return true
		}
	}
	return false
}

// inGroup reports whether the host receives a multicast group on an interface. Source filters are applied later, for each
// socket, because IGMP and ICMPv6 messages come from other sources (as in ip6_mc_input and ip_check_mc_rcu of Linux).
func (t *tables) inGroup(ifc *Interface, group netip.Addr) bool {
	return ifc.receptions.joined(group) || t.receivesGroup(ifc, group)
}

// ownNodes is the interface-local group of all nodes. No packet from a link is sent to it (RFC 4291 section 2.8).
var ownNodes = netip.MustParseAddr("ff01::1")

// allHosts is the group of all IPv4 hosts (RFC 1112 section 4).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// input delivers a copy of a packet to the socket.
func (c *RawConn) input(counts *tally, p *packet) {
	b := p.frame.Bytes()
	if p.dst.Is6() {
		b = p.payload()
	}
	if c.blocks(p) {
		counts.count(RawFiltered)
		return
	}
	if c.checksumAt.Load() >= 0 && !p.frame.ChecksumValid && wire.Sum(b, wire.PseudoSum(p.proto, p.src, p.dst, len(b))) != 0xffff {
		counts.count(RawFiltered)
		return
	}
	f := link.FrameOf(b)
	from, to := netip.AddrPortFrom(p.ifc.scoped(p.src), 0), netip.AddrPortFrom(p.ifc.scoped(p.dst), 0)
	info := p.datagram(c.stack.now(), from, to, len(b))
	switch {
	case !c.wants(f, &info):
		counts.count(RawFiltered)
	case !c.take(f, info):
		counts.count(RawOverflow)
	default:
		counts.count(RawReceived)
		return
	}
	f.Free()
}

// blocks reports whether BlockTypes blocks the type of an ICMP message.
func (c *RawConn) blocks(p *packet) bool {
	types, message := c.blocked.Load(), p.payload()
	if types == nil || len(message) == 0 {
		return false
	}
	kind := message[0]
	return types[kind/32]&(1<<(kind%32)) != 0
}

// rawError delivers an ICMP error to the raw sockets that may have sent the quoted
// packet, and reports whether any accepted it.
func (sh *shard) rawError(e *icmpError) bool {
	received := false
	for _, c := range sh.stack.rawConns() {
		skip := e.quote.Header
		if c.whole.Load() {
			skip = 0
		}
		if c.mayHaveSent(&e.quote) && c.inputError(sh, e, skip) {
			received = true
		}
	}
	return received
}

// mayHaveSent reports whether the socket may have sent a packet that an ICMP error quotes.
func (c *RawConn) mayHaveSent(q *icmp.Quote) bool {
	at := *c.bound.Load()
	if c.proto != q.Protocol || at.Is4() != q.Dst.Is4() || !at.IsUnspecified() && at.WithZone("") != q.Src {
		return false
	}
	peer := c.peer.Load()
	return peer == nil || peer.Addr().WithZone("") == q.Dst
}
