package tcp

// Undoing an unnecessary reduction of the window.
//
// A reduction was unnecessary if everything retransmitted had arrived the first time:
//
//   - the first acknowledgment of new data echoes a timestamp from before the first
//     retransmission (Eifel, RFC 3522), or
//   - the peer has reported all retransmitted data as duplicates (D-SACK, RFC 3708), or
//   - after a timeout, data that was never retransmitted arrives (F-RTO, frto.go).
//
// The window returns to its previous size, as on Linux. RFC 4015 is more cautious, but slow start from one
// segment would punish a path for a single delay.

// remember saves the values that a reduction is about to change. A retransmission may already be in flight,
// from a recovery that has ended at its recovery point. Its acknowledgment must not look like one of a first
// transmission, so the stamp of that recovery is kept.
func (c *Conn) remember() {
	r := &c.rec
	r.undoable, r.answered = true, false
	r.stamped = r.stamped && c.sent.retrans > 0
	r.marker = c.snd.una
	r.resent, r.doubled = c.sent.retrans, 0
	r.size0, r.threshold = c.window.Size, c.window.Threshold
}

// noteResent records that n bytes are retransmitted, and the time of the first retransmission.
func (c *Conn) noteResent(now Time, n int) {
	r := &c.rec
	r.resent += uint32(n)
	if !r.stamped {
		r.stamped, r.stamp = true, c.ts.clock(now)
	}
}

// spurious reports whether an acknowledgment shows that the current state began without a loss.
func (c *Conn) spurious(ev *arrival) bool {
	r := &c.rec
	if !r.undoable {
		return false
	}
	if ev.acked > 0 && r.stamped && !r.answered {
		r.answered = true
		if c.ts.on && Seq(ev.seg.TSEcr).Less(Seq(r.stamp)) {
			return true
		}
	}
	return r.resent > 0 && r.doubled >= r.resent
}

// undoLate undoes a reduction whose state has ended, because reports of duplicates take a round trip. After a
// further window of data, undoing is no longer possible.
func (c *Conn) undoLate(ev *arrival) bool {
	r := &c.rec
	if ev.dsack && c.spurious(ev) {
		c.undo(ev.now)
		return true
	}
	if r.expires.LessEq(c.snd.una) {
		r.undoable = false
	}
	return false
}

// undo restores the window and clears the marks of lost ranges.
func (c *Conn) undo(now Time) {
	c.count(Undos)
	r := &c.rec
	c.window.Size = max(c.window.Size, r.size0)
	c.window.Threshold = max(c.window.Threshold, r.threshold)
	r.undoable = false
	c.cc.Undo(&c.window, now)
	if c.sent.lost > 0 {
		for i := range c.sent.len() {
			c.sent.setFlags(c.sent.at(i), 0, sentLost)
		}
	}
	c.rtt.backoff = 0
	c.timers.stop(timerReorder)
	c.searchPassed(r.state == CALoss)
	c.open()
}

// receiveDSACK processes a report that [left, right) arrived twice.
func (c *Conn) receiveDSACK(ev *arrival, left, right Seq) {
	n := right.Sub(left)
	if n > int(c.snd.maxWnd) || c.snd.nxt.Less(right) {
		return
	}
	ev.dsack = true
	c.stats.dsacks += uint32((n + int(c.window.MSS) - 1) / int(c.window.MSS))
	if r := &c.rec; r.undoable && r.marker.LessEq(left) && right.LessEq(r.point) {
		r.doubled += uint32(n)
	}
	if c.probe.on && c.probe.again && right == c.probe.end {
		c.probe.doubled = true
	}
	c.rackDSACK(ev)
}
