package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/demux"
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
		sh.deliverToAll(&sh.sockets, p, payload, info)
		return
	}
	c := sh.sockets.Find(from, to, p.ifc.index)
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

// deliverTo delivers a datagram to a socket and takes ownership of f, which holds only the payload.
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

// Fit implements demux.Socket.
func (c *UDPConn) Fit(from netip.AddrPort, on int) demux.Fit {
	fit := demux.Fits
	if device := c.device.Load(); device != nil {
		if on != 0 && on != device.index {
			return 0
		}
		fit |= demux.Bound
	}
	if peer := c.peer.Load(); peer != nil {
		if !sameEnd(*peer, from) {
			return 0
		}
		fit |= demux.Connected
	}
	return fit
}

// sameEnd reports whether two addresses are equal. Either may lack its zone.
func sameEnd(a, b netip.AddrPort) bool {
	return a == b || a.Addr().Is6() && bare(a) == bare(b)
}

// deliverToAll delivers a copy of a broadcast or multicast datagram to every matching
// socket of a table. It takes ownership of the frame.
func (sh *shard) deliverToAll(table *demux.Table[*UDPConn], p *packet, payload []byte, info Datagram) {
	wanted := false
	for c := range table.At(info.To) {
		if !c.receivesAll(p, &info) || !c.receivesOn(p.ifc) {
			continue
		}
		wanted = true
		f := link.NewFrame(len(payload))
		copy(f.Bytes(), payload)
		sh.deliverTo(c, f, info)
	}
	if !wanted {
		sh.tally.countBy(p.src, UDPNoPort)
	}
	p.frame.Free()
}

// receivesAll reports whether the socket receives a broadcast or multicast datagram to its port.
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
	c := sh.stack.newUDPConn(wire.ProtoUDP, demux.Place{Local: to}, UDPOptions{})
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
