package tcp

// Selective acknowledgments that we send (RFC 2018, RFC 2883).
//
// The first block reports the segment that caused the acknowledgment. The other blocks repeat ranges reported
// before, so that each range is reported several times (RFC 2018 section 4). A segment that had arrived
// before is reported as a duplicate, once, in front of all other blocks (RFC 2883 section 4).
//
// One acknowledgment answers all segments received before it. If it has too few blocks for all ranges,
// further acknowledgments carry the rest, since the peer takes unreported data for lost.

import (
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// noteDuplicate makes the next acknowledgment report s as a duplicate. If a report is already pending, the two ranges are
// merged if they touch; otherwise s replaces the older range.
func (r *receiver) noteDuplicate(s span) {
	if !r.sackOK || !s.from.Less(s.to) {
		return
	}
	if !r.dup.empty() && s.from.LessEq(r.dup.to) && r.dup.from.LessEq(s.to) {
		s = span{sequence.Min(s.from, r.dup.from), sequence.Max(s.to, r.dup.to)}
	}
	r.dup = s
}

// blocks returns the number of SACK blocks in the next segment.
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
		return min(n, wire.MaxSACKBlocks-1) // with timestamps, the options have room for one block less (RFC 2018 section 3)
	}
	return min(n, wire.MaxSACKBlocks)
}

// putSACK stores n SACK blocks in the options of a segment.
func (r *receiver) putSACK(out *wire.TCPOptions, n int) {
	out.NumSACK = uint8(n)
	blocks := out.SACK[:n]
	if !r.dup.empty() {
		blocks[0] = wire.SACKBlock{Left: uint32(r.dup.from), Right: uint32(r.dup.to)}
		blocks = blocks[1:]
		r.dup = span{}
	}
	if len(blocks) == 0 {
		return
	}
	for i, s := range r.behind.report(len(blocks)) {
		blocks[i] = wire.SACKBlock{Left: uint32(s.from), Right: uint32(s.to)}
	}
}
