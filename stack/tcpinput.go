package stack

import (
	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// How segments find their connection, and how connections begin and end on a
// shard.

// inputTCP takes a TCP packet. The caller frees the frame, unless the packet has it no
// more afterwards.
func (sh *shard) inputTCP(p *packet) {
	sh.tally.count(TCPReceived)
	b := p.payload()
	var seg tcp.Segment
	var err error
	if seg.TCP, seg.Payload, err = wire.ParseTCP(b); err != nil || p.broadcast {
		sh.tally.count(TCPMalformed)
		return
	}
	if !p.frame.ChecksumValid && !wire.TCPChecksumOK(b, p.src, p.dst) {
		sh.tally.count(TCPChecksum)
		return
	}
	seg.CE = p.ce()
	key := flow{p.dst.As16(), p.src.As16(), seg.DstPort, seg.SrcPort}
	c := sh.conns[key]
	if c != nil && c.machine.State() == tcp.TimeWait && c.machine.CanReuse(sh.now, &seg) {
		sh.remove(c)
		c = nil
	}
	if c != nil && c.elsewhere(p) {
		sh.reset(p, &seg)
		return
	}
	if c == nil {
		if !sh.inputTimeWait(key, &seg) {
			sh.inputTCPUnknown(p, &seg)
		}
		return
	}
	sh.show(c, p, &seg)
	if c.path.ifc != nil && seg.Flags.Has(wire.ACK) {
		sh.confirm(&c.path)
	}
	sh.mark(c)
}

// inputTCPUnknown takes a segment for which there is no connection: the
// beginning of one, the answer to a SYN cookie, something for a forwarder, or
// something to be reset (RFC 9293 section 3.10.7).
func (sh *shard) inputTCPUnknown(p *packet, seg *tcp.Segment) {
	if sh.closing {
		return
	}
	id := tcpID(p, seg)
	if l := sh.listener(p.ifc, id); l != nil {
		if l.input(sh, id, p, seg) {
			return
		}
	} else if p.ifc.acceptAny && sh.forward.inputTCP(sh, id, p, seg) {
		return
	}
	sh.reset(p, seg)
}

// reset answers a segment for which there is no connection.
func (sh *shard) reset(p *packet, seg *tcp.Segment) {
	sh.tally.count(TCPNoPort)
	var h wire.TCP
	if tcp.ResetFor(seg, &h) {
		sh.sendStateless(nil, tcpID(p, seg), &h)
	}
}

// sendStateless sends a segment that belongs to no connection: a reset, or a
// SYN-ACK with a cookie; on is the interface that it goes by, or nil. It is dropped where there is no room.
func (sh *shard) sendStateless(on *Interface, id tcp.ID, h *wire.TCP) {
	path, err := sh.tables.routeOn(on, id.Local.Addr(), id.Remote.Addr())
	if err != nil {
		sh.tally.countBy(id.Remote.Addr(), IPNoRoute)
		return
	}
	l := sh.link(path.ifc)
	if !l.room() {
		sh.tally.count(TCPNoRoom)
		return
	}
	if h.Flags.Has(wire.RST) {
		sh.tally.count(TCPResetsSent)
	}
	h.SrcPort, h.DstPort = id.Local.Port(), id.Remote.Port()
	f := link.NewFrame(0)
	h.Put(f.Prepend(h.Len()))
	finishTCP(f, path.ifc, id.Local.Addr(), id.Remote.Addr())
	ip := ipHeader{atomic: true, ttl: path.hopLimit(), proto: wire.ProtoTCP, src: id.Local.Addr(), dst: id.Remote.Addr()}
	ip.put(f)
	sh.tally.count(TCPSent)
	sh.tally.countSent(id.Remote.Addr(), f.Len())
	l.transmit(path.nextHop, f)
}

// newConn makes the shell of a connection; the caller adds the machine.
func (sh *shard) newConn(id tcp.ID, o TCPOptions) *TCPConn {
	c := &TCPConn{shard: sh, local: id.Local, remote: id.Remote, ipID: uint16(sh.random.Uint32())}
	c.label = sh.stack.flowLabel(id.Local, id.Remote)
	c.options.o = o
	c.sendLimit = minSendBuffer
	c.toSend.SetLimit(minSendBuffer)
	c.timer.Owner = c
	return c
}

// add enters a connection, which has a machine now.
func (sh *shard) add(c *TCPConn) {
	sh.conns[flowOf(c.local, c.remote)] = c
	c.options.apply(sh.now, c)
	sh.mark(c)
}

// remove takes a connection whose machine has ended off the shard.
func (sh *shard) remove(c *TCPConn) {
	if c.removed {
		return
	}
	c.removed = true
	sh.wheel.Cancel(&c.timer)
	c.orphan.Remove()
	delete(sh.conns, flowOf(c.local, c.remote))
	sh.stack.ports.close(c.flow)
	c.toSend.Reset()
	c.leaveListener()
	c.forget()
}

// countEnd counts how a connection ended.
func (sh *shard) countEnd(c *TCPConn) {
	switch c.machine.Err() {
	case tcp.ErrReset, tcp.ErrRefused:
		sh.tally.count(TCPResets)
	case tcp.ErrTimeout:
		sh.tally.count(TCPTimeouts)
	}
}
