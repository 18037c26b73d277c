package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/shared"
	"loam/wire"
)

// inputUDP processes a UDP packet, or a frame of several packets that a sender on this
// machine left to its device to segment (UDP_SEGMENT). It takes ownership of the frame.
func (sh *shard) inputUDP(p *packet) {
	valid := p.frame.ChecksumValid
	for p.frame.GSO != link.GSONone {
		var first [1]*link.Frame
		n, ok := link.Segment(link.IP, p.frame, first[:])
		if !ok {
			sh.dropUDP(p, UDPMalformed)
			return
		}
		if n == 1 {
			one := *p
			one.frame = first[0]
			one.frame.ChecksumValid = valid
			sh.inputDatagram(&one)
		}
	}
	p.frame.ChecksumValid = valid
	sh.inputDatagram(p)
}

// inputDatagram processes one UDP packet. It takes ownership of the frame.
func (sh *shard) inputDatagram(p *packet) {
	sh.tally.countBy(p.src, UDPReceived)
	b := p.payload()
	h, payload, err := wire.ParseUDP(b)
	if err != nil {
		sh.dropUDP(p, UDPMalformed)
		return
	}
	if !p.frame.ChecksumValid && !wire.UDPChecksumOK(b, p.src, p.dst) {
		sh.dropUDP(p, UDPChecksum)
		return
	}
	from, to := netip.AddrPortFrom(p.src, h.SrcPort), netip.AddrPortFrom(p.dst, h.DstPort)
	if p.src.Is6() {
		from, to = p.ifc.scopedPort(from), p.ifc.scopedPort(to)
	}
	info := p.datagram(sh.now, from, to, len(payload))
	if p.broadcast {
		sh.deliverToAll(sh.sockets, p, payload, info)
		return
	}
	c := sh.socket(sh.sockets, p.ifc, from, to)
	if c == nil && p.ifc.acceptAny {
		c = sh.forwardUDP(from, to)
	}
	if c == nil {
		sh.refuseUDP(p)
		return
	}
	p.frame.TrimFront(int(p.headerLen) + wire.UDPLen)
	p.frame.Resize(len(payload))
	sh.deliverTo(c, p.frame, info)
}

// refuseUDP answers a datagram for which there is no socket. It takes ownership of the frame.
func (sh *shard) refuseUDP(p *packet) {
	sh.tally.countBy(p.src, UDPNoPort)
	sh.sendPortUnreachable(p.frame.Bytes())
	p.frame.Free()
}

// sendPortUnreachable answers the packet b, which no socket receives, with an ICMP error.
func (sh *shard) sendPortUnreachable(b []byte) {
	if typeOfIP(b) == wire.TypeIPv6 {
		sh.sendError6(b, wire.ICMPv6{Type: wire.ICMPv6Unreachable, Code: wire.CodePortUnreachable6}, false)
		return
	}
	sh.sendError(b, wire.ICMPv4Unreachable, wire.CodePortUnreachable)
}

func (sh *shard) dropUDP(p *packet, reason Counter) {
	sh.tally.countBy(p.src, reason)
	p.frame.Free()
}

// deliverTo delivers a datagram to a socket and takes ownership of f, which holds only
// the payload.
func (sh *shard) deliverTo(c *UDPConn, f *link.Frame, info Datagram) {
	if !c.covers(&info) || !c.filtered(f, &info) {
		sh.tally.countBy(info.To.Addr(), UDPFiltered)
		f.Free()
		return
	}
	if !c.take(f, info) {
		sh.tally.countBy(info.To.Addr(), UDPOverflow)
		f.Free()
	}
}

// socket returns the socket of a table (sockets or lites) for a datagram that arrived on an interface, or nil. A nil
// interface means that the interface is unknown. A socket connected to the sender has the
// highest precedence, then a socket bound to the address, then a socket bound to all addresses.
func (sh *shard) socket(table map[netip.AddrPort][]*UDPConn, ifc *Interface, from, to netip.AddrPort) *UDPConn {
	to = bare(to)
	exact, all := table[to], table[netip.AddrPortFrom(anyAddr(to.Addr()), to.Port())]
	if c := connectedTo(exact, ifc, from); c != nil {
		return c
	}
	if c := connectedTo(all, ifc, from); c != nil {
		return c
	}
	if c := sh.unconnected(exact, ifc, from, to); c != nil {
		return c
	}
	return sh.unconnected(all, ifc, from, to)
}

