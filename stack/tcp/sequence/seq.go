// Package sequence has the sequence numbers of TCP (RFC 9293 section 3.4). They wrap around at 2^32, so
// comparison is modular: s is less than t if t is s plus at least 1 and less than 2^31. Every window is below 2^30
// (RFC 7323 section 2.3), so old numbers and numbers in flight never get confused.
package sequence

// Seq is a sequence number.
type Seq uint32

// Less reports whether s precedes t.
func (s Seq) Less(t Seq) bool { return int32(s-t) < 0 }

// LessEq reports whether s precedes or equals t.
func (s Seq) LessEq(t Seq) bool { return int32(s-t) <= 0 }

// Add returns s plus n, modulo 2^32. n may be negative.
func (s Seq) Add(n int) Seq { return s + Seq(n) }

// Sub returns the distance from t to s. It is negative if s precedes t.
func (s Seq) Sub(t Seq) int { return int(int32(s - t)) }

// In reports whether s lies in the range [from, to).
func (s Seq) In(from, to Seq) bool { return s-from < to-from }

// Max returns the later of s and t.
func Max(s, t Seq) Seq {
	if s.Less(t) {
		return t
	}
	return s
}

// Min returns the earlier of s and t.
func Min(s, t Seq) Seq {
	if s.Less(t) {
		return s
	}
	return t
}
