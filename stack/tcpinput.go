package stack

import (
	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// Assignment of segments to connections, and creation and removal of connections on a shard.

// inputTCP processes a TCP packet. The caller frees p.frame, which is nil afterwards if the connection has kept the frame.
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
		c.settle(sh) // the segment that has led to TIME-WAIT may be of this turn
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

// inputTCPUnknown processes a segment that matches no connection: a connection attempt, the reply to a SYN cookie, a segment
// for a forwarder, or one to be reset (RFC 9293 section 3.10.7).
func (sh *shard) inputTCPUnknown(p *packet, seg *tcp.Segment) {
	if sh.closing {
		return
	}
	sh.countStray(p.ifc, seg)
	id := tcpID(p, seg)
	if l := sh.listeners.Find(id.Remote, id.Local, p.ifc.index); l != nil {
		if l.input(sh, id, p, seg) {
			return
		}
	} else if p.ifc.acceptAny && sh.forward.inputTCP(sh, id, p, seg) {
		return
	}
	sh.reset(p, seg)
}

// reset answers a segment without a connection with a reset, subject to the rate limit.
func (sh *shard) reset(p *packet, seg *tcp.Segment) {
	sh.tally.count(TCPNoPort)
	var h wire.TCP
	switch {
	case !tcp.ResetFor(seg, &h):
	case !sh.allowReset(p.src):
		sh.tally.count(TCPResetsLimited)
	default:
		sh.sendStateless(nil, tcpID(p, seg), &h)
	}
}

// sendStateless sends a segment that belongs to no connection: a reset, or a SYN-ACK with a cookie. on is the interface to
// use, or nil. The segment is dropped if the device has no room.
func (sh *shard) sendStateless(on *Interface, id tcp.ID, h *wire.TCP) {
	path, err := sh.tables.routeOn(on, id.Local.Addr(), id.Remote.Addr())
	if err != nil {
		sh.tally.countBy(id.Remote.Addr(), IPNoRoute)
		return
	}
	l := sh.link(path.ifc)
	if !l.roomForReset() {
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

// newConn creates a connection without its TCP state machine. The caller must create the machine (package tcp) and set it.
func (sh *shard) newConn(id tcp.ID, o TCPOptions) *TCPConn {
	c := &TCPConn{shard: sh, local: id.Local, remote: id.Remote, ipID: uint16(sh.random.Uint32())}
	c.label = sh.stack.flowLabel(id.Local, id.Remote)
	c.options.o = o
	c.sendLimit = uint32(min(minSendBuffer, sh.stack.config.MaxSendBuffer))
	c.toSend.SetLimit(int(c.sendLimit))
	c.timer.Owner = c
	return c
}

// add adds a connection, whose TCP state machine must exist, to the shard.
func (sh *shard) add(c *TCPConn) {
	sh.conns[flowOf(c.local, c.remote)] = c
	sh.strays.Add(c.local, c.remote)
	c.options.apply(sh.now, c)
	sh.mark(c)
}

// remove removes a connection from the shard. Its TCP state machine (package tcp) has ended.
func (sh *shard) remove(c *TCPConn) {
	if c.removed {
		return
	}
	c.removed = true
	sh.wheel.Cancel(&c.timer)
	sh.leaveOrphans(c)
	c.leaveFast(sh)
	delete(sh.conns, flowOf(c.local, c.remote))
	sh.strays.Remove(c.local, c.remote)
	sh.stack.ports.Close(c.flow)
	c.toSend.Reset()
	c.leaveListener()
	c.forget()
}

// countEnd counts how a connection has ended.
func (sh *shard) countEnd(c *TCPConn) {
	switch c.machine.Err() {
	case tcp.ErrReset, tcp.ErrPipe, tcp.ErrRefused:
		sh.tally.count(TCPResets)
	case tcp.ErrTimeout:
		sh.tally.count(TCPTimeouts)
	}
}
