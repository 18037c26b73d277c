package congestion

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
	now = ackRound(cc, w, now, 120*ms, &una) // the round trip is at least 12.5 ms longer than in the last round
	slowed := w.Size
	if slowed > 100_000+10_000 {
		t.Errorf("window is %d after a round with a growing queue", slowed)
	}
	for range 5 {
		now = ackRound(cc, w, now, 120*ms, &una)
	}
	if w.Threshold == NoThreshold {
		t.Error("slow start goes on after five slow rounds")
	}
}

func TestHyStartForgivesJitter(t *testing.T) {
	cc, w, una, now := NewCubic(), newWindow(10), Seq(0), Time(0)
	for range 2 {
		now = ackRound(cc, w, now, 100*ms, &una)
	}
	now = ackRound(cc, w, now, 120*ms, &una)
	now = ackRound(cc, w, now, 100*ms, &una) // the round trip is shorter than the baseline, so the increase was jitter
	before := w.Size
	ackRound(cc, w, now, 100*ms, &una)
	if w.Size != 2*before || w.Threshold != NoThreshold {
		t.Errorf("window went from %d to %d, want it to double again", before, w.Size)
	}
}

func TestSlowStartWithLargeFrames(t *testing.T) {
	// A peer behind a device that merges segments acknowledges a whole frame at once. The window still
	// doubles if we send frames of that size ourselves.
	for _, c := range []struct{ frame, grows uint32 }{{0, 8_000}, {40_000, 40_000}, {64_000, 64_000}} {
		cc, w := NewCubic(), newWindow(100)
		cc.Acked(w, Ack{Now: 10 * ms, Bytes: 64_000, InFlight: 100_000, RTT: ms, SRTT: ms, Frame: c.frame, Nxt: 100_000})
		if w.Size != 100_000+c.grows {
			t.Errorf("frames of %d: the window grew by %d, want %d", c.frame, w.Size-100_000, c.grows)
		}
	}
}

func TestSlowStartThatPacesHasNoLimit(t *testing.T) {
	// RFC 9406 section 4.2: "L = infinity" with pacing, which begins at the first acknowledgment above the
	// limit.
	cc, w := NewCubic(), newWindow(100)
	cc.Acked(w, Ack{Now: 20 * ms, Bytes: 8_000, InFlight: 100_000, RTT: 20 * ms, SRTT: 20 * ms, Nxt: 100_000})
	if w.Size != 108_000 || w.Rate != 0 {
		t.Fatalf("window %d, rate %d: want the acknowledgments to clock what is sent", w.Size, w.Rate)
	}
	cc.Acked(w, Ack{Now: 20 * ms, Bytes: 92_000, InFlight: 100_000, RTT: 20 * ms, SRTT: 20 * ms, Nxt: 200_000})
	if w.Size != 200_000 || w.Rate != 2*200_000*50 {
		t.Errorf("window %d, rate %d: want it doubled, and twice the window each 20 ms", w.Size, w.Rate)
	}
	w.Threshold = w.Size
	cc.Acked(w, Ack{Now: 40 * ms, Bytes: 50_000, InFlight: 200_000, RTT: 20 * ms, SRTT: 20 * ms, Nxt: 300_000})
	if w.Rate != 0 {
		t.Error("congestion avoidance paces")
	}
}

func TestUndoGoesBackToTheFirstSlowStart(t *testing.T) {
	for _, cc := range []Control{NewCubic(), NewReno()} {
		w, una, now := newWindow(10), Seq(0), Time(0)
		for range 2 {
			now = ackRound(cc, w, now, 100*ms, &una)
		}
		before := *w
		cc.Reduce(w, now, w.Size)
		*w = before
		cc.Undo(w, now)
		now = ackRound(cc, w, now, 100*ms, &una)
		now = ackRound(cc, w, now, 120*ms, &una) // the queue grows, which ends the first slow start
		slowed := w.Size
		ackRound(cc, w, now, 120*ms, &una)
		if w.Size > slowed*3/2 {
			t.Errorf("%s: the window went from %d to %d while the queue grows: nobody watches it any more", cc.Name(), slowed, w.Size)
		}
	}
}
