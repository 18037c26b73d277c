package tcp

// Steps 7 and 8 of SEGMENT ARRIVES: the segment text, the FIN bit.
//
// Data is handed to Incoming as it comes, also behind a gap; what is readable is
// committed when the gap is filled. Nothing that was accepted is dropped again.

import "loam/wire"

// receiver is the receive sequence space (RFC 9293 section 3.3.1).
type receiver struct {
	irs     Seq
	nxt     Seq    // RCV.NXT
	edge    Seq    // the right edge that the peer has been told of: RCV.NXT + RCV.WND
	lastAck Seq    // Last.ACK.sent of RFC 7323
	off     uint64 // offset of nxt in the incoming stream

	size, max uint32 // receive buffer, and what it may grow to
	mss       uint16 // largest segment received, as far as it can be one
	scale     uint8  // of the window field of segments sent
	scaled    bool
	sackOK    bool

	finSeen bool // the peer's FIN has come, at finSeq
	closed  bool // and everything in front of it
	urgent  bool // up is set
	finSeq  Seq

	up     Seq         // RCV.UP: the end of the urgent data, as far as the peer has told
	dup    span        // to be told to the peer as a duplicate; empty if none
	behind *reassembly // what has come behind a gap; nil while that has not happened lately

	tune tuning
}

// text takes the data and FIN of a segment, the first of which has number seq.
func (c *Conn) text(now Time, seg *Segment, seq Seq) {
	p, fin := seg.Payload, seg.Flags.Has(wire.FIN)
	if len(p) == 0 && !fin || !c.state.receives() {
		return
	}
	c.stats.dataIn++
	if c.ecn.on {
		c.receivedCE(seg)
	}
	if d := c.rcv.nxt.Sub(seq); d > 0 { // its front has come before
		c.rcv.noteDuplicate(span{seq, minSeq(c.rcv.nxt, seq.Add(len(p)))})
		c.todo |= todoAck
		p = p[min(d, len(p)):]
		seq = c.rcv.nxt
	}
	if over := seq.Add(len(p)).Sub(c.rcv.edge); over > 0 || over == 0 && fin { // its end is not wanted
		p, fin = p[:max(0, len(p)-over)], false
		c.todo |= todoAck
	}
	if len(p) > 0 && c.gone {
		c.count(DropGone)
		// With the number that the peer expects, which may not have our FIN yet: it would
		// challenge any other (RFC 5961 section 3).
		c.refuse(seg)
		c.close(aborted)
		return
	}
	if fin && !c.rcv.finSeen {
		c.rcv.finSeen, c.rcv.finSeq = true, seq.Add(len(p))
	}
	if c.rcv.finSeen { // nothing comes behind it
		if over := seq.Add(len(p)).Sub(c.rcv.finSeq); over > 0 {
			p = p[:max(0, len(p)-over)]
		}
	}
	switch {
	case seq == c.rcv.nxt:
		c.inOrder(now, seg, p)
	case len(p) > 0 || fin:
		c.outOfOrder(now, seq, p, fin)
	}
}

// inOrder takes data at RCV.NXT.
func (c *Conn) inOrder(now Time, seg *Segment, p []byte) {
	if len(p) > 0 {
		c.in.WriteAt(p, c.rcv.off)
		c.rcv.nxt = c.rcv.nxt.Add(len(p))
		c.rcv.off += uint64(len(p))
	}
	filled := false
	if c.rcv.gaps() {
		c.noteOverlap(len(p))
		filled = c.fillGap()
	}
	if len(p) > 0 || filled {
		c.tuneWindow(now) // of what was read before: the owner need not have told
		c.in.Commit(c.rcv.off)
	}
	c.sawSegment(now, seg, len(p))
	if c.rcv.finSeen && c.rcv.nxt == c.rcv.finSeq {
		c.receiveFIN(now)
	}
	if filled || c.rcv.gaps() {
		c.todo |= todoAck // RFC 5681 section 4.2
	}
}

// noteOverlap has the peer told of what it sent twice: the first part of the n bytes in
// front of RCV.NXT that had come behind a gap (RFC 2883 section 4.2).
func (c *Conn) noteOverlap(n int) {
	if c.rcv.dup.empty() {
		c.rcv.noteDuplicate(c.rcv.behind.overlap(0, span{c.rcv.nxt.Add(-n), c.rcv.nxt}))
	}
}

// fillGap takes over the ranges that RCV.NXT has reached. The last one may end
// with the FIN, which is not data.
func (c *Conn) fillGap() bool {
	from := c.rcv.nxt
	c.rcv.nxt = c.rcv.behind.take(from)
	if c.rcv.nxt == from {
		return false
	}
	if c.rcv.finSeen && c.rcv.finSeq.Less(c.rcv.nxt) {
		c.rcv.nxt = c.rcv.finSeq
	}
	c.rcv.off += uint64(c.rcv.nxt.Sub(from))
	return true
}

// outOfOrder takes data behind a gap, and asks for it by a duplicate
// acknowledgment at once (RFC 5681 section 4.2).
func (c *Conn) outOfOrder(now Time, seq Seq, p []byte, fin bool) {
	c.count(OutOfOrderIn)
	c.stats.outOfOrder++
	end := seq.Add(len(p))
	if fin {
		end++
	}
	c.duplicateAck()
	if c.rcv.behind == nil {
		c.rcv.behind = new(reassembly)
		c.idle(now)
	}
	overlap, ok := c.rcv.behind.insert(span{seq, end})
	c.rcv.noteDuplicate(overlap)
	if !ok {
		c.count(DropRanges)
		return
	}
	if len(p) > 0 {
		c.in.WriteAt(p, c.rcv.off+uint64(seq.Sub(c.rcv.nxt)))
	}
}

// receiveFIN is the eighth step.
func (c *Conn) receiveFIN(now Time) {
	c.rcv.nxt++
	c.rcv.closed = true
	c.rcv.behind = nil // but for a peer that sent data behind its FIN, it is empty
	c.todo |= todoAck
	switch c.state {
	case Established:
		c.state = CloseWait
	case FinWait1: // our FIN is not acknowledged, or step 5 would have left this state
		c.state = Closing
	case FinWait2:
		c.enterTimeWait(now)
	}
}
