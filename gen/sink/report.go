package sink

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"loam/gen/measure"
)

// Report counts everything that a sink has received.
type Report struct {
	Elapsed   time.Duration `json:"elapsed_ns"`
	Total     Counts        `json:"total"`
	Flows     []Flow        `json:"flows,omitempty"` // the flows, sorted by run and ID
	Runs      int           `json:"runs"`            // number of runs among the tracked flows
	Other     uint64        `json:"other"`           // frames without a tag
	Untracked uint64        `json:"untracked"`       // tagged frames of flows beyond MaxTracked
	Recent    Recent        `json:"recent"`          // traffic since the previous report
	Dropped   uint64        `json:"dropped"`         // frames that were dropped because the receiver's own ring was full
	Passed    uint64        `json:"passed"`          // frames that the method left to the kernel: see method.Passer
}

// Recent is the traffic that arrived between two reports.
type Recent struct {
	Over    time.Duration `json:"over_ns"`
	Frames  uint64        `json:"frames"` // tagged frames, duplicates included
	Bytes   uint64        `json:"bytes"`  // bytes of the tagged frames, without FCS
	PPS     float64       `json:"pps"`    // frames per second
	L2Bits  float64       `json:"bps"`    // bits of frames per second, FCS included
	Latency Latency       `json:"latency"`
}

// Counts holds the counters of one flow, or the sums over all flows.
type Counts struct {
	Received   uint64 `json:"received"` // frames received, duplicates included
	Bytes      uint64 `json:"bytes"`    // bytes of the received frames, without FCS
	Unique     uint64 `json:"unique"`
	Lost       uint64 `json:"lost"` // missing numbers between the lowest and the highest number that arrived
	Duplicates uint64 `json:"duplicates"`
	Reordered  uint64 `json:"reordered"`
	Ancient    uint64 `json:"ancient"`  // frames that arrived too late to be classified; they also count as lost
	Negative   uint64 `json:"negative"` // frames with a negative latency, which shows that the clocks disagree
	// Before is the number of sequence numbers below the lowest number that arrived. These frames were lost, or were
	// sent before the sink started. Lost does not include them.
	Before uint64 `json:"before"`

	Latency Latency       `json:"latency"`
	Jitter  time.Duration `json:"jitter_ns"`  // jitter as defined in RFC 3550 section 6.4.1; in a total, the largest of all flows
	Extent  int64         `json:"max_extent"` // RFC 4737 section 4.2.1: largest number of arrivals by which a frame was late
}

// Flow holds the counters of one flow, which is a sequence of numbered frames of one sender.
type Flow struct {
	Run uint16 `json:"run"` // random number of the sender's run, from its tags
	ID  ID     `json:"id"`
	Counts
}

// Latency summarises the times from the sending of frames to their arrival.
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
	// Buckets count the latencies up to certain bounds. They are set only in Report.Total.
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Bucket is the number of latencies that are at most Bound. It includes those of all smaller buckets.
type Bucket struct {
	Bound time.Duration `json:"le_ns"`
	Count uint64        `json:"count"`
}

// bounds are the bounds of the buckets: 1, 2 and 5 times each power of ten from 1 µs to 10 s.
var bounds = func() (all []time.Duration) {
	for ten := time.Microsecond; ten < 10*time.Second; ten *= 10 {
		all = append(all, ten, 2*ten, 5*ten)
	}
	return append(all, 10*time.Second)
}()

// buckets returns the cumulative buckets of a histogram. The histogram stores three significant digits, so a latency
// close to a bound may be counted on the wrong side of it.
func buckets(h *hdrhistogram.Histogram) []Bucket {
	if h.TotalCount() == 0 {
		return nil
	}
	all := make([]Bucket, len(bounds))
	for i, b := range bounds {
		all[i].Bound = b
	}
	i, sum := 0, uint64(0)
	for _, bar := range h.Distribution() {
		for i < len(all) && bar.From > int64(all[i].Bound) {
			all[i].Count = sum
			i++
		}
		sum += uint64(bar.Count)
	}
	for ; i < len(all); i++ {
		all[i].Count = sum
	}
	return all
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

// counts returns the counters of a tracker.
func counts(t *measure.Tracker) Counts {
	s := t.Stats()
	return Counts{
		Received: s.Received, Bytes: s.Bytes, Unique: s.Unique, Lost: s.Lost(s.Expected),
		Duplicates: s.Duplicates, Reordered: s.Reordered, Ancient: s.Ancient, Negative: s.Negative, Before: s.Before,
		Latency: summary(t.Latency()), Jitter: t.Jitter(), Extent: t.Extents().Max(),
	}
}

// add adds the counters of a flow, except its latency.
func (c *Counts) add(o *Counts) {
	c.Received += o.Received
	c.Bytes += o.Bytes
	c.Unique += o.Unique
	c.Lost += o.Lost
	c.Duplicates += o.Duplicates
	c.Reordered += o.Reordered
	c.Ancient += o.Ancient
	c.Negative += o.Negative
	c.Before += o.Before
	c.Jitter = max(c.Jitter, o.Jitter)
	c.Extent = max(c.Extent, o.Extent)
}

// Of returns the sum over all flows of one run, without their latencies.
func (r *Report) Of(run uint16) (sum Counts) {
	for i := range r.Flows {
		if r.Flows[i].Run == run {
			sum.add(&r.Flows[i].Counts)
		}
	}
	return sum
}
