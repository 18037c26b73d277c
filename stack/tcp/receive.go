package tcp

// SEGMENT ARRIVES (RFC 9293 section 3.10.7), in the order of its text. Steps 5
// to 8 are in ack.go and text.go; step 3, security compartments, is left out as
// section 3.10.7.4 allows.

import "loam/wire"

// Receive takes a segment that arrived. Its payload is not kept.
func (c *Conn) Receive(now Time, seg *Segment) {
	c.count(SegmentsIn)
	c.stats.segsIn++
	switch c.state {
	case Closed:
		c.count(DropClosed)
		return
	case SynSent:
		c.receiveSynSent(now, seg)
		return
	case SynReceived:
		if !c.receiveSynReceived(now, seg) {
			return
		}
	}
	if !c.acceptable(now, seg) {
		return
	}
	if seg.Flags&(wire.RST|wire.SYN|wire.ACK) != wire.ACK {
		c.receiveControl(now, seg)
		return
	}
	c.keep.heard, c.keep.probes = now, 0
	c.snd.probes = 0
	if c.receiveAck(now, seg) {
		c.ts.update(now, seg, c.rcv.lastAck)
		if seg.Flags.Has(wire.URG) {
			c.receiveUrgent(seg)
		}
		c.text(now, seg, Seq(seg.Seq))
	}
}

// acceptable is the first step: is the segment new, and inside of the window?
// If not it is answered by an acknowledgment.
func (c *Conn) acceptable(now Time, seg *Segment) bool {
	n := seg.len()
	if c.ts.on && !seg.Flags.Has(wire.RST) {
		switch {
		case seg.HasTimestamps:
			if c.ts.old(now, seg.TSVal) {
				c.count(DropPAWS)
				c.answerUnacceptable(now, seg, n)
				return false
			}
		case !seg.Flags.Has(wire.SYN):
			// RFC 7323 section 3.2: once agreed upon, a segment without the
			// option SHOULD be dropped silently, and MUST NOT end the
			// connection. A SYN goes on to its challenge, so that a peer that
			// has lost its state can get rid of ours.
			c.count(DropTimestamp)
			return false
		}
	}
	if c.inWindow(Seq(seg.Seq), n) {
		return true
	}
	c.count(DropSequence)
	if !seg.Flags.Has(wire.RST) {
		c.answerUnacceptable(now, seg, n)
	}
	return false
}

// len is SEG.LEN, which counts SYN and FIN.
func (s *Segment) len() int {
	n := len(s.Payload)
	if s.Flags&(wire.SYN|wire.FIN) != 0 {
		if s.Flags.Has(wire.SYN) {
			n++
		}
		if s.Flags.Has(wire.FIN) {
			n++
		}
	}
	return n
}

// inWindow is the table of section 3.10.7.4, with two allowances. Behind a
// closed window, what begins at RCV.NXT is let through for its ACK, URG and RST
// (its data is cut off in step 7). And a segment without data may stand at the
// right edge: a peer that has filled the window has no other number to
// acknowledge our data with.
func (c *Conn) inWindow(seq Seq, n int) bool {
	d, wnd := uint32(seq-c.rcv.nxt), uint32(c.rcv.edge-c.rcv.nxt)
	if d == 0 {
		return true
	}
	if n == 0 {
		return d <= wnd
	}
	return d < wnd || uint32(n)+d-1 < wnd
}

// answerUnacceptable acknowledges what was dropped in the first step. Without
// data it may be an answer itself, so these answers are limited, lest two sides
// that disagree talk for ever.
func (c *Conn) answerUnacceptable(now Time, seg *Segment, n int) {
	switch {
	case n == 0:
		c.challenge(now)
		return
	case Seq(seg.Seq).Less(c.rcv.nxt):
		c.count(DuplicatesIn)
		c.rcv.noteDuplicate(span{Seq(seg.Seq), minSeq(Seq(seg.Seq).Add(n), c.rcv.nxt)})
	}
	c.todo |= todoAck
	if c.state == TimeWait && seg.Flags.Has(wire.FIN) {
		c.restartTimeWait(now)
	}
}

// receiveControl is the second and fourth step, and a segment without ACK.
func (c *Conn) receiveControl(now Time, seg *Segment) {
	switch {
	case seg.Flags.Has(wire.RST):
		c.receiveReset(now, seg)
	case seg.Flags.Has(wire.SYN):
		// RFC 5961 section 4: whatever its number, answer with a challenge. A
		// peer that has lost its state resets us then. RFC 9293 has a
		// connection in SYN-RECEIVED from a passive open go back to LISTEN
		// instead, at the word of anyone who hits the window.
		c.count(DropSYN)
		c.challenge(now)
	default:
		c.count(DropNoAck)
	}
}

// receiveReset is the second step, with RFC 5961 section 3: a reset counts if
// its number is exactly the next one, and is challenged elsewhere in the window.
// In TIME-WAIT it never counts (RFC 1337, fix 1).
func (c *Conn) receiveReset(now Time, seg *Segment) {
	switch {
	case c.state == TimeWait:
		c.count(DropRST)
	case Seq(seg.Seq) != c.rcv.nxt:
		c.count(DropRST)
		c.challenge(now)
	case c.state == SynReceived && !c.passive:
		c.close(wasRefused)
	case (c.state == Closing || c.state == LastAck) && c.snd.finSent && c.flight() <= 1:
		c.close(finished) // all data had arrived
	default:
		c.close(wasReset)
	}
}

// refuse answers one segment with a reset that takes its number from the
// segment's acknowledgment, and changes nothing else.
func (c *Conn) refuse(seg *Segment) {
	c.snd.refuse = Seq(seg.Ack)
	c.todo |= todoRefuse
}
