package tcp

import (
	"math"
	"testing"
	"time"
)

// ackRound acknowledges a whole window, segment by segment, with a round trip
// time, and returns the time behind it.
func ackRound(cc Congestion, w *Window, now, rtt Time, una *Seq) Time {
	nxt := una.Add(int(w.Size))
	for *una != nxt {
		n := min(w.MSS, uint32(nxt-*una))
		*una = una.Add(int(n))
		cc.Acked(w, Ack{Now: now + rtt, Bytes: n, InFlight: w.Size, RTT: rtt, SRTT: rtt, Una: *una, Nxt: nxt.Add(int(*una - (nxt - Seq(w.Size))))})
	}
	return now + rtt
}

func newWindow(segs uint32) *Window {
	return &Window{Size: segs * 1000, Threshold: noThreshold, MSS: 1000}
}

func TestSlowStartDoubles(t *testing.T) {
	for _, cc := range []Congestion{NewReno(), NewCubic()} {
		w, una, now := newWindow(10), Seq(0), Time(0)
		for range 5 {
			now = ackRound(cc, w, now, 10*ms, &una)
		}
		if w.Size != 320_000 {
			t.Errorf("%s: window is %d after five round trips from 10000", cc.Name(), w.Size)
		}
	}
}

func TestSlowStartIsLimitedPerAck(t *testing.T) {
	cc, w := NewReno(), newWindow(100)
	cc.Acked(w, Ack{Bytes: 50_000, Una: 50_000, Nxt: 100_000}) // a stretch acknowledgment
	if w.Size != 108_000 {
		t.Errorf("window is %d, want growth by L=8 segments (RFC 9406 section 4.2)", w.Size)
	}
}

func TestSlowStartStopsAtThreshold(t *testing.T) {
	cc, w := NewReno(), newWindow(10)
	w.Threshold = 10_500
	cc.Acked(w, Ack{Bytes: 1000, Una: 1000, Nxt: 10_000})
	if w.Size != 10_500 {
		t.Errorf("window is %d, want the threshold", w.Size)
	}
}

func TestNewRenoAvoidance(t *testing.T) {
	cc, w, una, now := NewReno(), newWindow(20), Seq(0), Time(0)
	w.Threshold = 20_000
	for range 10 {
		now = ackRound(cc, w, now, 10*ms, &una)
	}
	if w.Size != 30_000 {
		t.Errorf("window is %d, want one segment more each round trip (RFC 5681)", w.Size)
	}
	if got := cc.Reduce(w, now, 30_000); got != 15_000 {
		t.Errorf("threshold is %d, want half", got)
	}
	if got := cc.Reduce(w, now, 1000); got != 2000 {
		t.Errorf("threshold is %d, want two segments at least", got)
	}
}

func TestHyStartSlowsWhenQueueGrows(t *testing.T) {
	cc, w, una, now := NewCubic(), newWindow(10), Seq(0), Time(0)
	for range 3 {
		now = ackRound(cc, w, now, 100*ms, &una)
	}
	if w.Size != 80_000 {
		t.Fatalf("window is %d", w.Size)
	}
	now = ackRound(cc, w, now, 120*ms, &una) // 12.5 ms or more above the last round
	slowed := w.Size
	if slowed > 100_000+10_000 {
		t.Errorf("window is %d after a round with a growing queue", slowed)
	}
	for range 5 {
		now = ackRound(cc, w, now, 120*ms, &una)
	}
	if w.Threshold == noThreshold {
		t.Error("slow start goes on after five slow rounds")
	}
}

func TestHyStartForgivesJitter(t *testing.T) {
	cc, w, una, now := NewCubic(), newWindow(10), Seq(0), Time(0)
	for range 2 {
		now = ackRound(cc, w, now, 100*ms, &una)
	}
	now = ackRound(cc, w, now, 120*ms, &una)
	now = ackRound(cc, w, now, 100*ms, &una) // below the base: it was jitter
	before := w.Size
	ackRound(cc, w, now, 100*ms, &una)
	if w.Size != 2*before || w.Threshold != noThreshold {
		t.Errorf("window went from %d to %d, want it to double again", before, w.Size)
	}
}

