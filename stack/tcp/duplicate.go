package tcp

// Selective acknowledgments that we send (RFC 2018, RFC 2883).
//
// The first block tells of the segment that caused the acknowledgment; the
// others repeat the ranges told last, so that each is told several times (RFC
// 2018 section 4). A segment that had arrived before is told as a duplicate, in
// front of all other blocks and only once (RFC 2883 section 4).

import "loam/wire"

// remember makes s the latest range, and forgets those that are part of it.
func (r *receiver) remember(s span) {
	n := uint8(0)
	for _, old := range r.recent[:r.numRecent] {
		if old.to.Less(s.from) || s.to.Less(old.from) {
			r.recent[n] = old
			n++
		}
	}
	n = min(n, uint8(len(r.recent)-1))
	copy(r.recent[1:n+1], r.recent[:n])
	r.recent[0] = s
	r.numRecent = n + 1
}

// forgetRecent drops ranges that RCV.NXT has passed.
func (c *Conn) forgetRecent() {
	r := &c.rcv
	n := uint8(0)
	for _, s := range r.recent[:r.numRecent] {
		if r.nxt.Less(s.from) {
			r.recent[n] = s
			n++
		}
	}
	r.numRecent = n
}

// noteOverlap notes which part of a new span s lies inside range i or one of the
// next.
func (r *receiver) noteOverlap(i int, s span) {
	for ; i < len(r.ranges) && r.ranges[i].from.Less(s.to); i++ {
		both := span{maxSeq(s.from, r.ranges[i].from), minSeq(s.to, r.ranges[i].to)}
		if both.from.Less(both.to) {
			r.noteDuplicate(both)
			return
		}
	}
}

// noteDuplicate has the next acknowledgment tell that a span came twice. If one
// is waiting to be told already, the two become one if they touch, or the older
// is left out.
func (r *receiver) noteDuplicate(s span) {
	if !s.from.Less(s.to) {
		return
	}
	if r.dup.from != r.dup.to && s.from.LessEq(r.dup.to) && r.dup.from.LessEq(s.to) {
		s = span{minSeq(s.from, r.dup.from), maxSeq(s.to, r.dup.to)}
	}
	r.dup = s
}

// noteDuplicate notes that what lies in front of RCV.NXT came again.
func (c *Conn) noteDuplicate(from, to Seq) {
	if c.rcv.sackOK {
		c.rcv.noteDuplicate(span{from, to})
	}
	c.todo |= todoAck
}

// blocks is how many blocks the next segment carries.
func (r *receiver) blocks(timestamps bool) int {
	if !r.sackOK {
		return 0
	}
	n := int(r.numRecent)
	if r.dup.from != r.dup.to {
		n++
	}
	if timestamps {
		return min(n, wire.MaxSACKBlocks-1)
	}
	return min(n, wire.MaxSACKBlocks)
}

// putSACK fills out the blocks of a segment.
func (r *receiver) putSACK(out *wire.TCPOptions) {
	most := len(out.SACK)
	if out.HasTimestamps {
		most-- // no room for more (RFC 2018 section 3)
	}
	n := 0
	if r.dup.from != r.dup.to {
		out.SACK[0] = wire.SACKBlock{Left: uint32(r.dup.from), Right: uint32(r.dup.to)}
		r.dup = span{}
		n = 1
	}
	for _, s := range r.recent[:r.numRecent] {
		if n == most {
			break
		}
		out.SACK[n] = wire.SACKBlock{Left: uint32(s.from), Right: uint32(s.to)}
		n++
	}
	out.NumSACK = uint8(n)
}
