package pace

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Spread measures how evenly frames are sent. It is a histogram of the gaps between the times at which frames are
// passed to the sender. Frames of one batch have a gap of 0. Delays in the kernel and the device are not included.
type Spread struct {
	gaps  *hdrhistogram.Histogram
	last  int64
	begun bool
}

const longestGap = int64(100 * time.Second)

// NewSpread returns an empty Spread.
func NewSpread() *Spread { return &Spread{gaps: hdrhistogram.New(1, longestGap, 3)} }

// Sent records that a number of frames was passed to the sender at time now, in nanoseconds.
func (s *Spread) Sent(now int64, frames int) {
	if frames <= 0 {
		return
	}
	if s.begun {
		// Longer gaps are recorded as longestGap.
		_ = s.gaps.RecordValue(min(max(0, now-s.last), longestGap))
	}
	if frames > 1 {
		_ = s.gaps.RecordValues(0, int64(frames-1))
	}
	s.last, s.begun = now, true
}

// Merge adds the gaps of another Spread.
func (s *Spread) Merge(o *Spread) { s.gaps.Merge(o.gaps) }

// Gaps is a summary of a Spread.
type Gaps struct {
	Count     int64         `json:"count"`
	Mean      time.Duration `json:"mean_ns"`
	Deviation time.Duration `json:"deviation_ns"`
	P50       time.Duration `json:"p50_ns"`
	P99       time.Duration `json:"p99_ns"`
	P999      time.Duration `json:"p999_ns"`
	Max       time.Duration `json:"max_ns"`
}

// Gaps returns a summary of the recorded gaps.
func (s *Spread) Gaps() Gaps {
	g := s.gaps
	return Gaps{
		Count: g.TotalCount(), Mean: time.Duration(g.Mean()), Deviation: time.Duration(g.StdDev()),
		P50: time.Duration(g.ValueAtQuantile(50)), P99: time.Duration(g.ValueAtQuantile(99)),
		P999: time.Duration(g.ValueAtQuantile(99.9)), Max: time.Duration(g.Max()),
	}
}
