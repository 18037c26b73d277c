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
