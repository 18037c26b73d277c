package tcp

// When to acknowledge (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
//
// Data in order is acknowledged with the second full segment (or half of a small
// buffer, or the peer would have to wait), or after a delay, in the hope that data
// goes the other way. It is acknowledged at once: out of
// order or filling a gap, at the start (the peer is in slow start, and each
// acknowledgment opens its window), after a FIN. Data that goes out no later after data
// has come in than an acknowledgment may be marks the connection as interactive, and
// ends the hurry at the start: the next acknowledgment may ride on an answer.

type ackPolicy struct {
	quick       uint8 // acknowledgments that are still given at once
	dups        uint8 // duplicate acknowledgments owed to a peer without SACK
	interactive bool
	last        millis // last segment with data
}

// quickAcks covers an initial window of ten segments and what it grows to in the
// next round trip.
const quickAcks = 16

// sawSegment decides on the acknowledgment of n bytes that came in order.
func (c *Conn) sawSegment(now Time, seg *Segment, n int) {
	if n == 0 {
		return
	}
	several := n > int(c.snd.advMSS) // segments that the device has put together
	if n > int(c.rcv.mss) && !several {
		c.rcv.mss = uint16(n)
	}
	c.measureRTT(now, seg, n)
	if c.ack.last.since(now) > c.rtt.rto && !c.ack.interactive {
		c.ack.quick = max(c.ack.quick, quickAcks) // the peer begins anew after a pause
	}
	c.ack.last = at(now)
	switch {
	case several,
		c.ack.quick > 0 && !c.ack.interactive,
		c.rcv.nxt.Sub(c.rcv.lastAck) >= min(2*int(c.rcv.mss), int(c.rcv.size/2)):
		c.todo |= todoAck
	case c.todo&todoAck == 0 && !c.timers.armed(timerAck):
		c.timers[timerAck] = now + c.cfg.delayedAck()
	}
}

// delayedAckTimeout ends the wait. No data went the other way in time: the
// connection is not interactive after all.
func (c *Conn) delayedAckTimeout() {
	c.ack.interactive = false
	c.todo |= todoAck
}

// duplicateAck owes one more duplicate. A peer with SACK learns all from the
// next one; any other counts them, so each is sent.
func (c *Conn) duplicateAck() {
	c.todo |= todoAck
	if !c.rcv.sackOK && c.ack.dups < 255 {
		c.ack.dups++
	}
}

// answered notes that data leaves: the program answers, if data has just come.
func (c *Conn) answered(now Time) {
	if c.rcv.off > 0 && c.ack.last.since(now) <= c.cfg.delayedAck() {
		c.ack.interactive = true
		c.ack.quick = 0
	}
}

// ackSent notes that a segment with the current acknowledgment leaves, with data
// or without.
func (c *Conn) ackSent(withData bool) {
	if !withData && c.ack.dups > 0 {
		c.ack.dups--
	}
	if c.ack.quick > 0 && c.rcv.lastAck != c.rcv.nxt {
		c.ack.quick--
	}
	c.rcv.lastAck = c.rcv.nxt
	c.todo &^= todoAck
	c.timers.stop(timerAck)
}

// SetQuickAck acknowledges at once for a while, or stops that (TCP_QUICKACK).
func (c *Conn) SetQuickAck(now Time, on bool) {
	c.ack.interactive = !on
	c.ack.quick = 0
	if on {
		c.ack.quick = quickAcks
		if c.timers.armed(timerAck) {
			c.todo |= todoAck
		}
	}
}
