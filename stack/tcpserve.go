package stack

import (
	"net/netip"

	"loam/link"
	"loam/stack/tcp"
	"loam/wire"
)

// The shard's side of a TCPConn. serve passes the program's requests to the TCP state machine, output passes the machine's segments to
// the device, and settle publishes changes to the program.

// serve processes the program's requests. It runs on the shard.
func (c *TCPConn) serve(sh *shard) {
	wish := c.wish.And(^(wishServe | wishCloseWrite | wishClose | wishAbort | wishOptions | wishUrgent))
	if c.removed {
		c.forget()
		return
	}
	m := c.machine
	if wish&wishOptions != 0 {
		c.options.apply(sh.now, c)
	}
	if wish&wishUrgent != 0 {
		m.SetUrgent(c.urgentTo.Load())
	}
	m.SetMore(sh.now, wish&wishMore != 0)
	c.noteWritten(sh)
	m.Consumed(sh.now)
	if wish&wishAbort != 0 || wish&wishClose != 0 && c.received.Readable() > 0 {
		c.sendWritten(sh, wish)
	}
	switch {
	case wish&wishAbort != 0:
		m.Abort(sh.now)
	case wish&wishClose != 0:
		m.Close(sh.now)
	case wish&wishCloseWrite != 0:
		m.CloseWrite(sh.now)
	}
	sh.mark(c)
}

// sendWritten sends data written before a Close that resets the connection, as far as the windows allow. Programs may
// rely on that: on other systems, data has been sent when write returns. For example, a server that rejects a request
// before reading all of it writes the reason and closes.
func (c *TCPConn) sendWritten(sh *shard, wish uint32) {
	if wish&wishCloseWrite != 0 {
		c.machine.CloseWrite(sh.now)
	}
	if c.path.tables != sh.tables {
		c.findPath(sh)
	} else if c.pathSeen != sh.stack.paths.At(sh.now) {
		c.heedPath(sh)
	}
	c.sendAll(sh)
}

// forget frees received data if the program has closed the socket.
func (c *TCPConn) forget() {
	if c.status.Load()&statusClosed != 0 {
		c.received.Reset()
	}
}

// noteWritten informs the TCP state machine of data that the program has written since the last call.
func (c *TCPConn) noteWritten(sh *shard) {
	if end := c.toSend.End(); end != c.sawEnd {
		c.sawEnd = end
		c.machine.Written(sh.now)
	}
}

// quantum is the number of frames that a connection may send before other connections may send.
const quantum = 32

// output sends the segments of the TCP state machine while the device has room, and then publishes changes. It runs on the shard,
// once in each turn for each connection that received a segment, a request or a timeout in that turn.
func (c *TCPConn) output(sh *shard) {
	if c.removed {
		return
	}
	if c.path.tables != sh.tables {
		c.findPath(sh)
	} else if c.pathSeen != sh.stack.paths.At(sh.now) {
		c.heedPath(sh)
	}
	if c.status.Load()&(statusShutRead|statusClosed) == statusShutRead {
		c.discard(sh)
	}
	if c.corked.Load() != 0 {
		c.noteWritten(sh)
	}
	c.sendAll(sh)
	c.settle(sh)
}

// sendAll sends the TCP state machine's segments until there are no more, the device has no room, or the quantum is used up.
func (c *TCPConn) sendAll(sh *shard) {
	var l *txLink
	if c.path.ifc != nil {
		l = sh.link(c.path.ifc)
	}
	var out tcp.Out
	for range quantum {
		if l != nil && !l.room() {
			c.stall(sh, l)
			return
		}
		if len(sh.local) >= maxLocal {
			break
		}
		if !c.machine.Poll(sh.now, c.maxPayload(), &out) {
			return
		}
		if l != nil {
			c.send(sh, l, &out)
		} else {
			c.lose(sh, &out)
		}
	}
	if c.machine.Pending(sh.now) {
		sh.mark(c)
	}
}

// lose drops a segment without a route. The TCP state machine will retransmit it, and gives up if there is no route for long.
func (c *TCPConn) lose(sh *shard, out *tcp.Out) {
	sh.tally.countBy(c.remote.Addr(), IPNoRoute)
	c.machine.ICMP(sh.now, tcp.ICMPUnreachable, out.Seq, 0)
}

// discard discards data that arrives after CloseRead, so that the peer is not blocked. If a reader holds readMu, it discards the
// data itself.
func (c *TCPConn) discard(sh *shard) {
	if n := c.received.Readable(); n > 0 && c.readMu.TryLock() {
		c.received.Discard(n)
		c.readMu.Unlock()
		c.machine.Consumed(sh.now)
	}
}

