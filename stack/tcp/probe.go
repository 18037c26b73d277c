package tcp

// Tail loss probe (RFC 8985 section 7): when the last segments of a flight are
// lost, nothing that was sent later can show it, and only the timeout would. So
// after about two round trips of silence one segment is sent, new or the last
// one again, whose acknowledgment starts loss detection.

import "time"

// probe is the state of section 5.3 that serves it.
type probe struct {
	end     Seq  // SND.NXT when the probe was sent (TLP.end_seq)
	on      bool // a probe is outstanding
	again   bool // it was a retransmission (TLP.is_retrans)
	doubled bool // the peer reported it as a duplicate
}

// probeAckDelay is the most by which a peer delays an acknowledgment of less than
// two full segments (TLP.max_ack_delay).
const probeAckDelay = 200 * time.Millisecond

// armProbe sets the timer (section 7.2). It never lies behind the
// retransmission timeout, which it then replaces once.
func (c *Conn) armProbe(now Time) {
	if !c.rcv.sackOK || c.rec.state != CAOpen || c.probe.on || c.sent.len() == 0 || c.sent.sacked > 0 ||
		c.state < Established {
		c.timers.stop(timerProbe)
		c.todo &^= todoProbe
		return
	}
	d := time.Second
	if c.rtt.srtt > 0 {
		d = 2*c.rtt.srtt + tick
		if c.flight() < 2*int(c.window.MSS) { // or the peer waits for more
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

// probeSent notes that the probe has left.
func (c *Conn) probeSent(again bool) {
	c.count(TailProbes)
	c.todo &^= todoProbe
	c.probe = probe{end: c.snd.nxt, on: true, again: again}
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