// connectedTo returns a socket whose peer has the address from. A socket bound to the
// interface takes precedence.
func connectedTo(list []*UDPConn, ifc *Interface, from netip.AddrPort) *UDPConn {
	var found *UDPConn
	for _, c := range list {
		if peer := c.peer.Load(); peer == nil || !sameEnd(*peer, from) || !c.receivesOn(ifc) {
			continue
		}
		if c.Device() != nil {
			return c
		}
		if found == nil {
			found = c
		}
	}
	return found
}

// sameEnd reports whether two addresses are equal. Either may lack its zone.
func sameEnd(a, b netip.AddrPort) bool {
	return a == b || a.Addr().Is6() && bare(a) == bare(b)
}

// unconnected returns a socket without a peer. Sockets bound to the interface take
// precedence. Several matching sockets (SO_REUSEPORT) divide the flows by hash.
func (sh *shard) unconnected(list []*UDPConn, ifc *Interface, from, to netip.AddrPort) *UDPConn {
	open, bound := 0, 0
	for _, c := range list {
		if c.peer.Load() != nil || !c.receivesOn(ifc) {
			continue
		}
		open++
		if c.Device() != nil {
			bound++
		}
	}
	most := open
	if bound > 0 {
		most = bound
	}
	n := 0
	if most > 1 {
		n = shared.ShardOf(from.Addr(), to.Addr(), from.Port(), to.Port(), ^sh.stack.seed, most)
	}
	for _, c := range list {
		if c.peer.Load() != nil || !c.receivesOn(ifc) || bound > 0 && c.Device() == nil {
			continue
		}
		if n == 0 {
			return c
		}
		n--
	}
	return nil
}

// deliverToAll delivers a copy of a broadcast or multicast datagram to every matching
// socket of a table. It takes ownership of the frame.
func (sh *shard) deliverToAll(table map[netip.AddrPort][]*UDPConn, p *packet, payload []byte, info Datagram) {
	wanted := false
	all := netip.AddrPortFrom(anyAddr(info.To.Addr()), info.To.Port())
	for _, local := range [...]netip.AddrPort{bare(info.To), all} {
		for _, c := range table[local] {
			if !c.receivesAll(p, &info) || !c.receivesOn(p.ifc) {
				continue
			}
			wanted = true
			f := link.NewFrame(len(payload))
			copy(f.Bytes(), payload)
			sh.deliverTo(c, f, info)
		}
	}
	if !wanted {
		sh.tally.countBy(p.src, UDPNoPort)
	}
	p.frame.Free()
}

// receivesAll reports whether the socket receives a broadcast or multicast datagram to its
// port.
func (c *UDPConn) receivesAll(p *packet, info *Datagram) bool {
	if peer := c.peer.Load(); peer != nil && !sameEnd(*peer, info.From) {
		return false
	}
	if !p.dst.IsMulticast() {
		return true
	}
	received, member := c.Memberships.receives(p)
	return received || !member && c.receivesAsOthers(p)
}

// forwardUDP creates the socket of a new flow and passes it to the forwarder. It returns
// nil if there is no forwarder or too many requests are undecided.
func (sh *shard) forwardUDP(from, to netip.AddrPort) *UDPConn {
	handler := sh.stack.forwarder.UDP
	if handler == nil || !sh.beginForward() {
		return nil
	}
	c := sh.stack.newUDPConn(wire.ProtoUDP, to, UDPOptions{})
	c.home = sh
	c.remote = from
	c.peer.Store(&from)
	c.enter(sh)
	sh.stack.crew.Start(func() {
		defer sh.stack.forwards.Add(-1)
		handler(c)
	})
	return c
}
