package tcp

// The persist timer: data waits and nothing is in flight whose acknowledgment
// could bring news.
//
// Behind a closed window the peer is probed (RFC 9293 section 3.8.6.1), first
// after one RTO, then at doubling intervals, for as long as it answers. The probe
// is an old sequence number without data, which a receiver must answer by an
// acknowledgment (section 3.10.7.4). A byte of new data, as the section
// describes, would do the same; but if the window has opened meanwhile it is
// accepted, and every later segment starts one byte off.
//
// If the window is open but too small for a segment worth sending (silly window
// avoidance, section 3.8.6.2.1), or the program has corked the connection or said that more
// follows, the
// timer overrides that.

import "time"

// corkTime is the longest that SetCork and SetMore hold data back.
const corkTime = 200 * time.Millisecond

// hold is called when there is nothing to send now: it arms the timer if that is
// not going to change by itself.
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

// persistTimeout runs when data has waited.
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
		// Nobody would miss it, and a peer that answers for ever would hold
		// memory for ever.
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
