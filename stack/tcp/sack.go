package tcp

// Received selective acknowledgments (RFC 2018, RFC 2883, RFC 6675).
//
// Selectively acknowledged data is marked in the record of sent ranges, which is split at the edges of the
// blocks. Acknowledged neighbours are joined, so that a block repeated in each acknowledgment costs one
// lookup.
//
// A block is advice, not a promise: the receiver may drop the data (renege) until it acknowledges it
// cumulatively. Nothing is released here (RFC 2018 section 8). If the two contradict each other, a
// retransmission timeout trusts only the cumulative acknowledgment (see enterLoss).

import (
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// receiveSACK processes the SACK blocks of a segment.
func (c *Conn) receiveSACK(ev *arrival) {
	n := min(int(ev.seg.NumSACK), len(ev.seg.SACK))
	first := 0
	if c.isDSACK(ev, n) {
		b := ev.seg.SACK[0]
		c.receiveDSACK(ev, Seq(b.Left), Seq(b.Right))
		first = 1
	}
	// Process the blocks in order. Otherwise the ranges of one acknowledgment would look reordered.
	blocks := ev.seg.SACK
	sortBlocks(blocks[first:n])
	for _, b := range blocks[first:n] {
		left, right := Seq(b.Left), Seq(b.Right)
		if !left.Less(right) || c.snd.nxt.Less(right) || right.LessEq(c.snd.una) {
			continue
		}
		c.sackRange(ev, sequence.Max(left, c.snd.una), right)
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

// isDSACK reports whether the first block describes duplicate data: it is below the cumulative
// acknowledgment, or is inside the second block (RFC 2883 section 4).
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

// sackRange marks the sequence numbers in [left, right) as selectively acknowledged.
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
		c.delivered(ev, r, j)
		c.sent.setFlags(r, sentSacked, sentLost|sentRetrans)
		i = c.joinSacked(j)
	}
}

// isolate splits range i so that one of the resulting ranges lies between the numbers left and right, and returns the
// index of that range. It returns false if the queue is full, or if less than a segment would be cut out of the middle.
// No receiver of whole segments acknowledges such a part, and a peer could use it to fragment the record of ranges in
// flight.
func (c *Conn) isolate(i int, left, right Seq) (int, bool) {
	r := c.sent.at(i)
	from, to := sequence.Max(left, r.seq), sequence.Min(right, r.end)
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

// joinSacked joins range i with acknowledged neighbours. It returns the index of the result.
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

// pipe returns the estimated number of bytes in the network (RFC 6675 section 4).
func (c *Conn) pipe() int {
	q := &c.sent
	n := c.flight() - int(q.sacked) - int(q.lost) + int(q.retrans)
	if c.rec.dups > 0 {
		n -= c.dupBytes()
	}
	return max(n, 0)
}
