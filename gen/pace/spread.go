package pace

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Spread tells how evenly frames went: a histogram of the gaps between them, as
// the sender handed them over. Frames of one batch have no gap between them, and
// count as 0: what the kernel and the device then do is not seen here.
type Spread struct {
	gaps  *hdrhistogram.Histogram
	last  int64
	begun bool
}

const longestGap = int64(100 * time.Second)

// NewSpread returns an empty spread.
func NewSpread() *Spread { return &Spread{gaps: hdrhistogram.New(1, longestGap, 3)} }

// Sent notes that frames were handed over at now, in nanoseconds.
func (s *Spread) Sent(now int64, frames int) {
	if frames <= 0 {
		return
	}
	if s.begun {
		// A gap out of range is the longest there is.
		_ = s.gaps.RecordValue(min(max(0, now-s.last), longestGap))
	}
	if frames > 1 {
		_ = s.gaps.RecordValues(0, int64(frames-1))
	}
	s.last, s.begun = now, true
}

// Merge adds the gaps of another sender.
func (s *Spread) Merge(o *Spread) { s.gaps.Merge(o.gaps) }

// Gaps sum up a Spread.
type Gaps struct {
	Count     int64         `json:"count"`
	Mean      time.Duration `json:"mean_ns"`
	Deviation time.Duration `json:"deviation_ns"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	Max       time.Duration `json:"max_ns"`
}

// Gaps sums up what was noted.
func (s *Spread) Gaps() Gaps {
	g := s.gaps
	return Gaps{
		Count: g.TotalCount(), Mean: time.Duration(g.Mean()), Deviation: time.Duration(g.StdDev()),
		P50: time.Duration(g.ValueAtQuantile(50)), P99: time.Duration(g.ValueAtQuantile(99)),
		P999: time.Duration(g.ValueAtQuantile(99.9)), Max: time.Duration(g.Max()),
	}
}
