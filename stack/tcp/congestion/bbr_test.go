package congestion

import (
	"testing"
	"time"
)

// This file has the parts of the example test cases of draft-ietf-ccwg-bbr (its last appendix) that need no path. Package tcp has the
// others.

func TestBBRSkipsProbeRTTAfterIdle(t *testing.T) {
	b, w := BBR(DraftLossThresh)().(*bbr), newWindow(100)
	b.Start(w, time.Second, 40*ms, 1)
	b.fullBwReached, b.state = true, bbrProbeCruise
	now := 11 * time.Second
	b.Restart(w, now, 10*time.Second)
	b.updateMinRTT(now, &Sample{})
	b.checkProbeRTT(w, now, &Sample{Any: true, Delivered: 1000})
	if b.state == bbrProbeRTT || !b.probeRTTExpired || b.idleRestart {
		t.Errorf("state %d, expired %v, restart %v", b.state, b.probeRTTExpired, b.idleRestart)
	}
	b.checkProbeRTT(w, now, &Sample{Any: true, Delivered: 1000})
	if b.state != bbrProbeRTT {
		t.Error("without a pause there is no ProbeRTT")
	}
}

func TestBBRUndoesSpuriousRecovery(t *testing.T) {
	// Section 5.5.11.2 of the BBR draft: an undo in the phase ProbeUp.
	b, w := BBR(DraftLossThresh)().(*bbr), newWindow(100)
	b.Start(w, time.Second, 40*ms, 1)
	b.fullBwReached, b.probeSample, b.state = true, true, bbrProbeUp
	before := w.Size
	b.Lost(w, &Loss{Now: 2 * time.Second, Seq: 0, End: 5000, Lost: 5000, InFlight: 100_000, SACK: true})
	b.Reduce(w, 2*time.Second, 100_000)
	if b.state != bbrProbeDown || b.inflightLongterm == bbrNone || !b.probeTooHigh {
		t.Fatalf("state %d, bound %d: want the probe to end", b.state, b.inflightLongterm)
	}
	w.Size = 4000
	b.Undo(w, 3*time.Second)
	if b.state != bbrProbeRefill || b.inflightLongterm != bbrNone || w.Size != before {
		t.Errorf("state %d, bound %d, window %d", b.state, b.inflightLongterm, w.Size)
	}
}

func TestBBRTakesMarksForCongestion(t *testing.T) {
	// Section 3.6 of the BBR draft: ECN marks.
	b, w := NewBBR().(*bbr), newWindow(100)
	b.Start(w, time.Second, 40*ms, 1)
	b.Marked(w, time.Second)
	if !b.fullBwReached || b.inflightLongterm == bbrNone {
		t.Error("a mark does not end Startup")
	}
	b.state, b.probeSample = bbrProbeUp, true
	b.Marked(w, time.Second)
	if b.state != bbrProbeDown {
		t.Error("a mark does not end a probe")
	}
}

func TestBBRInflightAtLoss(t *testing.T) {
	// Section 5.5.10.2 of the BBR draft: of 100,000 bytes in flight, this range has 10,000. If 3,000 bytes were lost before
	// it, the loss already exceeds 2 %. If none were, the range crosses the threshold after 1,836 bytes.
	b := BBR(DraftLossThresh)().(*bbr)
	for _, c := range []struct{ lost, want uint64 }{{13_000, 90_000}, {10_000, 91_836}} {
		if got := b.inflightAtLoss(&Loss{Seq: 0, End: 10_000, Lost: c.lost, InFlight: 100_000}); got != c.want {
			t.Errorf("%d lost: %d, want %d", c.lost, got, c.want)
		}
	}
}
