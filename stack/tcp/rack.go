package tcp

// Loss detection by time (RACK, RFC 8985 section 6): a range is lost if another one sent sufficiently later
// has been delivered. RACK requires selective acknowledgments; without them, recovery.go counts duplicates.
//
// Three duplicate acknowledgments still matter. Until reordering has been seen, three segments acknowledged
// out of order mean immediate loss (section 6.2 step 4), as in RFC 5681 and RFC 6675.

// rack holds the state of RFC 8985 sections 5.2 and 5.3.
type rack struct {
	at         Time // send time of the delivered range that was sent last (RACK.xmit_ts)
	rtt        Time // round trip time of that range
	end        Seq  // end of that range (RACK.end_seq)
	fack       Seq  // highest sequence number delivered (RACK.fack)
	round      Seq  // SND.NXT when the reordering window was last enlarged
	inRound    bool
	reordering bool   // reordering has been observed
	mult       uint8  // reordering window in quarters of the minimum round trip time
	persist    uint8  // number of recoveries after which the reordering window returns to its smallest size
	degree     uint16 // largest observed reordering in segments
}

const (
	dupThresh = 3

	// rackPersist is the number of recoveries for which an enlarged reordering window is kept (RFC 8985 section 6.2
	// step 4).
	rackPersist = 16
)

func (r *rack) init(iss Seq) { r.fack, r.end, r.mult = iss, iss, 1 }

// sentAfter reports whether one range was sent after another: the first at time t1 with its end at s1, the other at t2 with
// its end at s2.
func sentAfter(t1 Time, s1 Seq, t2 Time, s2 Seq) bool {
	return t1 > t2 || t1 == t2 && s2.Less(s1)
}

// rackDelivered performs steps 2 and 3 of RFC 8985 section 6.2 for one delivered range: it updates the state and
// detects reordering.
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

// rackTrusts reports whether the delivered transmission of s was the last one. For a retransmitted range, the
// echoed timestamp or the elapsed time may show that an earlier one was delivered.
//
// Section 6.2 step 2 checks the timestamp for every range. However, data after a hole does not change the
// timestamp that the receiver echoes (RFC 7323 section 4.3). The echo would contradict every retransmission
// after the first hole, and only a timeout would detect that one was lost again. The timestamp is therefore
// checked only for the range that moved SND.UNA.
func (c *Conn) rackTrusts(ev *arrival, s *sent) bool {
	if s.sends == 1 {
		return true
	}
	if c.ts.on && ev.seg.HasTimestamps && s.seq == c.snd.una && Seq(ev.seg.TSEcr).Less(Seq(c.ts.clock(s.at))) {
		return false
	}
	return ev.now-s.at >= c.rtt.min
}

// reorderWindow returns how much later than a range another range must have been sent, before its delivery shows that
// the range is lost (RFC 8985 section 6.2 step 4).
func (c *Conn) reorderWindow() Time {
	if !c.rack.reordering && (c.rec.state >= CARecovery || c.sent.sackedSegs >= dupThresh) {
		return 0
	}
	return min(Time(c.rack.mult)*c.rtt.min/4, c.rtt.srtt)
}

// rackDSACK widens the reordering window, once per round trip, after the peer has reported an unnecessary
// retransmission (RFC 8985 section 6.2 step 4).
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

// rackRecovered counts down the recoveries for which an enlarged window is kept.
func (c *Conn) rackRecovered() {
	r := &c.rack
	if r.persist == 0 {
		return
	}
	if r.persist--; r.persist == 0 {
		r.mult = 1
	}
}

// detectLoss implements step 5 of RFC 8985 section 6.2: it marks lost ranges, and arms the timer for ranges that will
// be lost if no acknowledgment arrives in time. It returns the number of bytes marked.
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
				break // all later ranges were sent even later
			}
			continue
		}
		if left := s.at + c.rack.rtt + window - now; left > 0 {
			wait = max(wait, left)
			continue
		}
		lost += s.len()
		c.takeForLost(now, i)
	}
	c.timers.stop(timerReorder)
	if wait > 0 {
		c.timers[timerReorder] = now + wait
	}
	return lost
}

// reorderTimeout runs when data has not been acknowledged within the reordering window, although later data was delivered.
func (c *Conn) reorderTimeout(now Time) {
	ev := arrival{now: now, before: c.pipe()}
	if ev.lost = c.detectLoss(now); ev.lost > 0 && c.rec.state < CARecovery && !c.mtuProbeLost(now) {
		c.enterRecovery(&ev)
	}
}
