package tcp

// Selective acknowledgments that we send (RFC 2018, RFC 2883).
//
// The first block tells of the segment that caused the acknowledgment; the
// others repeat the ranges told last, so that each is told several times (RFC
// 2018 section 4). A segment that had arrived before is told as a duplicate, in
// front of all other blocks and only once (RFC 2883 section 4).

import "loam/wire"

// noteDuplicate has the next acknowledgment tell that a span came twice. If one
// is waiting to be told already, the two become one if they touch, or the older
// is left out.
func (r *receiver) noteDuplicate(s span) {
	if !r.sackOK || !s.from.Less(s.to) {
		return
	}
	if !r.dup.empty() && s.from.LessEq(r.dup.to) && r.dup.from.LessEq(s.to) {
		s = span{minSeq(s.from, r.dup.from), maxSeq(s.to, r.dup.to)}
	}
	r.dup = s
}

// blocks is how many blocks the next segment carries.
func (r *receiver) blocks(timestamps bool) int {
	if !r.sackOK {
		return 0
	}
	n := 0
	if r.behind != nil {
		n = int(r.behind.numRecent)
	}
	if !r.dup.empty() {
		n++
	}
	if timestamps {
		return min(n, wire.MaxSACKBlocks-1) // no room for more (RFC 2018 section 3)
	}
	return min(n, wire.MaxSACKBlocks)
}

// putSACK fills out n blocks of a segment.
func (r *receiver) putSACK(out *wire.TCPOptions, n int) {
	out.NumSACK = uint8(n)
	blocks := out.SACK[:n]
	if !r.dup.empty() {
		blocks[0] = wire.SACKBlock{Left: uint32(r.dup.from), Right: uint32(r.dup.to)}
		blocks = blocks[1:]
		r.dup = span{}
	}
	for i := range blocks {
		s := r.behind.recent[i]
		blocks[i] = wire.SACKBlock{Left: uint32(s.from), Right: uint32(s.to)}
	}
}
