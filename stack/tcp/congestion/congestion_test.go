package congestion

import (
	"testing"
	"time"
)

// ackRound acknowledges a whole window, segment by segment, with the given round trip time. It returns the
// time at the end.
func ackRound(cc Control, w *Window, now, rtt Time, una *Seq) Time {
	nxt := una.Add(int(w.Size))
	for *una != nxt {
		n := min(w.MSS, uint32(nxt-*una))
		*una = una.Add(int(n))
		cc.Acked(w, Ack{Now: now + rtt, Bytes: n, InFlight: w.Size, RTT: rtt, SRTT: rtt, Una: *una, Nxt: nxt.Add(int(*una - (nxt - Seq(w.Size))))})
	}
	return now + rtt
}

const ms = time.Millisecond

func newWindow(segs uint32) *Window {
	return &Window{Size: segs * 1000, Threshold: NoThreshold, MSS: 1000}
}

func TestSlowStartDoubles(t *testing.T) {
	for _, cc := range []Control{NewReno(), NewCubic()} {
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

func TestRestartBeginsNewRound(t *testing.T) {
	r := NewReno().(*newReno)
	w, una := newWindow(10), Seq(0)
	ackRound(r, w, 0, 10*ms, &una)
	r.Restart(w, time.Hour, time.Hour)
	now := ackRound(r, w, time.Hour, 30*ms, &una) // the round before the pause of an hour must not be compared with this one
	ackRound(r, w, now, 30*ms, &una)
	if w.Size != 80_000 || r.start.base != 0 {
		t.Errorf("window is %d, want it doubled three times", w.Size)
	}
	r.Timeout(w, now)
	r.Undo(w, now) // the only state is the window, which Undo restores
	if w.Size != 80_000 {
		t.Errorf("window is %d", w.Size)
	}
}

func TestSendQuantum(t *testing.T) {
	// draft-ietf-ccwg-bbr section 5.6.3: the data of a millisecond, at most 64 KBytes, at least two segments.
	for _, c := range []struct {
		rate uint64
		want uint32
	}{{1, 2000}, {10_000_000, 10_000}, {1 << 40, 64 << 10}} {
		if got := Quantum(c.rate, 1000); got != c.want {
			t.Errorf("%d bytes at once at %d a second, want %d", got, c.rate, c.want)
		}
	}
}
