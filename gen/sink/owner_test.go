package sink

import (
	"testing"
	"time"

	"loam/gen/measure"
)

// feed passes frames of a run to the owner, sent and received at the given time.
func feed(o *owner, run uint16, flow int, at int64, numbers ...uint32) {
	b := new(batch)
	for _, n := range numbers {
		tag := measure.Tag{Run: run, Stream: uint16(NewID(0, 0, flow)), Sequence: n, Sent: at}
		b.arrivals[b.n] = arrival{tag, at + 1500, 60}
		b.n++
	}
	o.take(b)
}

// Frames of two senders to one sink are counted separately, whether the senders run at the same time or one after the
// other. They count neither as duplicates nor as lost. Frames that were sent before the sink started do not count as
// lost either.
func TestRunsAreDistinguished(t *testing.T) {
	o, now := newOwner(&Sink{start: time.Now()}), time.Now().UnixNano()
	feed(o, 1, 0, now, 30615, 30616, 30618)
	feed(o, 2, 0, now, 0, 1, 2)
	feed(o, 3, 0, now+1, 0, 1, 1)
	r := o.report()
	c := r.Total
	if r.Runs != 3 || len(r.Flows) != 3 || c.Unique != 8 || c.Duplicates != 1 || c.Lost != 1 || c.Before != 30615 {
		t.Errorf("%d runs, %d flows, %+v", r.Runs, len(r.Flows), c)
	}
	if of := r.Of(3); of.Unique != 2 || of.Duplicates != 1 || of.Lost != 0 {
		t.Errorf("the third run: %+v", of)
	}
}

// A long-running sink has room for new flows. It replaces flows that have ended, and keeps their counts in the totals.
func TestEndedFlowsAreReplaced(t *testing.T) {
	o, now := newOwner(&Sink{start: time.Now()}), time.Now().UnixNano()
	for f := range MaxTracked {
		feed(o, uint16(f), 0, now+int64(f), 0, 2)
	}
	feed(o, 1000, 0, now+int64(time.Second), 0)
	if o.untracked != 1 {
		t.Errorf("%d frames are not tracked, want 1: all flows are young", o.untracked)
	}
	feed(o, 1000, 0, now+int64(retireAfter)+1000, 0, 1)
	r := o.report()
	if c := r.Total; len(r.Flows) != MaxTracked || c.Received != 2*MaxTracked+2 || c.Lost != MaxTracked || c.Latency.Count != int64(c.Received) {
		t.Errorf("%d flows, %+v", len(r.Flows), c)
	}
	if r.Of(0).Received != 0 || r.Of(1000).Received != 2 {
		t.Errorf("the flow that was silent for longest is still followed: %+v", r.Flows[0])
	}
}

// A report contains the frames and latencies since the previous report. The total also has cumulative latency
// buckets.
func TestReportsOfASecond(t *testing.T) {
	o, now := newOwner(&Sink{start: time.Now()}), time.Now().UnixNano()
	feed(o, 1, 0, now, 0, 1, 2)
	if r := o.report(); r.Recent.Frames != 3 || r.Recent.Latency.Count != 3 || r.Recent.PPS <= 0 {
		t.Errorf("%+v", r.Recent)
	}
	feed(o, 1, 0, now, 3)
	r := o.report()
	if l := r.Recent.Latency; r.Recent.Frames != 1 || l.Count != 1 || l.P50 < 1490 || l.P50 > 1510 {
		t.Errorf("%+v", r.Recent)
	}
	for _, b := range r.Total.Latency.Buckets {
		want := uint64(0)
		if b.Bound >= 2*time.Microsecond {
			want = 4
		}
		if b.Count != want {
			t.Errorf("%d latencies up to %v, want %d", b.Count, b.Bound, want)
		}
	}
	if n := len(r.Total.Latency.Buckets); n != 22 || r.Total.Latency.Buckets[n-1].Bound != 10*time.Second {
		t.Errorf("%d buckets", n)
	}
	if r := o.report(); r.Recent.Frames != 0 || r.Recent.Latency.Count != 0 {
		t.Errorf("%+v", r.Recent)
	}
}
