package tcp

// The persist timer. It runs while data waits and nothing is in flight whose acknowledgment could open the
// window.
//
// While its window is closed, the peer is probed (RFC 9293 section 3.8.6.1): first after one RTO, then at
// doubling intervals, for as long as it answers. The probe is an old sequence number without data, which a
// receiver must acknowledge (section 3.10.7.4).
//
// Rejected: a byte of new data, as the section describes. If the window has opened in the meantime, the byte
// is accepted, and every later segment starts one byte off.
//
// The timer also sends data that is held back although the window is open: the window is too small for a
// segment worth sending (silly window avoidance, section 3.8.6.2.1), or the program has called SetCork or
// SetMore.

import "time"

// corkTime is the longest time that SetCork and SetMore hold data back.
const corkTime = 200 * time.Millisecond

// hold is called when nothing can be sent now. It arms the persist timer unless another event is expected that allows
// sending.
func (c *Conn) hold(now Time) {
	if c.sent.len() > 0 || c.state < Established || c.unsent() == 0 && (!c.snd.fin || c.snd.finSent) {
		c.timers.stop(timerPersist)
		return
	}
	if c.timers.armed(timerPersist) {
		return
	}
	d := c.backedOff(c.snd.persists)
	if c.snd.wnd > 0 && (c.snd.cork || c.snd.more) {
		d = min(d, corkTime)
	}
	c.timers[timerPersist] = now + d
}

// persistTimeout runs when data has waited for the duration of the persist timer.
func (c *Conn) persistTimeout(now Time) {
	if c.snd.wnd > 0 {
		c.snd.force = true
		return
	}
	retries := c.cfg.retries()
	switch {
	case c.snd.userTimeout > 0 && now-c.snd.progress >= c.snd.userTimeout.duration(),
		int(c.snd.probes) >= retries:
		c.close(c.failure())
		return
	case c.gone && int(c.snd.persists) >= retries:
		// After Close no program uses the connection. A peer that answers probes forever would hold memory forever.
		c.reset(timedOut)
		return
	}
	if c.snd.probes < 255 {
		c.snd.probes++
	}
	if c.snd.persists < maxBackoff {
		c.snd.persists++
	}
	c.todo |= todoPoke
}
