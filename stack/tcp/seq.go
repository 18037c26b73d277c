package tcp

// Sequence numbers (RFC 9293 section 3.4). They live on a circle of 2^32, so
// "less" means "less than half a circle in front of": every window is below
// 2^30 (RFC 7323 section 2.3), which leaves room for what is old on one side
// and what is in flight on the other.

// Seq is a sequence number.
type Seq uint32

// Less reports whether s stands in front of t.
func (s Seq) Less(t Seq) bool { return int32(s-t) < 0 }

// LessEq reports whether s stands in front of t or is t.
func (s Seq) LessEq(t Seq) bool { return int32(s-t) <= 0 }

// Add is the number n places behind s.
func (s Seq) Add(n int) Seq { return s + Seq(n) }

// Sub is the distance from t to s: negative if s stands in front of t.
func (s Seq) Sub(t Seq) int { return int(int32(s - t)) }

// In reports whether s lies in the range [from, to).
func (s Seq) In(from, to Seq) bool { return s-from < to-from }

// maxSeq is the one of s and t that stands behind the other.
func maxSeq(s, t Seq) Seq {
	if s.Less(t) {
		return t
	}
	return s
}

// minSeq is the one of s and t that stands in front of the other.
func minSeq(s, t Seq) Seq {
	if s.Less(t) {
		return s
	}
	return t
}
