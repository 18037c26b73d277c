package tcp

// Selective acknowledgments that arrive (RFC 2018, RFC 2883, RFC 6675).
//
// What is acknowledged selectively is marked on the record of sent ranges, which
// is split at the edges of the blocks. Neighbours that are both acknowledged are
// joined, so that a block which is repeated in each acknowledgment costs one
// look-up.
//
// A block is advice, not a promise: the receiver may drop such data (renege)
// until it acknowledges it cumulatively, so nothing is released here (RFC 2018
// section 8), and a retransmission timeout believes the cumulative
// acknowledgment alone if the two contradict each other (see enterLoss).

import "loam/wire"

// receiveSACK takes the blocks of a segment.
func (c *Conn) receiveSACK(ev *arrival) {
	n := min(int(ev.seg.NumSACK), len(ev.seg.SACK))
	first := 0
	if c.isDSACK(ev, n) {
		b := ev.seg.SACK[0]
		c.receiveDSACK(ev, Seq(b.Left), Seq(b.Right))
		first = 1
	}
	// In order, or what this acknowledgment tells at once would look like
	// reordering.
	blocks := ev.seg.SACK
	sortBlocks(blocks[first:n])
	for _, b := range blocks[first:n] {
		left, right := Seq(b.Left), Seq(b.Right)
		if !left.Less(right) || c.snd.nxt.Less(right) || right.LessEq(c.snd.una) {
			continue
		}
		c.sackRange(ev, maxSeq(left, c.snd.una), right)
	}
}

// sortBlocks sorts at most four blocks by their left edge.
func sortBlocks(b []wire.SACKBlock) {
	for i := 1; i < len(b); i++ {
		for j := i; j > 0 && Seq(b[j].Left).Less(Seq(b[j-1].Left)); j-- {
			b[j], b[j-1] = b[j-1], b[j]
		}
	}
}

// isDSACK reports whether the first block tells of data that came twice: it lies
// in front of the cumulative acknowledgment, or inside of the second block (RFC
// 2883 section 4).
func (c *Conn) isDSACK(ev *arrival, n int) bool {
	left, right := Seq(ev.seg.SACK[0].Left), Seq(ev.seg.SACK[0].Right)
	if !left.Less(right) {
		return false
	}
	if right.LessEq(Seq(ev.seg.Ack)) {
		return true
	}
	if n < 2 {
		return false
	}
	left2, right2 := Seq(ev.seg.SACK[1].Left), Seq(ev.seg.SACK[1].Right)
	return left2.LessEq(left) && right.LessEq(right2)
}

// sackRange marks [left, right).
func (c *Conn) sackRange(ev *arrival, left, right Seq) {
	for i := c.sent.find(left); i < c.sent.len(); i++ {
		r := c.sent.at(i)
		if right.LessEq(r.seq) {
			return
		}
		if r.flags&sentSacked != 0 {
			continue
		}
		j, ok := c.isolate(i, left, right)
		if !ok {
			continue
		}
		r = c.sent.at(j)
		ev.sacked = true
		c.delivered(ev, r)
		c.sent.setFlags(r, sentSacked, sentLost|sentRetrans)
		i = c.joinSacked(j)
	}
}

// isolate splits range i so that one range lies inside of [left, right), and
// returns its index. It does not if less than a segment would be cut out of the
// middle (no receiver of whole segments acknowledges that, and it would let a
// peer shred the record) or if there is no room to split.
func (c *Conn) isolate(i int, left, right Seq) (int, bool) {
	r := c.sent.at(i)
	from, to := maxSeq(left, r.seq), minSeq(right, r.end)
	if from != r.seq && to != r.end && to.Sub(from) < int(r.mss) {
		return 0, false
	}
	if to != r.end && !c.sent.split(i, to) {
		return 0, false
	}
	if from != c.sent.at(i).seq {
		if !c.sent.split(i, from) {
			return 0, false
		}
		i++
	}
	return i, true
}

// joinSacked joins range i with neighbours that are acknowledged as well.
func (c *Conn) joinSacked(i int) int {
	if i+1 < c.sent.len() && c.sent.at(i+1).flags&sentSacked != 0 {
		c.sent.join(i)
	}
	if i > 0 && c.sent.at(i-1).flags&sentSacked != 0 {
		i--
		c.sent.join(i)
	}
	return i
}

// pipe is how many bytes are taken to be in the network (RFC 6675 section 4).
func (c *Conn) pipe() int {
	q := &c.sent
	n := c.flight() - int(q.sacked) - int(q.lost) + int(q.retrans)
	if c.rec.dups > 0 {
		n -= c.dupBytes()
	}
	return max(n, 0)
}