// stall queues the connection until the device has room. One that is not established does not queue behind those that are.
func (c *TCPConn) stall(sh *shard, l *txLink) {
	if c.stalled || !c.machine.Pending(sh.now) {
		return
	}
	c.stalled = true
	if c.status.Load()&statusConnected == 0 {
		l.opening.Push(c)
	} else {
		l.stalled.Push(c)
	}
}

// findPath looks up the route again after the tables have changed.
func (c *TCPConn) findPath(sh *shard) {
	p, err := sh.tables.routeOn(c.device, c.local.Addr(), c.remote.Addr())
	if err != nil {
		c.path = path{tables: sh.tables}
		return
	}
	c.path = p
	c.path.hops = p.hopLimit()
	c.stalled = false // if it was set, the connection waited on the old path
	c.heedPath(sh)
}

// heedPath applies the current path MTU to the connection.
func (c *TCPConn) heedPath(sh *shard) {
	c.pathSeen = sh.stack.paths.At(sh.now)
	c.narrow = sh.stack.paths.IsNarrow(sh.now, c.remote.Addr())
	c.machine.SetMSS(sh.now, sh.mss(c.device, c.machine.ID()))
}

// maxPayload returns the largest payload of a frame: with segmentation offload as much as fits into an IP packet. 0: one segment.
func (c *TCPConn) maxPayload() int {
	tso, _ := c.segmentation()
	if c.path.ifc != nil && c.path.ifc.offloads.Has(tso) && !c.narrow {
		return wire.MaxIPv4 - wire.IPv4MinLen - wire.TCPMaxLen
	}
	return 0 // 0: each frame carries one segment
}

// segmentation returns the offload flag and frame type for the connection's version of IP.
func (c *TCPConn) segmentation() (link.Offloads, link.GSOType) {
	if c.remote.Addr().Is4() {
		return link.OffloadTSO4, link.GSOTCP4
	}
	return link.OffloadTSO6, link.GSOTCP6
}

// send transmits a segment.
func (c *TCPConn) send(sh *shard, l *txLink, out *tcp.Out) {
	f := link.NewFrame(out.Len)
	if out.Len > 0 {
		c.toSend.ReadAt(f.Bytes(), out.Off)
	}
	headerLen := out.TCP.Len()
	out.TCP.Put(f.Prepend(headerLen))
	sh.tally.count(TCPSent)
	local := l.isLocal()
	if !local {
		finishTCP(f, l.ifc, c.local.Addr(), c.remote.Addr())
	}
	segments := uint16(1)
	if out.Len > out.MSS && out.MSS > 0 {
		f.GSOSize, f.HeaderLen = uint16(out.MSS), uint16(headerLen)
		_, f.GSO = c.segmentation()
		f.ECN = out.Flags.Has(wire.CWR)
		segments = uint16((out.Len + out.MSS - 1) / out.MSS)
	}
	if c.narrow && !local {
		c.ipID = sh.stack.nextID(c.local.Addr(), c.remote.Addr(), wire.ProtoTCP)
	}
	tos, ttl := c.tos, c.ttl
	if ttl == 0 {
		ttl = c.path.hops
	}
	if out.ECT {
		tos |= 2
	}
	if local {
		c.sendLocal(sh, l, f, tos, ttl)
		return
	}
	if c.remote.Addr().Is4() {
		putIPv4(f, &wire.IPv4{ID: c.ipID, DontFragment: !c.narrow, TTL: ttl, TOS: tos, Protocol: wire.ProtoTCP, Src: c.local.Addr(), Dst: c.remote.Addr()})
	} else {
		putIPv6(f, &wire.IPv6{FlowLabel: c.label, HopLimit: ttl, TrafficClass: tos, NextHeader: wire.ProtoTCP, Src: c.local.Addr(), Dst: c.remote.Addr()})
	}
	c.ipID += segments
	sh.tally.countSent(c.remote.Addr(), f.Len())
	l.transmit(c.path.nextHop, f)
}

// finishTCP computes the checksum of a segment, or leaves it to a device with checksum offload.
func finishTCP(f *link.Frame, ifc *Interface, src, dst netip.Addr) {
	b := f.Bytes()
	if ifc.offloads.Has(link.OffloadChecksum) {
		f.NeedsChecksum, f.CsumStart, f.CsumOffset = true, 0, 16
		sum := wire.PseudoSum(wire.ProtoTCP, src, dst, len(b))
		b[16], b[17] = byte(sum>>8), byte(sum)
		return
	}
	wire.PutTCPChecksum(b, src, dst)
}

