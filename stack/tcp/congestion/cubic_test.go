package congestion

import (
	"math"
	"testing"
	"time"
)

func TestCubicFunction(t *testing.T) {
	// RFC 9438 figures 1 and 2: at K seconds the window is back at W_max.
	cc := NewCubic().(*cubic)
	w := newWindow(1000)
	w.Threshold = cc.Reduce(w, 0, w.Size)
	if w.Threshold != 700_000 {
		t.Fatalf("threshold is %d, want 0.7 of the window", w.Threshold)
	}
	w.Size = w.Threshold
	k := math.Cbrt(1000 * 0.3 / 0.4) // K in seconds: 9.09
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
	if w.Size < 1_200_000 || w.Size > 1_450_000 { // the convex half of the curve, after K, mirrors the concave half before
		t.Errorf("window is %d after 2K, want about 1300000", w.Size)
	}
}

func TestCubicIsReadyForShortRoundTrips(t *testing.T) {
	// The Reno-friendly region: on a short path the cubic function grows more slowly than RFC 5681. The
	// window then follows RFC 5681, by alpha segments per round trip until the old window is reached.
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
	w.Size = 80_000 // a second loss before the window was at 100 segments again
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
