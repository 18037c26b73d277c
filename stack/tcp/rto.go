package tcp

// The retransmission timer (RFC 6298 section 5) and giving up (RFC 9293 section 3.8.3, R2).

// retransmitTimeout runs when the oldest data in flight has not been acknowledged in time.
func (c *Conn) retransmitTimeout(now Time) {
	if c.sent.at(0).resend() && c.resendable() > 0 {
		// The owner had no room to send the segment that the last timeout requested. The timeout therefore proves nothing
		// about the path.
		c.armRTO(now)
		return
	}
	if c.gaveUp(now) {
		c.close(c.failure())
		return
	}
	c.count(Timeouts)
	if c.state < Established {
		c.sent.setFlags(c.sent.at(0), sentLost, sentRetrans)
		c.ecn.asked = false // the ECN bits in the SYN may have caused its loss (RFC 3168 section 6.1.1.1)
	} else {
		c.suspectHole(now)
		c.enterLoss(now)
	}
	// A peer that closes its window over data in flight answers but cannot acknowledge. The path is alive
	// then (RFC 9293 section 3.8.6). After Close, however, no program waits for such a peer, which may be
	// hostile.
	if c.snd.wnd > 0 || c.gone || c.state < Established || now-c.keep.received > 2*c.rto() {
		c.snd.retries++
	}
	if c.rtt.backoff < maxBackoff {
		c.rtt.backoff++
	}
	c.armRTO(now)
}

// armRTO starts or restarts the timer. The timer does not run beyond the user timeout.
func (c *Conn) armRTO(now Time) {
	at := now + c.rto()
	if c.snd.userTimeout > 0 {
		at = min(at, max(now+tick, c.snd.progress+c.snd.userTimeout.duration()))
	}
	c.timers[timerRTO] = at
}

const maxBackoff = 30

// gaveUp reports whether the limit of retransmissions, or of the time without an answer, has been reached.
func (c *Conn) gaveUp(now Time) bool {
	if c.state < Established {
		return int(c.snd.retries) >= c.cfg.synRetries(c.passive)
	}
	if c.snd.userTimeout > 0 {
		return now-c.snd.progress >= c.snd.userTimeout.duration()
	}
	return int(c.snd.retries) >= c.cfg.retries()
}

// failure returns the reason for which the connection ends after it gave up: the last ICMP error, or a timeout.
func (c *Conn) failure() reason {
	if c.soft != finished {
		return c.soft
	}
	return timedOut
}

// enterLoss marks data in flight as lost, as in RFC 8985 section 6.3: the first segment, and every range sent
// so long ago that it should have been acknowledged. Without SACK it marks everything. The window becomes one
// segment more than what may still be in the network.
func (c *Conn) enterLoss(now Time) {
	r := &c.rec
	isNew := r.state < CARecovery || r.point.LessEq(c.snd.una) || r.state == CALoss && c.snd.retries == 0
	eligible := r.state < CARecovery || c.snd.retries > 0
	ev := arrival{now: now, before: c.pipe()}
	c.cancelProbe()
	c.dropMTUProbe()
	if isNew {
		c.remember()
		c.reduce(&ev)
		c.cc.Timeout(&c.window, now)
	}
	r.dups = 0
	c.markTimedOut(now)
	r.state = CALoss
	r.point = c.snd.nxt
	r.frto = frtoOff
	if eligible {
		r.frto = frtoWait
	}
	c.timers.stop(timerReorder)
	c.window.Size = uint32(c.pipe()) + c.window.MSS
}

// markTimedOut marks the ranges that are considered lost after a timeout. If the peer has acknowledged the first range
// selectively but not cumulatively, it has reneged (RFC 2018 section 8). Then all selective acknowledgments are discarded.
func (c *Conn) markTimedOut(now Time) {
	reneged := c.sent.at(0).flags&sentSacked != 0
	patience := c.rack.rtt + c.reorderWindow()
	for i := range c.sent.len() {
		s := c.sent.at(i)
		if reneged {
			c.sent.setFlags(s, 0, sentSacked)
			s.countSegments()
		}
		if s.flags&sentSacked != 0 || s.resend() {
			continue
		}
		if i == 0 || reneged || !c.rcv.sackOK || s.at+patience <= now {
			c.takeForLost(now, i)
		}
	}
}
