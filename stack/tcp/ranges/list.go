package ranges

import "loam/stack/tcp/sequence"

// The list is bounded. Otherwise a peer that sends every other byte of the window could make the list as long as the window.
// When the list is full, a segment that would begin a new range is dropped, and the peer retransmits it. As an example, the
// loss of one segment in twenty in a window of 4 MB leaves 140 gaps.

// Seq is a sequence number.
type Seq = sequence.Seq

// Span is a range of sequence numbers, including From and excluding To.
type Span struct{ From, To Seq }

// Empty reports whether the range has no numbers.
func (s Span) Empty() bool { return s.From == s.To }

// Max is the maximum number of ranges for a window of ordinary size.
const Max = 256

// Limit returns the maximum number of ranges for a window of size bytes. It exceeds Max on long paths, where the
// loss of one segment in twenty leaves a gap every 29,000 bytes.
func Limit(size uint32) int { return max(Max, int(size>>14)) }

// List is the list of ranges, and the order in which to report them to the peer. The fields are for reading.
type List struct {
	Ranges     []Span   // ranges in ascending order, which neither overlap nor touch
	Recent     [16]Span // the ranges that were changed last, the latest first
	NumRecent  uint8
	unreported uint8 // number of elements at the start of Recent that have not been reported to the peer
}

// Unreported reports whether a range has changed and has not been reported since.
func (r *List) Unreported() bool { return r.unreported > 0 }

// Insert adds s, merges ranges that overlap or touch it, and makes the result the latest range. It returns the first
// part of s that had arrived before. ok is false if the list already has the maximum number of ranges, most.
func (r *List) Insert(s Span, most int) (overlap Span, ok bool) {
	i := r.Search(s.From)
	if i == len(r.Ranges) || s.To.Less(r.Ranges[i].From) {
		if len(r.Ranges) >= most {
			return Span{}, false
		}
		r.Ranges = append(r.Ranges, Span{})
		copy(r.Ranges[i+1:], r.Ranges[i:])
		r.Ranges[i] = s
		r.changed(s)
		return Span{}, true
	}
	overlap = r.Overlap(i, s)
	j := i
	for j < len(r.Ranges) && r.Ranges[j].From.LessEq(s.To) {
		s.From, s.To = sequence.Min(s.From, r.Ranges[j].From), sequence.Max(s.To, r.Ranges[j].To)
		j++
	}
	r.Ranges[i] = s
	r.Ranges = r.Ranges[:i+1+copy(r.Ranges[i+1:], r.Ranges[j:])]
	r.changed(s)
	return overlap, true
}

// Overlap returns the first part of s that lies inside range i or a later one.
func (r *List) Overlap(i int, s Span) Span {
	for ; i < len(r.Ranges) && r.Ranges[i].From.Less(s.To); i++ {
		both := Span{sequence.Max(s.From, r.Ranges[i].From), sequence.Min(s.To, r.Ranges[i].To)}
		if both.From.Less(both.To) {
			return both
		}
	}
	return Span{}
}

// Search returns the index of the first range that ends at or after seq. It tries the last range first,
// because data mostly arrives in order.
func (r *List) Search(seq Seq) int {
	lo, hi := 0, len(r.Ranges)
	if hi > 0 && r.Ranges[hi-1].From.LessEq(seq) {
		lo = hi - 1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if seq.LessEq(r.Ranges[mid].To) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// Take removes the ranges that nxt has reached and returns the new RCV.NXT.
func (r *List) Take(nxt Seq) Seq {
	n := 0
	for n < len(r.Ranges) && r.Ranges[n].From.LessEq(nxt) {
		nxt = sequence.Max(nxt, r.Ranges[n].To)
		n++
	}
	if n > 0 {
		r.Ranges = r.Ranges[:copy(r.Ranges, r.Ranges[n:])]
		r.forget(nxt)
	}
	return nxt
}

// changed makes s the latest range and removes the recent ranges that are part of it.
func (r *List) changed(s Span) {
	r.keep(func(old Span) bool { return old.To.Less(s.From) || s.To.Less(old.From) })
	n := min(r.NumRecent, uint8(len(r.Recent)-1))
	copy(r.Recent[1:n+1], r.Recent[:n])
	r.Recent[0] = s
	r.NumRecent = n + 1
	r.unreported = min(r.unreported+1, r.NumRecent)
}

// keep removes the elements of Recent for which the function wanted returns false.
func (r *List) keep(wanted func(Span) bool) {
	n, unreported := uint8(0), uint8(0)
	for i, s := range r.Recent[:r.NumRecent] {
		if wanted(s) {
			r.Recent[n] = s
			n++
			if i < int(r.unreported) {
				unreported++
			}
		}
	}
	r.NumRecent, r.unreported = n, unreported
}

// Report returns n recent ranges for the next acknowledgment and marks them as reported. If more than n ranges
// are unreported, it returns the oldest of them; otherwise it returns the latest n. The peer thus learns of
// ranges in order of arrival, as if each had been acknowledged separately, and does not take data for lost
// that the next acknowledgment would report.
func (r *List) Report(n int) []Span {
	from := max(int(r.unreported)-n, 0)
	r.unreported = uint8(from)
	return r.Recent[from:][:n]
}

// forget removes elements of Recent that are before nxt.
func (r *List) forget(nxt Seq) {
	r.keep(func(s Span) bool { return nxt.Less(s.From) })
}
