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
	"loam/stack/tcp/ranges"
	"loam/stack/tcp/sequence"
	"loam/wire"
)

// noteDuplicate makes the next acknowledgment report s as a duplicate. If a report is already pending, the two ranges are
// merged if they touch; otherwise s replaces the older range.
func (r *receiver) noteDuplicate(s ranges.Span) {
	if !r.sackOK || !s.From.Less(s.To) {
		return
	}
	if !r.dup.Empty() && s.From.LessEq(r.dup.To) && r.dup.From.LessEq(s.To) {
		s = ranges.Span{From: sequence.Min(s.From, r.dup.From), To: sequence.Max(s.To, r.dup.To)}
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
		n = int(r.behind.NumRecent)
	}
	if !r.dup.Empty() {
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
	if !r.dup.Empty() {
		blocks[0] = wire.SACKBlock{Left: uint32(r.dup.From), Right: uint32(r.dup.To)}
		blocks = blocks[1:]
		r.dup = ranges.Span{}
	}
	if len(blocks) == 0 {
		return
	}
	for i, s := range r.behind.Report(len(blocks)) {
		blocks[i] = wire.SACKBlock{Left: uint32(s.From), Right: uint32(s.To)}
	}
}
