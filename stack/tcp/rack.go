package tcp

// Loss detection by time (RACK, RFC 8985 section 6): a range is lost if one that
// was sent sufficiently later has been delivered. It needs selective
// acknowledgments; without them recovery.go counts duplicates.
//
// Three duplicate acknowledgments still matter: until reordering has been seen,
// three segments acknowledged out of order mean loss at once (section 6.2 step
// 4), which is the rule of RFC 5681 and RFC 6675.

// rack is the state of section 5.2 and 5.3.
type rack struct {
	at         Time // when the latest sent of the delivered ranges was sent (RACK.xmit_ts)
	rtt        Time // of that range
	end        Seq  // its end (RACK.end_seq)
	fack       Seq  // the highest number delivered (RACK.fack)
	round      Seq  // SND.NXT when the window for reordering last grew
	inRound    bool
	reordering bool   // reordering has been seen
	mult       uint8  // window for reordering, in quarters of the least RTT
	persist    uint8  // recoveries until it shrinks again
	degree     uint16 // segments, of the worst reordering seen
}

const (
	dupThresh = 3

	// Recoveries that an enlarged window for reordering outlasts (section 6.2
	// step 4).
	rackPersist = 16
)

func (r *rack) init(iss Seq) { r.fack, r.end, r.mult = iss, iss, 1 }

// sentAfter reports whether what was sent at t1 and ends at s1 left behind what
// was sent at t2 and ends at s2.
func sentAfter(t1 Time, s1 Seq, t2 Time, s2 Seq) bool {
	return t1 > t2 || t1 == t2 && s2.Less(s1)
}

// rackDelivered is steps 2 and 3 for one delivered range: update the state, look
// for reordering.
func (c *Conn) rackDelivered(ev *arrival, s *sent) {
	r := &c.rack
	if c.rackTrusts(ev, s) {
		r.rtt = ev.now - s.at
		if sentAfter(s.at, s.end, r.at, r.end) {
			r.at, r.end = s.at, s.end
		}
	}
	switch {
	case r.fack.Less(s.end):
		r.fack = s.end
	case s.end.Less(r.fack) && s.sends == 1:
		r.reordering = true
		c.stats.reordered++
		r.degree = max(r.degree, uint16(min(r.fack.Sub(s.seq)/int(c.window.MSS), 1<<16-1)))
	}
}

// rackTrusts reports whether it is the last transmission of s that was
// delivered: for what was sent again, the echoed timestamp or the time taken can
// show that it was an earlier one.
//
// Section 6.2 step 2 asks for the timestamp of every range. But what arrives behind
// a hole does not change the timestamp that the receiver echoes (RFC 7323 section
// 4.3), so that the echo would speak against every retransmission behind the first
// hole, and that a retransmission was lost would be left to a timeout. It tells only
// of the range that moved SND.UNA.
func (c *Conn) rackTrusts(ev *arrival, s *sent) bool {
	if s.sends == 1 {
		return true
	}
	if c.ts.on && ev.seg.HasTimestamps && s.seq == c.snd.una && Seq(ev.seg.TSEcr).Less(Seq(c.ts.clock(s.at))) {
		return false
	}
	return ev.now-s.at >= c.rtt.min
}

// reorderWindow is how much later the later range must have been sent (step 4).
func (c *Conn) reorderWindow() Time {
	if !c.rack.reordering && (c.rec.state >= CARecovery || c.sent.sackedSegs >= dupThresh) {
		return 0
	}
	return min(Time(c.rack.mult)*c.rtt.min/4, c.rtt.srtt)
}

// rackDSACK widens the window for reordering once a round trip after the peer
// has shown that something was sent again for nothing (step 4).
func (c *Conn) rackDSACK(ev *arrival) {
	r := &c.rack
	if r.inRound && Seq(ev.seg.Ack).Less(r.round) {
		return
	}
	r.inRound, r.round = true, c.snd.nxt
	if r.mult < 255 {
		r.mult++
	}
	r.persist = rackPersist
}

// rackRecovered counts the recoveries that a wide window outlasts.
func (c *Conn) rackRecovered() {
	r := &c.rack
	if r.persist == 0 {
		return
	}
	if r.persist--; r.persist == 0 {
		r.mult = 1
	}
}

// detectLoss is step 5: mark what is lost, and arm the timer for what may turn
// out to be lost if nothing more is heard. It returns the bytes marked.
func (c *Conn) detectLoss(now Time) int {
	lost, wait := 0, Time(0)
	window := c.reorderWindow()
	for i := range c.sent.len() {
		s := c.sent.at(i)
		if s.flags&sentSacked != 0 || s.resend() {
			continue
		}
		if !sentAfter(c.rack.at, c.rack.end, s.at, s.end) {
			if s.sends == 1 {
				break // and so was everything behind it, and sent again later still
			}
			continue
		}
		if left := s.at + c.rack.rtt + window - now; left > 0 {
			wait = max(wait, left)
			continue
		}
		lost += s.len()
		c.sent.setFlags(s, sentLost, sentRetrans)
	}
	c.timers.stop(timerReorder)
	if wait > 0 {
		c.timers[timerReorder] = now + wait
	}
	return lost
}

// reorderTimeout runs when data overtaken by other data has not come in time.
func (c *Conn) reorderTimeout(now Time) {
	ev := arrival{now: now, before: c.pipe()}
	if ev.lost = c.detectLoss(now); ev.lost > 0 && c.rec.state < CARecovery {
		c.enterRecovery(&ev)
	}
}
