package tcp

import "loam/stack/tcp/sequence"

// The data that has arrived after a gap: a short sorted list of ranges. The bytes are already in Incoming.
//
// The list is bounded. Otherwise a peer that sends every other byte of the window could make the list as long as the window.
// When the list is full, a segment that would begin a new range is dropped, and the peer retransmits it. As an example, the
// loss of one segment in twenty in a window of 4 MB leaves 140 gaps.

// span is a range of sequence numbers, including from and excluding to.
type span struct{ from, to Seq }

func (s span) empty() bool { return s.from == s.to }

const maxRanges = 256

// rangesOf returns the maximum number of ranges for a window of size bytes. It exceeds maxRanges on long paths, where the
// loss of one segment in twenty leaves a gap every 29,000 bytes.
func rangesOf(size uint32) int { return max(maxRanges, int(size>>14)) }

// reassembly is the list of ranges, and the order in which to report them to the peer.
type reassembly struct {
	ranges     []span   // ranges in ascending order, which neither overlap nor touch
	recent     [16]span // the ranges that were changed last, the latest first
	numRecent  uint8
	unreported uint8 // number of elements at the start of recent that have not been reported to the peer
}

// gaps reports whether data has arrived after a gap.
func (r *receiver) gaps() bool { return r.behind != nil && len(r.behind.ranges) > 0 }

// insert adds s, merges ranges that overlap or touch it, and makes the result the latest range. It returns the first
// part of s that had arrived before. ok is false if the list already has the maximum number of ranges, most.
func (r *reassembly) insert(s span, most int) (overlap span, ok bool) {
	i := r.search(s.from)
	if i == len(r.ranges) || s.to.Less(r.ranges[i].from) {
		if len(r.ranges) >= most {
			return span{}, false
		}
		r.ranges = append(r.ranges, span{})
		copy(r.ranges[i+1:], r.ranges[i:])
		r.ranges[i] = s
		r.changed(s)
		return span{}, true
	}
	overlap = r.overlap(i, s)
	j := i
	for j < len(r.ranges) && r.ranges[j].from.LessEq(s.to) {
		s.from, s.to = sequence.Min(s.from, r.ranges[j].from), sequence.Max(s.to, r.ranges[j].to)
		j++
	}
	r.ranges[i] = s
	r.ranges = r.ranges[:i+1+copy(r.ranges[i+1:], r.ranges[j:])]
	r.changed(s)
	return overlap, true
}

// overlap returns the first part of s that lies inside range i or a later one.
func (r *reassembly) overlap(i int, s span) span {
	for ; i < len(r.ranges) && r.ranges[i].from.Less(s.to); i++ {
		both := span{sequence.Max(s.from, r.ranges[i].from), sequence.Min(s.to, r.ranges[i].to)}
		if both.from.Less(both.to) {
			return both
		}
	}
	return span{}
}

// search returns the index of the first range that ends at or after seq. It tries the last range first,
// because data mostly arrives in order.
func (r *reassembly) search(seq Seq) int {
	lo, hi := 0, len(r.ranges)
	if hi > 0 && r.ranges[hi-1].from.LessEq(seq) {
		lo = hi - 1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if seq.LessEq(r.ranges[mid].to) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// take removes the ranges that nxt has reached and returns the new RCV.NXT.
func (r *reassembly) take(nxt Seq) Seq {
	n := 0
	for n < len(r.ranges) && r.ranges[n].from.LessEq(nxt) {
		nxt = sequence.Max(nxt, r.ranges[n].to)
		n++
	}
	if n > 0 {
		r.ranges = r.ranges[:copy(r.ranges, r.ranges[n:])]
		r.forget(nxt)
	}
	return nxt
}

// changed makes s the latest range and removes the recent ranges that are part of it.
func (r *reassembly) changed(s span) {
	r.keep(func(old span) bool { return old.to.Less(s.from) || s.to.Less(old.from) })
	n := min(r.numRecent, uint8(len(r.recent)-1))
	copy(r.recent[1:n+1], r.recent[:n])
	r.recent[0] = s
	r.numRecent = n + 1
	r.unreported = min(r.unreported+1, r.numRecent)
}

// keep removes the elements of recent for which the function wanted returns false.
func (r *reassembly) keep(wanted func(span) bool) {
	n, unreported := uint8(0), uint8(0)
	for i, s := range r.recent[:r.numRecent] {
		if wanted(s) {
			r.recent[n] = s
			n++
			if i < int(r.unreported) {
				unreported++
			}
		}
	}
	r.numRecent, r.unreported = n, unreported
}

// report returns n recent ranges for the next acknowledgment and marks them as reported. If more than n ranges
// are unreported, it returns the oldest of them; otherwise it returns the latest n. The peer thus learns of
// ranges in order of arrival, as if each had been acknowledged separately, and does not take data for lost
// that the next acknowledgment would report.
func (r *reassembly) report(n int) []span {
	from := max(int(r.unreported)-n, 0)
	r.unreported = uint8(from)
	return r.recent[from:][:n]
}

// forget removes elements of recent that are before nxt.
func (r *reassembly) forget(nxt Seq) {
	r.keep(func(s span) bool { return nxt.Less(s.from) })
}
