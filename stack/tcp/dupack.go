package tcp

// Duplicate acknowledgments, for peers without SACK (RFC 5681 section 3.2, RFC 6582). Each duplicate stands
// for a segment that has left the network. It is subtracted from the pipe as if the segment had been
// selectively acknowledged. Limited transmit (RFC 3042) and the inflated window of fast recovery follow from
// that without rules of their own.

// dupBytes returns the number of bytes for which the duplicates stand, at most the bytes that are in flight and not lost.
func (c *Conn) dupBytes() int {
	room := c.flight() - int(c.sent.lost) + int(c.sent.retrans)
	return max(0, min(int(c.rec.dups)*int(c.window.MSS), room))
}

// duplicate counts a duplicate acknowledgment. During recovery, the count is limited to the segments in
// flight when recovery began (RFC 5681 section 3.2 step 4) plus dupThresh; otherwise to dupThresh.
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

// lowerDups subtracts the segments of a cumulative acknowledgment from the duplicates, because they have
// already been counted as delivered.
func (c *Conn) lowerDups(ev *arrival) {
	mss := int(c.window.MSS)
	segs := (ev.acked + mss - 1) / mss
	known := min(max(segs-1, 0), int(c.rec.dups))
	c.rec.dups -= uint32(known)
	ev.deliver = max(ev.deliver-known*mss, mss)
}

// markFirstLost marks the first segment in flight as lost.
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
	c.takeForLost(ev.now, 0)
}

// impatient reports whether acknowledgments leave the retransmission timer unchanged. Without SACK, one hole is found per
// round trip, so after many losses a timeout and slow start are faster. Therefore only the first partial acknowledgment
// restarts the timer (RFC 6582 section 3.2 step 3, the Impatient variant of section 4).
func (c *Conn) impatient() bool {
	return c.rec.state == CARecovery && c.rec.partial && c.snd.una.Less(c.rec.point)
}
