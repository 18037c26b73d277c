package tcp

// Tail loss probe (RFC 8985 section 7): when the last segments of a flight are
// lost, nothing that was sent later can show it, and only the timeout would. So
// after about two round trips of silence one segment is sent, new or the last
// one again, whose acknowledgment starts loss detection.
//
// New data is sent two segments at a time, where section 7.3 has one: if all that is
// missing is an acknowledgment, the peer holds back the one for a single segment in
// the hope of a second (RFC 5681 section 4.2), 40 ms with Linux, which on a path
// within a building is hundreds of round trips. Two is what limited transmit sends
// beyond the window too (RFC 3042), and the most that RFC 9002 section 6.2.4 has a
// probe be.

import "time"

// A probe is sent in fast recovery too, as RFC 9002 section 6.2 has it, where
// section 7.2 leaves that to the retransmission timeout. A peer that puts segments
// together answers all that is in flight by one acknowledgment, and if that is lost,
// or the retransmission is and nothing was sent behind it, nothing more is heard.
// What is missing is worth most then: it is sent again if there is no new data.

// probe is the state of section 5.3 that serves it.
type probe struct {
	end     Seq   // SND.NXT when the probe was sent (TLP.end_seq)
	owed    uint8 // segments of new data that may still be sent for it
	on      bool  // a probe is outstanding
	again   bool  // it was a retransmission (TLP.is_retrans)
	doubled bool  // the peer reported it as a duplicate
}

// probeSegments is how many segments of new data make a probe.
const probeSegments = 2

// probeAckDelay is the most by which a peer delays an acknowledgment of less than
// two full segments (TLP.max_ack_delay).
const probeAckDelay = 200 * time.Millisecond

// armProbe sets the timer (section 7.2). It never lies behind the
// retransmission timeout, which it then replaces once.
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
		if c.flight() < 2*int(c.window.MSS) && !recovering { // or the peer waits for more
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

// probeTimeout asks Poll for a probe and gives it a whole timeout's time.
func (c *Conn) probeTimeout(now Time) {
	c.todo |= todoProbe
	c.armRTO(now)
}

// probeSent notes that the probe has left, or a part of it.
func (c *Conn) probeSent(again bool, owed int) {
	if !c.probe.on {
		c.count(TailProbes)
	}
	c.probe = probe{end: c.snd.nxt, on: true, again: again, owed: uint8(owed)}
	if owed <= 0 || c.unsent() == 0 || c.windowRoom() <= 0 || c.sent.full() {
		c.todo &^= todoProbe
	}
	c.timers.stop(timerProbe)
}

// probeAcked is section 7.4.2: did the probe repair a loss that then nobody
// would notice? A new segment leaves that to RACK. For one sent again, it was
// not lost if the peer reports a duplicate, or acknowledges twice.
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
		c.reduce(ev)
		c.window.Size = min(c.window.Size, c.window.Threshold)
	}
}
