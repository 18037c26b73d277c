package tcp

// When to acknowledge (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).
//
// Data in order is acknowledged with the second full segment, or with half of a small buffer, so that the
// peer need not wait. Otherwise it is acknowledged after a delay, in the hope that outgoing data can carry
// the acknowledgment.
//
// Data is acknowledged at once in these cases: it is out of order or fills a gap; it carries a FIN; or the
// connection is at its start, where the peer is in slow start and each acknowledgment opens its window. A
// connection becomes interactive when data is sent within the acknowledgment delay after data arrived. That
// ends the immediate acknowledgments at the start, since a reply may carry the next one.
//
// A peer may have nothing more to send until it gets an answer; small devices keep one segment in flight. It
// shows this by PSH or by a segment that is not full. The acknowledgment then leaves as soon as the program
// has read all data, unless the connection is interactive. Sending it after the read lets it carry the window
// that the read has opened, and lets an immediate reply carry it.

import "loam/wire"

// ackPolicy is the state of the decision when to acknowledge.
type ackPolicy struct {
	quick       uint8 // number of acknowledgments that are still sent immediately
	dups        uint8 // number of duplicate acknowledgments to send to a peer without SACK
	interactive bool
	pushed      bool   // the peer has sent a PSH since the last acknowledgment
	last        millis // time at which the last segment with data arrived
}

// quickAcks is the number of segments at the start of a connection that are acknowledged at once. It covers an initial
// window of ten segments and its growth in the next round trip.
const quickAcks = 16

// sawSegment schedules the acknowledgment of n bytes that arrived in order.
func (c *Conn) sawSegment(now Time, seg *Segment, n int) {
	if n == 0 {
		return
	}
	several := n > int(c.snd.advMSS) // the device has merged several segments
	if n > int(c.rcv.mss) && !several {
		c.rcv.mss = uint16(n)
	}
	if seg.Flags.Has(wire.PSH) || n < int(c.rcv.mss) {
		c.ack.pushed = true
	}
	c.measureRTT(now, seg, n)
	if c.ack.last.since(now) > c.rtt.rto && !c.ack.interactive {
		c.ack.quick = max(c.ack.quick, quickAcks) // the peer sends again after a pause
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

// AcksOnRead reports whether an acknowledgment is pending that Consumed sends once the program has read all
// data.
func (c *Conn) AcksOnRead() bool {
	return c.ack.pushed && !c.ack.interactive && c.timers.armed(timerAck) && c.todo&todoAck == 0
}

// delayedAckTimeout sends the delayed acknowledgment. No data was sent in time, so the connection is no
// longer interactive.
func (c *Conn) delayedAckTimeout() {
	c.ack.interactive = false
	c.todo |= todoAck
}

// duplicateAck schedules one more duplicate acknowledgment. For a peer with SACK, one acknowledgment contains all
// information. Other peers count duplicates, so each one is sent.
func (c *Conn) duplicateAck() {
	c.todo |= todoAck
	if !c.rcv.sackOK && c.ack.dups < 255 {
		c.ack.dups++
	}
}

// answered records that data is sent. If data has just arrived, the connection becomes interactive.
func (c *Conn) answered(now Time) {
	if c.rcv.off > 0 && c.ack.last.since(now) <= c.cfg.delayedAck() {
		c.ack.interactive = true
		c.ack.quick = 0
	}
}

// ackSent records that a segment with the current acknowledgment is sent, with or without data.
func (c *Conn) ackSent(withData bool) {
	if !withData && c.ack.dups > 0 {
		c.ack.dups--
	}
	if c.ack.quick > 0 && c.rcv.lastAck != c.rcv.nxt {
		c.ack.quick--
	}
	c.rcv.lastAck = c.rcv.nxt
	c.ack.pushed = false
	c.todo &^= todoAck
	if b := c.rcv.behind; b != nil && b.Unreported() && c.rcv.sackOK {
		c.todo |= todoAck
	}
	c.timers.stop(timerAck)
}

// SetQuickAck starts or stops immediate acknowledgments for a while (TCP_QUICKACK).
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
