package sink

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"loam/gen/measure"
)

// Report is what a sink has seen.
type Report struct {
	Elapsed   time.Duration `json:"elapsed_ns"`
	Total     Counts        `json:"total"`
	Flows     []Flow        `json:"flows,omitempty"` // by ID
	Other     uint64        `json:"other"`           // frames without a tag
	Untracked uint64        `json:"untracked"`       // tagged frames beyond MaxTracked flows
	Dropped   uint64        `json:"dropped"`         // frames that found no room in our own ring
	Passed    uint64        `json:"passed"`          // frames that the method left to the kernel: see method.Passer
}

// Counts are of one flow, or of all.
type Counts struct {
	Received   uint64 `json:"received"` // duplicates included
	Bytes      uint64 `json:"bytes"`    // in them, without FCS
	Unique     uint64 `json:"unique"`
	Lost       uint64 `json:"lost"` // of those up to the highest number that was seen
	Duplicates uint64 `json:"duplicates"`
	Reordered  uint64 `json:"reordered"`
	Ancient    uint64 `json:"ancient"`  // later than can be told apart; lost too
	Negative   uint64 `json:"negative"` // sent after they arrived: the clocks do not agree
	Restarts   uint64 `json:"restarts"` // times that the sender began anew

	Latency Latency       `json:"latency"`
	Jitter  time.Duration `json:"jitter_ns"`  // RFC 3550 section 6.4.1; of all: the worst
	Extent  int64         `json:"max_extent"` // RFC 4737 section 4.2.1: how late the latest was, in frames
}

// Flow is what became of one numbered sequence.
type Flow struct {
	ID ID `json:"id"`
	Counts
}

// Latency sums up the times from sending to receiving.
type Latency struct {
	Count int64         `json:"count"`
	Min   time.Duration `json:"min_ns"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	P9999 time.Duration `json:"p9999_ns"`
	Max   time.Duration `json:"max_ns"`
}

func summary(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) }
	l := Latency{Count: h.TotalCount()}
	if l.Count > 0 {
		l.Min, l.Mean, l.Max = time.Duration(h.Min()), time.Duration(h.Mean()), time.Duration(h.Max())
		l.P50, l.P90, l.P99, l.P999, l.P9999 = at(50), at(90), at(99), at(99.9), at(99.99)
	}
	return l
}

// counts is what a tracker knows.
func counts(t *measure.Tracker) Counts {
	s := t.Stats()
	return Counts{
		Received: s.Received, Bytes: s.Bytes, Unique: s.Unique, Lost: s.Lost(s.Expected),
		Duplicates: s.Duplicates, Reordered: s.Reordered, Ancient: s.Ancient, Negative: s.Negative, Restarts: s.Restarts,
		Latency: summary(t.Latency()), Jitter: t.Jitter(), Extent: t.Extents().Max(),
	}
}

// add takes in the counts of a flow, all but its latency.
func (c *Counts) add(o *Counts) {
	c.Received += o.Received
	c.Bytes += o.Bytes
	c.Unique += o.Unique
	c.Lost += o.Lost
	c.Duplicates += o.Duplicates
	c.Reordered += o.Reordered
	c.Ancient += o.Ancient
	c.Negative += o.Negative
	c.Restarts += o.Restarts
	c.Jitter = max(c.Jitter, o.Jitter)
	c.Extent = max(c.Extent, o.Extent)
}
