package tcp

// What has arrived behind a gap: a short sorted list of ranges. The bytes are
// with Incoming already.
//
// The list is bounded. A peer that sends every other byte of the window would
// else make it as long as the window; at the bound a segment that would begin a
// new range is dropped, and comes again. A loss of one segment in twenty on a
// window of four megabytes leaves 140 gaps.

// span is the range of numbers [from, to).
type span struct{ from, to Seq }

func (s span) empty() bool { return s.from == s.to }

const maxRanges = 256

// reassembly is that list, and which of it the peer is to be told of first.
type reassembly struct {
	ranges    []span  // in order, not touching each other
	recent    [4]span // the ranges last changed, latest first
	numRecent uint8
}

// gaps reports whether anything has come behind a gap.
func (r *receiver) gaps() bool { return r.behind != nil && len(r.behind.ranges) > 0 }

// insert adds s, joins what overlaps or touches, and makes the result the latest
// range. It returns the first part of s that had come before, and whether there
// was room.
func (r *reassembly) insert(s span) (overlap span, ok bool) {
	i := r.search(s.from)
	if i == len(r.ranges) || s.to.Less(r.ranges[i].from) {
		if len(r.ranges) >= maxRanges {
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
		s.from, s.to = minSeq(s.from, r.ranges[j].from), maxSeq(s.to, r.ranges[j].to)
		j++
	}
	r.ranges[i] = s
	r.ranges = r.ranges[:i+1+copy(r.ranges[i+1:], r.ranges[j:])]
	r.changed(s)
	return overlap, true
}

// overlap is the first part of s that lies inside range i or one of the next.
func (r *reassembly) overlap(i int, s span) span {
	for ; i < len(r.ranges) && r.ranges[i].from.Less(s.to); i++ {
		both := span{maxSeq(s.from, r.ranges[i].from), minSeq(s.to, r.ranges[i].to)}
		if both.from.Less(both.to) {
			return both
		}
	}
	return span{}
}

// search is the index of the first range that ends at or behind seq. Data mostly
// comes in order, so the end of the list is looked at first.
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

// take removes the ranges that nxt has reached, and returns where it gets to with
// them.
func (r *reassembly) take(nxt Seq) Seq {
	n := 0
	for n < len(r.ranges) && r.ranges[n].from.LessEq(nxt) {
		nxt = maxSeq(nxt, r.ranges[n].to)
		n++
	}
	if n > 0 {
		r.ranges = r.ranges[:copy(r.ranges, r.ranges[n:])]
		r.forget(nxt)
	}
	return nxt
}

// changed makes s the latest range, and forgets those that are part of it.
func (r *reassembly) changed(s span) {
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

// forget drops ranges in front of nxt from the latest.
func (r *reassembly) forget(nxt Seq) {
	n := uint8(0)
	for _, s := range r.recent[:r.numRecent] {
		if nxt.Less(s.from) {
			r.recent[n] = s
			n++
		}
	}
	r.numRecent = n
}
