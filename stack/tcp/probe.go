package tcp

// Tail loss probe (RFC 8985 section 7). If the last segments of a flight are lost, no later segment can
// reveal the loss, and only the timeout would. Therefore one segment is sent after about two round trips of
// silence, either new data or the last segment again. Its acknowledgment starts loss detection.
//
// A probe with new data has up to two segments, where section 7.3 has one. If only an acknowledgment is
// missing, the peer delays its answer to a single segment in the hope of a second one (RFC 5681 section 4.2).
// On Linux the delay is 40 ms, hundreds of round trips within a building. Limited transmit also sends two
// segments beyond the window (RFC 3042), and RFC 9002 section 6.2.4 allows at most two.

import "time"

// A probe is also sent in fast recovery, as in RFC 9002 section 6.2. RFC 8985 section 7.2 relies on the retransmission
// timeout there. A peer that merges segments answers everything in flight with one acknowledgment. If that acknowledgment is
// lost, or if a retransmission is lost and nothing was sent after it, no more acknowledgments arrive. Without new data, the
// probe retransmits the first missing segment.

// probe holds the state of tail loss probes (RFC 8985 section 5.3).
type probe struct {
	end     Seq   // SND.NXT when the probe was sent (TLP.end_seq)
	pending uint8 // number of segments with new data that may still be sent for the probe
	on      bool  // a probe is outstanding
	again   bool  // the probe was a retransmission (TLP.is_retrans)
	doubled bool  // the peer reported the probe as a duplicate
}

// probeSegments is the number of segments of new data in a probe.
const probeSegments = 2

// probeAckDelay is the longest delay of a peer's acknowledgment of less than two full segments
// (TLP.max_ack_delay).
const probeAckDelay = 200 * time.Millisecond

// armProbe sets the timer (RFC 8985 section 7.2). It never expires after the retransmission timeout, which it then
// replaces once.
func (c *Conn) armProbe(now Time) {
	recovering := c.rec.state == CARecovery && c.flight() > int(c.sent.sacked)
	if !c.rcv.sackOK || c.probe.on || c.sent.len() == 0 || c.state < Established ||
		!recovering && (c.rec.state != CAOpen || c.sent.sacked > 0) {
		c.timers.stop(timerProbe)
		c.todo &^= todoProbe
		return
	}
	d := time.Second
	if c.rtt.srtt > 0 {
		d = 2*c.rtt.srtt + tick
		if c.flight() < 2*int(c.window.MSS) && !recovering { // the peer may delay its acknowledgment until a second segment arrives
			d += probeAckDelay
		}
	}
	c.timers[timerProbe] = min(now+d, c.timers[timerRTO])
}

func (c *Conn) cancelProbe() {
	c.probe.on = false
	c.todo &^= todoProbe
	c.timers.stop(timerProbe)
}

// probeTimeout requests a probe from Poll and allows a whole timeout for its answer.
func (c *Conn) probeTimeout(now Time) {
	c.todo |= todoProbe
	c.armRTO(now)
}

// probeSent records that the probe, or a part of it, has been sent. again means that it was a retransmission.
func (c *Conn) probeSent(again bool, pending int) {
	if !c.probe.on {
		c.count(TailProbes)
	}
	c.probe = probe{end: c.snd.nxt, on: true, again: again, pending: uint8(pending)}
	if pending <= 0 || c.unsent() == 0 || c.windowRoom() <= 0 || c.sent.full() {
		c.todo &^= todoProbe
	}
	c.timers.stop(timerProbe)
}

// probeAcked implements RFC 8985 section 7.4.2: it detects whether the probe has repaired a loss that would otherwise
// not be noticed. For a probe with new data, RACK detects the loss. If the probe was a retransmission, the segment was
// not lost if the peer reports a duplicate or acknowledges it twice.
func (c *Conn) probeAcked(ev *arrival) {
	p := &c.probe
	if !p.on || Seq(ev.seg.Ack).Less(p.end) {
		return
	}
	switch {
	case !p.again, p.doubled, ev.acked == 0 && ev.seg.NumSACK == 0 && ev.dup:
		p.on = false
	case p.end.Less(Seq(ev.seg.Ack)):
		p.on = false
		if c.rate != nil {
			c.rate.model.Marked(&c.window, ev.now)
			return
		}
		c.reduce(ev)
		c.window.Size = min(c.window.Size, c.window.Threshold)
	}
}