// settle publishes the state of the TCP state machine: to the program, the listener, and the timer wheel.
func (c *TCPConn) settle(sh *shard) {
	m := c.machine
	old := c.status.Load()
	status := old
	if m.Usable() {
		status |= statusConnected
	}
	c.leaveFast(sh)
	if m.ReadClosed() {
		status |= statusReadClosed
	}
	if m.Done() {
		status |= statusEnded
	}
	if s := m.State(); s == tcp.TimeWait || s == tcp.Closed {
		status |= statusOver
	}
	if status != old {
		c.change(sh, old, status)
	}
	if c.stamped {
		c.stamps.Note(c.received.Committed(), sh.now)
	}
	c.offerLate(sh)
	c.reportUrgent()
	if c.unsentLow.Load() != 0 {
		c.limitSend()
	}
	c.wakeProgram()
	switch {
	case m.Done():
		sh.remove(c)
		return
	case m.State() == tcp.TimeWait && !m.Pending(sh.now) && m.Rest():
		sh.retire(c)
		return
	case status&statusClosed != 0:
		sh.settleOrphan(c)
	}
	c.settleWindow(sh)
	c.settleCork(sh)
	deadline := m.Deadline()
	if c.isWithheld() {
		deadline = min(deadline, c.offerBy)
	}
	sh.wheel.Schedule(&c.timer, deadline)
}

// settleWindow publishes how far the program may read without notifying the shard. If the program has read that far
// meanwhile, it has compared with an older value and did not notify; then settleWindow informs the TCP state machine.
func (c *TCPConn) settleWindow(sh *shard) {
	consumed := c.received.Consumed()
	notify := consumed + uint64(c.machine.Notice())
	c.notify.Store(notify)
	if now := c.received.Consumed(); now >= notify && (now != consumed || c.machine.AcksOnRead()) {
		c.machine.Consumed(sh.now)
		sh.mark(c)
	}
}

// settleCork publishes before which offset a write need not notify the shard. As in settleWindow, the program may have written
// beyond a new value meanwhile.
func (c *TCPConn) settleCork(sh *shard) {
	old, corked := c.corked.Load(), c.machine.CorkedTo()
	if old == corked {
		return
	}
	c.corked.Store(corked)
	if end := c.toSend.End(); old != 0 && end != c.sawEnd && end >= corked {
		c.noteWritten(sh)
		sh.mark(c)
	}
}

// change publishes new status bits and reports the events that follow from them.
func (c *TCPConn) change(sh *shard, old, status uint32) {
	began := status &^ old
	if began&statusEnded != 0 {
		if err := machineError(c.machine.Err()); err != nil && old&statusClosed == 0 {
			c.failure.Store(&err)
		}
		sh.countEnd(c)
	}
	c.status.Or(began)
	if began&statusConnected != 0 {
		if c.machine.State() != tcp.SynReceived {
			c.established(sh)
		}
		c.offer(sh)
	}
	if began&(statusConnected|statusEnded) != 0 && old&statusConnected == 0 {
		c.learnFast(sh)
	}
	var e Events
	if began&(statusReadClosed|statusEnded) != 0 {
		e |= Readable | ReadHangup
		c.readers.Ring()
	}
	if began&(statusConnected|statusEnded) != 0 {
		e |= Writable
		c.writers.Ring()
		c.readers.Ring()
	}
	if began&statusEnded != 0 {
		e |= Hangup
		if c.failure.Load() != nil {
			e |= Error
		}
	}
	c.reportEvents(e)
}

// wakeProgram wakes goroutines that found no data or no room if there is some now. It reports Drained if all data is acknowledged.
func (c *TCPConn) wakeProgram() {
	wish := c.wish.Load()
	if c.arrived(wish) {
		c.wish.And(^wishRead)
		c.readers.Ring()
		c.reportEvents(Readable)
	}
	if wish&wishWrite != 0 && c.status.Load()&statusConnected != 0 {
		c.growSendBuffer()
		if c.hasRoom() {
			c.wish.And(^wishWrite)
			c.writers.Ring()
			c.reportEvents(Writable)
		}
	}
	if wish&wishDrained != 0 && c.toSend.Len() == 0 {
		c.wish.And(^wishDrained)
		c.reportEvents(Drained)
	}
}

// arrived reports whether Readable must be reported now.
func (c *TCPConn) arrived(wish uint32) bool {
	if wish&(wishRead|wishEach) == 0 || !c.hasInput() {
		return false
	}
	if wish&wishEach == 0 {
		return true
	}
	before := c.reportedTo
	c.reportedTo = c.received.Committed()
	return wish&wishRead != 0 || c.reportedTo != before
}

// machineError translates an error of package tcp to an error of sockets.
func machineError(err error) error {
	switch err {
	case nil:
		return nil
	case tcp.ErrReset:
		return ErrReset
	case tcp.ErrPipe:
		return ErrPipe
	case tcp.ErrRefused:
		return ErrRefused
	case tcp.ErrTimeout:
		return ErrTimeout
	case tcp.ErrUnreachable:
		return ErrHostUnreachable
	default:
		return ErrAborted
	}
}
