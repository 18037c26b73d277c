package tcp

// SEGMENT ARRIVES (RFC 9293 section 3.10.7), in the order of the RFC. Steps 5 to 8 are in ack.go, urgent.go
// and text.go. Step 3, security compartments, is omitted, which section 3.10.7.4 permits.

import (
	"loam/stack/tcp/ranges"
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// Receive processes one received segment. It does not keep the payload.
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
	c.keep.received, c.keep.probes = now, 0
	c.snd.probes = 0
	if c.receiveAck(now, seg) {
		c.ts.update(now, seg, c.rcv.lastAck)
		if seg.Flags.Has(wire.URG) {
			c.receiveUrgent(seg)
		}
		c.text(now, seg, Seq(seg.Seq))
	}
}

// acceptable implements step 1 of RFC 9293 section 3.10.7.4: it reports whether the segment is new and inside the
// window. A segment that is not acceptable is answered with an acknowledgment.
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
			// RFC 7323 section 3.2: a segment without a negotiated option SHOULD be dropped silently and MUST
			// NOT end the connection. A SYN continues to the challenge below, so that a peer that has lost
			// its state can remove ours.
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

// len returns SEG.LEN, which includes SYN and FIN.
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

// inWindow implements the table of RFC 9293 section 3.10.7.4, with two exceptions. If the window is closed, a segment
// that begins at RCV.NXT is accepted for its ACK, URG and RST; step 7 cuts off its data. A segment without data may lie
// at the right edge, because a peer that has filled the window has no other number with which to acknowledge our data.
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

// answerUnacceptable acknowledges a segment that was dropped because it is outside the receive window. A segment
// without data may itself be such an answer. Answers to it are therefore rate-limited, so that two sides that disagree
// do not exchange acknowledgments for ever.
func (c *Conn) answerUnacceptable(now Time, seg *Segment, n int) {
	switch {
	case n == 0:
		c.challenge(now)
		return
	case Seq(seg.Seq).Less(c.rcv.nxt):
		c.count(DuplicatesIn)
		c.rcv.noteDuplicate(ranges.Span{From: Seq(seg.Seq), To: sequence.Min(Seq(seg.Seq).Add(n), c.rcv.nxt)})
	}
	c.todo |= todoAck
	if c.state == TimeWait && seg.Flags.Has(wire.FIN) {
		c.restartTimeWait(now)
	}
}

// receiveControl implements steps 2 and 4 of RFC 9293 section 3.10.7.4, the checks of RST and SYN. It also drops
// segments without ACK.
func (c *Conn) receiveControl(now Time, seg *Segment) {
	switch {
	case seg.Flags.Has(wire.RST):
		c.receiveReset(now, seg)
	case seg.Flags.Has(wire.SYN):
		// RFC 5961 section 4: whatever its number, the answer is a challenge. A peer that has lost its state
		// then resets the connection. RFC 9293 would return a passive connection in SYN-RECEIVED to LISTEN
		// instead, for any SYN that hits the window.
		c.count(DropSYN)
		c.challenge(now)
	default:
		c.count(DropNoAck)
	}
}

// receiveReset implements step 2 with RFC 5961 section 3. A reset is accepted only if its number equals RCV.NXT. Elsewhere
// in the window it is answered with a challenge acknowledgment. In TIME-WAIT it is ignored (RFC 1337, fix 1).
// In CLOSE-WAIT, where the program can only write, the error is ErrPipe, as on Linux.
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
		c.close(finished) // the peer has received all our data
	case c.state == CloseWait:
		c.close(brokenPipe)
	default:
		c.close(wasReset)
	}
}

// refuse answers one segment with a reset numbered from the segment's acknowledgment. The state of the
// connection does not change.
func (c *Conn) refuse(seg *Segment) {
	c.snd.refuse = Seq(seg.Ack)
	c.todo |= todoRefuse
}