func TestCubicFunction(t *testing.T) {
	// RFC 9438 figures 1 and 2: at K seconds the window is back at W_max.
	cc := NewCubic().(*cubic)
	w := newWindow(1000)
	w.Threshold = cc.Reduce(w, 0, w.Size)
	if w.Threshold != 700_000 {
		t.Fatalf("threshold is %d, want 0.7 of the window", w.Threshold)
	}
	w.Size = w.Threshold
	k := math.Cbrt(1000 * 0.3 / 0.4) // 9.09 s
	una, now := Seq(0), Time(time.Second)
	start := now
	for (now - start).Seconds() < k {
		before := w.Size
		now = ackRound(cc, w, now, 100*ms, &una)
		if w.Size < before {
			t.Fatal("the window shrinks")
		}
	}
	if w.Size < 980_000 || w.Size > 1_010_000 {
		t.Errorf("window is %d after K, want about 1000000", w.Size)
	}
	for (now - start).Seconds() < 2*k {
		now = ackRound(cc, w, now, 100*ms, &una)
	}
	if w.Size < 1_200_000 || w.Size > 1_450_000 { // the convex half mirrors the concave one
		t.Errorf("window is %d after 2K, want about 1300000", w.Size)
	}
}

func TestCubicIsReadyForShortRoundTrips(t *testing.T) {
	// The Reno-friendly region: on a short path the cubic function is slower
	// than RFC 5681, so the window follows the latter, by alpha segments a round
	// trip until the old window is reached.
	cc := NewCubic().(*cubic)
	w := newWindow(50)
	w.Threshold = cc.Reduce(w, 0, w.Size)
	w.Size = w.Threshold
	una, now := Seq(0), Time(time.Second)
	for range 20 {
		now = ackRound(cc, w, now, ms, &una)
	}
	want := 35_000 + 20*cubicAlpha*1000
	if d := float64(w.Size) - want; d < -1000 || d > 1000 {
		t.Errorf("window is %d after 20 ms, want about %.0f", w.Size, want)
	}
}

func TestCubicFastConvergence(t *testing.T) {
	cc := NewCubic().(*cubic)
	w := newWindow(100)
	w.Threshold = cc.Reduce(w, 0, w.Size)
	w.Size = 80_000 // did not get back to 100
	cc.Reduce(w, 0, w.Size)
	if cc.wMax != 80*1.7/2 {
		t.Errorf("W_max is %v, want it lowered to make room for others", cc.wMax)
	}
}

func TestCubicUndo(t *testing.T) {
	cc := NewCubic().(*cubic)
	w := newWindow(100)
	cc.Reduce(w, 0, w.Size)
	w.Threshold, w.Size = 70_000, 70_000
	una := Seq(0)
	now := ackRound(cc, w, time.Second, 100*ms, &una)
	before := *cc
	cc.Reduce(w, now, w.Size)
	cc.Undo(w, now)
	if cc.wMax != before.wMax || cc.k != before.k || cc.epoch != before.epoch {
		t.Errorf("%+v after undo, want %+v", *cc, before)
	}
}

func TestCubicDoesNotGrowForIdleTime(t *testing.T) {
	busy, idle := NewCubic().(*cubic), NewCubic().(*cubic)
	sizes := [2]uint32{}
	for i, cc := range []*cubic{busy, idle} {
		w := newWindow(100)
		w.Threshold = cc.Reduce(w, 0, w.Size)
		w.Size = w.Threshold
		una := Seq(0)
		now := ackRound(cc, w, time.Second, 100*ms, &una)
		if i == 1 {
			now += time.Hour
			cc.Restart(w, now, time.Hour)
		}
		for range 10 {
			now = ackRound(cc, w, now, 100*ms, &una)
		}
		sizes[i] = w.Size
	}
	if d := int(sizes[1]) - int(sizes[0]); d < -1000 || d > 1000 {
		t.Errorf("window is %d, and %d with an hour's pause", sizes[0], sizes[1])
	}
}
