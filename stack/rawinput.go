package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/icmp"
	"loam/wire"
)

// inputRaw gives each raw socket that wants it a copy of a packet, and reports whether one
// did. It runs on a shard or a receiver, whose tally it is given.
func (s *Stack) inputRaw(counts *tally, p *packet) bool {
	heard := false
	for _, c := range s.rawConns() {
		if c.hears(s.tables.Load(), p) {
			heard = true
			c.input(counts, p)
		}
	}
	return heard
}

// hears reports whether a packet is for the socket.
func (c *RawConn) hears(t *tables, p *packet) bool {
	at := *c.bound.Load()
	if c.proto != p.proto || at.Is4() != p.dst.Is4() || !c.hearsOn(p.ifc) {
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
	heard, member := c.Memberships.hears(p)
	return heard || !member && (c.hearsAsOthers(p) || at.IsUnspecified() && t.hearsGroup(p.ifc, p.dst))
}

// hearsGroup reports whether the host is in a multicast group by itself: all hosts, or those
// that have an address of IPv6 like one of the interface's.
func (t *tables) hearsGroup(ifc *Interface, group netip.Addr) bool {
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

// inGroup reports whether the host is in a multicast group on an interface, by itself or by a socket.
// Which sources are heard is the sockets' business: messages about groups, and of ICMPv6, come from
// others (ip6_mc_input and ip_check_mc_rcu of Linux).
func (t *tables) inGroup(ifc *Interface, group netip.Addr) bool {
	return ifc.receptions.joined(group) || t.hearsGroup(ifc, group)
}

// ownNodes is all nodes within an interface, which nothing from a link is to (RFC 4291 section 2.8).
var ownNodes = netip.MustParseAddr("ff01::1")

// allHosts is the group that every host is in (RFC 1112 section 4).
var allHosts = netip.AddrFrom4([4]byte{224, 0, 0, 1})

// input gives the socket a copy.
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
	f := link.NewFrame(len(b))
	copy(f.Bytes(), b)
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

// blocks reports whether a message of ICMP is of a type that is not wanted.
func (c *RawConn) blocks(p *packet) bool {
	types, message := c.blocked.Load(), p.payload()
	if types == nil || len(message) == 0 {
		return false
	}
	kind := message[0]
	return types[kind/32]&(1<<(kind%32)) != 0
}

// rawError tells the raw sockets that may have sent the quoted packet what an ICMP error
// says of it, and reports whether there are any.
func (sh *shard) rawError(e *icmpError) bool {
	heard := false
	for _, c := range sh.stack.rawConns() {
		skip := e.quote.Header
		if c.whole.Load() {
			skip = 0
		}
		if c.mayHaveSent(&e.quote) && c.inputError(sh, e, skip) {
			heard = true
		}
	}
	return heard
}

func (c *RawConn) mayHaveSent(q *icmp.Quote) bool {
	at := *c.bound.Load()
	if c.proto != q.Protocol || at.Is4() != q.Dst.Is4() || !at.IsUnspecified() && at.WithZone("") != q.Src {
		return false
	}
	peer := c.peer.Load()
	return peer == nil || peer.Addr().WithZone("") == q.Dst
}
