package tcp

// Step 5 of SEGMENT ARRIVES (RFC 9293 section 3.10.7.4): the ACK field. Acknowledged ranges are removed from the record
// of data in flight. The implications about loss and congestion are collected in an arrival, which recovery.go
// evaluates.

import "loam/wire"

// arrival collects the effects of one acknowledgment.
type arrival struct {
	now     Time
	seg     *Segment
	before  int // bytes in the network before the acknowledgment (pipe)
	acked   int // bytes newly acknowledged cumulatively
	deliver int // bytes newly acknowledged, cumulatively or selectively
	lost    int // bytes that are newly considered lost

	oldest, newest Time // send times of the first and the last acknowledged range that was sent only once; -1: none
	resent         bool // a retransmitted range was acknowledged cumulatively
	original       bool // a range that was sent once and precedes the recovery point was delivered
	sacked         bool // ranges were newly acknowledged selectively
	dsack          bool // the peer reported data that it has received twice (DSACK)
	dup            bool // a duplicate acknowledgment (RFC 5681 section 2)
}

// receiveAck is the fifth step of segment arrival, the check of the ACK field (RFC 9293 section 3.10.7.4). It reports whether
// processing of the segment continues.
func (c *Conn) receiveAck(now Time, seg *Segment) bool {
	ack := Seq(seg.Ack)
	if c.state == SynReceived {
		if !c.acksSYN(seg) {
			c.count(DropAck)
			c.refuse(seg)
			return false
		}
		c.ackedSYN(now, seg)
		c.snd.wl1 = Seq(seg.Seq) - 1
	}
	// RFC 5961 section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT. As on Linux, numbers before the number of the SYN
	// are also rejected, because they never existed.
	oldest := min(uint64(c.snd.maxWnd), c.snd.off+1)
	if d := ack.Sub(c.snd.una); d > c.flight() || d < -int(oldest) {
		c.count(DropAck)
		c.challenge(now)
		return false
	}
	ev := arrival{now: now, seg: seg, before: c.pipe(), oldest: -1, newest: -1}
	if c.rate != nil {
		c.checkLimited()
		c.rate.begin()
	}
	changed := c.updateWindow(seg)
	ev.dup = ack == c.snd.una && c.flight() > 0 && seg.len() == 0 && !changed
	if c.snd.una.Less(ack) {
		c.acknowledge(&ev, ack)
	}
	if seg.NumSACK > 0 && c.rcv.sackOK {
		c.receiveSACK(&ev)
	}
	if ev.acked > 0 || c.sent.len() > 0 {
		c.react(&ev)
	}
	return c.afterAck(now)
}

// updateWindow records the offered window and reports whether it changed. A segment older than the one that
// last set the window (SND.WL1, SND.WL2) is ignored.
func (c *Conn) updateWindow(seg *Segment) bool {
	seq, ack := Seq(seg.Seq), Seq(seg.Ack)
	if ack.Less(c.snd.una) || !c.snd.wl1.Less(seq) && (c.snd.wl1 != seq || ack.Less(c.snd.wl2)) {
		return false
	}
	c.snd.wl1, c.snd.wl2 = seq, ack
	wnd := uint32(seg.Window) << c.snd.scale
	changed := wnd != c.snd.wnd
	c.snd.wnd = wnd
	c.snd.maxWnd = max(c.snd.maxWnd, wnd)
	if wnd > 0 {
		c.snd.persists = 0
	}
	return changed
}

// acknowledge removes the data before the sequence number ack from the record of data in flight.
func (c *Conn) acknowledge(ev *arrival, ack Seq) {
	for c.sent.len() > 0 {
		r := c.sent.at(0)
		if ack.LessEq(r.seq) {
			break
		}
		if ack.Less(r.end) {
			part := *r
			part.end = ack
			part.flags &^= sentFIN
			part.countSegments()
			c.ackedRange(ev, &part)
			c.sent.trimFront(ack)
			break
		}
		c.ackedRange(ev, r)
		c.sent.pop()
	}
	ev.acked = ack.Sub(c.snd.una)
	c.snd.off += uint64(ev.acked)
	c.snd.una = ack
	c.snd.progress = ev.now
	c.snd.retries = 0
	if c.search != nil {
		c.searchAcked(ev.now)
	}
	if c.snd.urgent && c.snd.up.LessEq(ack) {
		c.snd.urgent = false
	}
	if c.snd.small.Less(ack) {
		c.snd.small = ack
	}
	c.out.Release(min(c.snd.off, c.snd.end))
	c.measure(ev)
	switch {
	case c.sent.len() == 0:
		c.timers.stop(timerRTO)
		c.idle(ev.now)
	case !c.impatient():
		c.armRTO(ev.now) // the timer restarts (RFC 6298 rule 5.3)
	}
}

// ackedRange records the cumulative acknowledgment of the first range in flight, or of a part of it.
func (c *Conn) ackedRange(ev *arrival, r *sent) {
	if r.sends > 1 {
		ev.resent = true
	}
	if r.flags&sentSacked == 0 {
		c.delivered(ev, r, 0)
	}
}

// delivered records that the peer has received range i, or the part r of it.
func (c *Conn) delivered(ev *arrival, r *sent, i int) {
	ev.deliver += r.len()
	if c.rate != nil {
		c.rate.arrives(ev.now, r, c.sent.transit(i))
	}
	c.stats.delivered += uint32(r.segs)
	if c.ecn.on && ev.seg.Flags.Has(wire.ECE) {
		c.stats.deliveredCE += uint32(r.segs)
	}
	c.snd.proven = max(c.snd.proven, uint16(min(int(r.mss), r.len())))
	if r.sends == 1 {
		if ev.oldest < 0 {
			ev.oldest = r.at
		}
		ev.newest = r.at
		if r.end.LessEq(c.rec.point) {
			ev.original = true
		}
	}
	c.rackDelivered(ev, r)
}

// measure takes a round trip time from an acknowledgment of new data. For a range sent once, it counts from
// the send time (Karn's algorithm, RFC 6298 section 3). Otherwise it uses the echoed timestamp (RFC 7323
// section 4).
func (c *Conn) measure(ev *arrival) {
	var d Time
	switch {
	case !ev.resent && ev.oldest >= 0:
		d = max(ev.now-ev.oldest, 1)
	case c.ts.on:
		d = c.ts.since(ev.now, ev.seg.TSEcr)
	}
	if d > 0 {
		// RFC 7323 appendix G expects one sample per two segments. If devices merge segments, each acknowledgment covers
		// more segments and there are fewer samples. Without this correction, a bad measurement would influence the average
		// for hundreds of samples.
		share := max(ev.acked, 2*int(c.window.MSS))
		c.rtt.sample(c.cfg, ev.now, d, (ev.before+share-1)/share)
	}
}

// afterAck changes state when our FIN has been acknowledged. It reports whether the connection still exists.
func (c *Conn) afterAck(now Time) bool {
	if !c.finAcked() {
		return true
	}
	switch c.state {
	case FinWait1:
		c.state = FinWait2
		if c.gone {
			c.boundFinWait2(now)
			return c.state != Closed
		}
	case Closing:
		c.enterTimeWait(now)
	case LastAck:
		c.close(finished)
		return false
	}
	return true
}
