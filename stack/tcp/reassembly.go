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

const maxRanges = 256

// insert adds [from, to), joins what overlaps or touches, and makes it the
// latest for selective acknowledgment. It reports whether there was room.
func (r *receiver) insert(from, to Seq) bool {
	i := r.search(from)
	if i == len(r.ranges) || to.Less(r.ranges[i].from) {
		if len(r.ranges) >= maxRanges {
			return false
		}
		r.ranges = append(r.ranges, span{})
		copy(r.ranges[i+1:], r.ranges[i:])
		r.ranges[i] = span{from, to}
		r.remember(span{from, to})
		return true
	}
	r.noteOverlap(i, span{from, to})
	j := i
	for j < len(r.ranges) && r.ranges[j].from.LessEq(to) {
		from, to = minSeq(from, r.ranges[j].from), maxSeq(to, r.ranges[j].to)
		j++
	}
	r.ranges[i] = span{from, to}
	r.ranges = r.ranges[:i+1+copy(r.ranges[i+1:], r.ranges[j:])]
	r.remember(span{from, to})
	return true
}

// search is the index of the first range that ends at or behind seq. Data mostly
// comes in order, so the end of the list is looked at first.
func (r *receiver) search(seq Seq) int {
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
