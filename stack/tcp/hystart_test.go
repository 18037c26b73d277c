package tcp

import (
	"testing"
)

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

func TestSlowStartWithLargeFrames(t *testing.T) {
	// A peer behind a device that puts segments together acknowledges a frame at a
	// time. The window doubles all the same, if we send such frames ourselves.
	for _, c := range []struct{ frame, grows uint32 }{{0, 8_000}, {40_000, 40_000}, {64_000, 64_000}} {
		cc, w := NewCubic(), newWindow(100)
		cc.Acked(w, Ack{Now: 10 * ms, Bytes: 64_000, InFlight: 100_000, RTT: 10 * ms, SRTT: 10 * ms, Frame: c.frame, Nxt: 100_000})
		if w.Size != 100_000+c.grows {
			t.Errorf("frames of %d: the window grew by %d, want %d", c.frame, w.Size-100_000, c.grows)
		}
	}
}

func TestUndoGoesBackToTheFirstSlowStart(t *testing.T) {
	for _, cc := range []Congestion{NewCubic(), NewReno()} {
		w, una, now := newWindow(10), Seq(0), Time(0)
		for range 2 {
			now = ackRound(cc, w, now, 100*ms, &una)
		}
		before := *w
		cc.Reduce(w, now, w.Size)
		*w = before
		cc.Undo(w, now)
		now = ackRound(cc, w, now, 100*ms, &una)
		now = ackRound(cc, w, now, 120*ms, &una) // the queue grows
		slowed := w.Size
		ackRound(cc, w, now, 120*ms, &una)
		if w.Size > slowed*3/2 {
			t.Errorf("%s: the window went from %d to %d while the queue grows: nobody watches it any more", cc.Name(), slowed, w.Size)
		}
	}
}
