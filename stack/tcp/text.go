package tcp

// Steps 7 and 8 of SEGMENT ARRIVES (RFC 9293 section 3.10.7.4): the segment text and the FIN bit.
//
// Data is written to Incoming on arrival, including data after a gap. Data becomes readable (is committed)
// when the gap is filled. Accepted data is never dropped again.

import (
	"loam/stack/tcp/ranges"
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// receiver holds the receive sequence space (RFC 9293 section 3.3.1).
type receiver struct {
	irs     Seq
	nxt     Seq    // RCV.NXT
	edge    Seq    // right edge of the window that the peer knows: RCV.NXT + RCV.WND
	lastAck Seq    // last acknowledgment number sent (Last.ACK.sent of RFC 7323)
	off     uint64 // offset in the incoming stream of the byte with number nxt

	size, max uint32 // size of the receive buffer in bytes, and its maximum
	mss       uint16 // largest payload that was probably a single segment, in bytes
	scale     uint8  // window scale of segments that we send
	scaled    bool
	sackOK    bool

	finSeen bool // the peer's FIN has arrived; its number is finSeq
	closed  bool // the FIN and all data before it have arrived
	finSeq  Seq

	urgentEnd uint64 // RCV.UP: offset at which the announced urgent data ends; 0: none was announced

	dup    ranges.Span  // duplicate range to report to the peer (D-SACK); empty if none
	behind *ranges.List // ranges that have arrived after a gap; nil if there were none recently

	tune tuning
}

// gaps reports whether data has arrived after a gap.
func (r *receiver) gaps() bool { return r.behind != nil && len(r.behind.Ranges) > 0 }

// text processes the data and FIN of a segment. seq is the number of its first byte.
func (c *Conn) text(now Time, seg *Segment, seq Seq) {
	p, fin := seg.Payload, seg.Flags.Has(wire.FIN)
	if len(p) == 0 && !fin || !c.state.receives() {
		return
	}
	c.stats.dataIn++
	if c.ecn.on {
		c.receivedCE(seg)
	}
	if d := c.rcv.nxt.Sub(seq); d > 0 { // the start of the segment has already arrived
		c.rcv.noteDuplicate(ranges.Span{From: seq, To: sequence.Min(c.rcv.nxt, seq.Add(len(p)))})
		c.todo |= todoAck
		p = p[min(d, len(p)):]
		seq = c.rcv.nxt
	}
	if over := seq.Add(len(p)).Sub(c.rcv.edge); over > 0 || over == 0 && fin { // the end of the segment is beyond the window
		p, fin = p[:max(0, len(p)-over)], false
		c.todo |= todoAck
	}
	if len(p) > 0 && c.gone {
		c.count(DropGone)
		// Use the number that the peer expects. It may not have our FIN yet and would challenge any other
		// number (RFC 5961 section 3).
		c.refuse(seg)
		c.close(aborted)
		return
	}
	if fin && !c.rcv.finSeen {
		c.rcv.finSeen, c.rcv.finSeq = true, seq.Add(len(p))
	}
	if c.rcv.finSeen { // data after the FIN is ignored
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

// inOrder processes data at RCV.NXT.
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
		c.tuneWindow(now) // the program may have read data that the owner has not reported yet: count that first
		c.in.Commit(c.rcv.off)
	}
	c.sawSegment(now, seg, len(p))
	if c.rcv.finSeen && c.rcv.nxt == c.rcv.finSeq {
		c.receiveFIN(now)
	}
	if filled || c.rcv.gaps() {
		c.todo |= todoAck // a segment that fills a gap is acknowledged at once (RFC 5681 section 4.2)
	}
}

// noteOverlap prepares a D-SACK report (RFC 2883 section 4.2). n bytes before RCV.NXT were just received; it reports the
// first part of them that had already arrived after a gap.
func (c *Conn) noteOverlap(n int) {
	if c.rcv.dup.Empty() {
		c.rcv.noteDuplicate(c.rcv.behind.Overlap(0, ranges.Span{From: c.rcv.nxt.Add(-n), To: c.rcv.nxt}))
	}
}

// fillGap advances RCV.NXT over the ranges that it has reached. The last range may end with the FIN, which is not data.
func (c *Conn) fillGap() bool {
	from := c.rcv.nxt
	c.rcv.nxt = c.rcv.behind.Take(from)
	if c.rcv.nxt == from {
		return false
	}
	if c.rcv.finSeen && c.rcv.finSeq.Less(c.rcv.nxt) {
		c.rcv.nxt = c.rcv.finSeq
	}
	c.rcv.off += uint64(c.rcv.nxt.Sub(from))
	return true
}

// outOfOrder stores data after a gap and sends a duplicate acknowledgment at once (RFC 5681 section 4.2).
func (c *Conn) outOfOrder(now Time, seq Seq, p []byte, fin bool) {
	c.count(OutOfOrderIn)
	c.stats.outOfOrder++
	end := seq.Add(len(p))
	if fin {
		end++
	}
	c.duplicateAck()
	if c.rcv.behind == nil {
		c.rcv.behind = new(ranges.List)
		c.idle(now)
	}
	overlap, ok := c.rcv.behind.Insert(ranges.Span{From: seq, To: end}, ranges.Limit(c.rcv.size))
	c.rcv.noteDuplicate(overlap)
	if !ok {
		c.count(DropRanges)
		return
	}
	if len(p) > 0 {
		c.in.WriteAt(p, c.rcv.off+uint64(seq.Sub(c.rcv.nxt)))
	}
}

// receiveFIN implements step 8 of segment arrival (RFC 9293 section 3.10.7.4): it processes the FIN of the peer.
func (c *Conn) receiveFIN(now Time) {
	c.rcv.nxt++
	c.rcv.closed = true
	c.rcv.behind = nil // all data before the FIN has arrived, so behind can contain only invalid data beyond the FIN
	c.todo |= todoAck
	switch c.state {
	case Established:
		c.state = CloseWait
	case FinWait1: // our FIN is not acknowledged yet; otherwise the processing of the ACK field would have left this state
		c.state = Closing
	case FinWait2:
		c.enterTimeWait(now)
	}
}
