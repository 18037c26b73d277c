package tcp

// Duplicate acknowledgments, for peers without SACK (RFC 5681 section 3.2, RFC
// 6582). Each stands for a segment that has left the network: it is taken out of
// the pipe as if it had been acknowledged selectively, which gives limited
// transmit (RFC 3042) and the inflated window of fast recovery without rules of
// their own.

// dupBytes is what the duplicates stand for: never more than what is in flight
// and not lost, less the one segment that is missing.
func (c *Conn) dupBytes() int {
	room := c.flight() - int(c.sent.lost) + int(c.sent.retrans)
	return max(0, min(int(c.rec.dups)*int(c.window.MSS), room))
}

// duplicate counts a duplicate acknowledgment: no more than there were segments in
// flight when recovery began (RFC 5681 section 3.2 step 4), and outside of it no
// more than tell of loss.
func (c *Conn) duplicate(ev *arrival) {
	most := uint32(dupThresh)
	if c.rec.state == CARecovery {
		most += c.rec.prr.flight / c.window.MSS
	}
	if c.rec.dups < most {
		c.rec.dups++
		ev.deliver += int(c.window.MSS)
	}
}

// lowerDups takes off the duplicates what a cumulative acknowledgment covers.
// They had been counted as delivered already.
func (c *Conn) lowerDups(ev *arrival) {
	mss := int(c.window.MSS)
	segs := (ev.acked + mss - 1) / mss
	known := min(max(segs-1, 0), int(c.rec.dups))
	c.rec.dups -= uint32(known)
	ev.deliver = max(ev.deliver-known*mss, mss)
}

// markFirstLost takes the first segment in flight for lost.
func (c *Conn) markFirstLost(ev *arrival) {
	r := c.sent.at(0)
	if r.resend() {
		return
	}
	if r.len() > int(r.mss) {
		c.sent.split(0, r.seq.Add(int(r.mss)))
		r = c.sent.at(0)
	}
	ev.lost += r.len()
	c.sent.setFlags(r, sentLost, sentRetrans)
}

// impatient reports whether the retransmission timer is left to run: without
// SACK one hole is found in a round trip, so that after many losses a timeout and
// slow start are faster. Only the first partial acknowledgment starts the timer
// again (RFC 6582 section 3.2 step 3, the Impatient variant of section 4).
func (c *Conn) impatient() bool {
	return c.rec.state == CARecovery && c.rec.partial && c.snd.una.Less(c.rec.point)
}
