package sink

import (
	"cmp"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"loam/gen/measure"
	"loam/gen/method"
)

// key identifies a sequence of numbered frames: a flow of a run.
type key struct {
	run uint16
	id  ID
}

// followed is a tracked flow.
type followed struct {
	*measure.Tracker
	latest int64 // arrival time of the latest frame, in nanoseconds since 1970
}

// owner owns the trackers. If there are MaxTracked of them, a new flow replaces the flow that has received no frame for
// longest, if that time is at least retireAfter. The counts of a replaced flow remain in the totals.
type owner struct {
	sink      *Sink
	trackers  map[key]*followed
	untracked uint64
	full      int64 // no flow can be replaced before this arrival time

	retired Counts
	latency *hdrhistogram.Histogram // latencies of flows that were replaced

	// State at the previous report, from which Recent is computed.
	before time.Duration
	counts Counts
	shape  []int64 // counts of the latency histogram, by value
}

// retireAfter is the time without a frame after which a flow may be replaced by a new one.
const retireAfter = 10 * time.Second

func newOwner(s *Sink) *owner {
	return &owner{sink: s, trackers: map[key]*followed{}, latency: measure.NewLatency()}
}

// loop is the goroutine that owns the trackers. It ends when full is closed, after it has stored the last report.
func (o *owner) loop() {
	for {
		select {
		case b, ok := <-o.sink.full:
			if !ok {
				o.sink.last = o.report()
				close(o.sink.ended)
				return
			}
			o.take(b)
			o.sink.free <- b
		case answer := <-o.sink.ask:
			answer <- o.report()
		}
	}
}

// take counts the arrivals in a batch with the trackers of their flows. It creates trackers for new flows.
func (o *owner) take(b *batch) {
	for i := range b.n {
		a := &b.arrivals[i]
		k := key{a.tag.Run, ID(a.tag.Stream)}
		t := o.trackers[k]
		if t == nil {
			if len(o.trackers) == MaxTracked && !o.retire(a.at) {
				o.untracked++
				continue
			}
			t = &followed{Tracker: measure.NewTracker()}
			o.trackers[k] = t
		}
		t.latest = a.at
		t.Arrive(a.at, a.tag, a.bytes)
	}
}

// retire removes the tracker of the flow that has received no frame for longest. It returns false if no flow may be
// replaced yet.
func (o *owner) retire(now int64) bool {
	if now < o.full {
		return false
	}
	var oldest key
	latest := now
	for k, t := range o.trackers {
		if t.latest < latest {
			oldest, latest = k, t.latest
		}
	}
	if now-latest < int64(retireAfter) {
		o.full = latest + int64(retireAfter)
		return false
	}
	t := o.trackers[oldest]
	c := counts(t.Tracker)
	o.retired.add(&c)
	o.latency.Merge(t.Latency())
	delete(o.trackers, oldest)
	return true
}

// report returns a report of all frames counted so far. It starts a new interval for Report.Recent.
func (o *owner) report() Report {
	r := Report{Elapsed: time.Since(o.sink.start), Other: o.sink.other.Load(), Untracked: o.untracked, Total: o.retired}
	for _, rx := range o.sink.receivers {
		r.Dropped += rx.Drops()
		if p, ok := rx.(method.Passer); ok {
			r.Passed += p.Passed()
		}
	}
	all := hdrhistogram.Import(o.latency.Export())
	for k, t := range o.trackers {
		f := Flow{k.run, k.id, counts(t.Tracker)}
		r.Flows = append(r.Flows, f)
		r.Total.add(&f.Counts)
		all.Merge(t.Latency())
	}
	r.Total.Latency = summary(all)
	r.Total.Latency.Buckets = buckets(all)
	slices.SortFunc(r.Flows, func(a, b Flow) int { return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.ID, b.ID)) })
	for i := range r.Flows {
		if i == 0 || r.Flows[i].Run != r.Flows[i-1].Run {
			r.Runs++
		}
	}
	r.Recent = o.recent(&r, all)
	return r
}

// recent returns the frames that have arrived since the previous report, and starts a new interval.
func (o *owner) recent(r *Report, all *hdrhistogram.Histogram) Recent {
	now := Recent{Over: r.Elapsed - o.before, Frames: r.Total.Received - o.counts.Received, Bytes: r.Total.Bytes - o.counts.Bytes}
	if s := now.Over.Seconds(); s > 0 {
		now.PPS = float64(now.Frames) / s
		now.L2Bits = 8 * (float64(now.Bytes) + fcsLen*float64(now.Frames)) / s
	}
	shape := all.Export()
	o.counts, o.before = r.Total, r.Elapsed
	before := o.shape
	o.shape = slices.Clone(shape.Counts)
	for i, n := range before {
		shape.Counts[i] -= n
	}
	now.Latency = summary(hdrhistogram.Import(shape))
	return now
}

// fcsLen is the length of the frame check sequence in bytes, which is not part of a received frame.
const fcsLen = 4
