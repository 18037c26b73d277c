package tcp

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The example test cases of draft-ietf-ccwg-bbr (its last appendix), with the draft's LossThresh. Each runs
// over a bottleneck in virtual time. The headings are the draft's.

// bottleneck returns a path whose queue holds the given number of round trips of data, and a sender with the
// draft's BBR.
func bottleneck(rate int, rtt time.Duration, queue float64) simSetup {
	bdp := float64(rate) / 8 * rtt.Seconds()
	s := simSetup{seed: 3, ab: path{rate: rate, delay: rtt / 2, queue: max(int(bdp*queue), 20_000)}, ba: path{rate: rate, delay: rtt / 2}}
	s.bytesA, s.buffer, s.burst = 1<<30, 8<<20, 64_000
	s.cfgA.Congestion = BBR(DraftLossThresh)
	s.cfgB.MaxReceiveBuffer = 16 << 20
	return s
}

// bbrSim is a running simulation of a sender with BBR.
type bbrSim struct {
	*sim
	*bbr
}

func runBBR(t *testing.T, s simSetup) *bbrSim {
	w := newSim(t, s)
	w.long = true
	for w.a.Conn.cc == nil {
		w.step()
	}
	return &bbrSim{w, w.a.Conn.cc.(*bbr)}
}

// step advances to the next event.
func (w *sim) step() { w.until(w.events[0].at) }

// reach advances until f returns true, and fails after limit.
func (w *bbrSim) reach(what string, limit time.Duration, f func() bool) {
	w.t.Helper()
	for end := w.now + limit; !f(); w.step() {
		if w.now > end {
			w.t.Fatalf("not %s after %v: %+v", what, limit, *w.bbr)
		}
	}
}

func (w *bbrSim) in(s bbrState) func() bool { return func() bool { return w.state == s } }

// carries returns the rate of the data received during d, in bits per second.
func (w *sim) carries(d time.Duration) float64 {
	before := w.b.in.committed
	w.until(w.now + d)
	return float64(w.b.in.committed-before) * 8 / d.Seconds()
}

func TestBBRLeavesStartupOnPlateau(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("out of Startup", 5*time.Second, func() bool { return w.state != bbrStartup })
	if w.state != bbrDrain || !w.fullBwReached || w.fullBwCount != 3 {
		t.Errorf("state %d, full %v after %d rounds", w.state, w.fullBwReached, w.fullBwCount)
	}
	if bw := float64(w.maxBw.max()) * 8; bw < 0.98*20e6*1448/1500 || bw > 1.02*20e6 {
		t.Errorf("max_bw is %.1f Mbit/s, want within 2 %% of 20", bw/1e6)
	}
}

func TestBBRStartupDoublesTheRate(t *testing.T) {
	// Section 5.3.1.1: O(log2(BDP)) round trips, here from 10 segments to 69.
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("at the rate", 6*40*ms, func() bool { return float64(w.bw)*8 > 0.9*20e6 })
}

func TestBBRLeavesDrainOnInflight(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("in Drain", 5*time.Second, w.in(bbrDrain))
	if g := bbrGains[w.state].pacing; g != 50 {
		t.Errorf("pacing gain is %d %%", g)
	}
	w.reach("in ProbeBW", 5*40*ms, w.inProbeBw)
	if pipe := uint64(w.a.pipe()); pipe > w.inflight(&w.a.window, w.bw, 100) {
		t.Errorf("%d bytes in flight at the end of Drain", pipe)
	}
}

func TestBBRCyclesThroughProbeBw(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	for _, s := range []bbrState{bbrProbeDown, bbrProbeCruise, bbrProbeRefill, bbrProbeUp, bbrProbeDown, bbrProbeCruise} {
		w.reach("in the next phase", 5*time.Second, w.in(s))
	}
	if got := w.carries(4 * time.Second); got < 0.9*20e6 {
		t.Errorf("%.1f Mbit/s of 20", got/1e6)
	}
}

func TestBBREntersAndLeavesProbeRTT(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("in ProbeRTT", 8*time.Second, w.in(bbrProbeRTT))
	entered := w.now
	if !w.fullBwReached || bbrGains[w.state].cwnd != 50 {
		t.Error("ProbeRTT in Startup, or without its gain")
	}
	w.reach("out of ProbeRTT", time.Second, w.inProbeBw)
	if d := w.now - entered; d < bbrProbeRTTTime {
		t.Errorf("ProbeRTT took %v", d)
	}
	if w.minRTT > 42*ms {
		t.Errorf("min_rtt is %v of 40 ms", w.minRTT)
	}
}

func TestBBRSkipsProbeRTTAfterIdle(t *testing.T) {
	s := bottleneck(20e6, 40*ms, 3)
	s.bytesA = 4 << 20
	w := runBBR(t, s)
	w.reach("in ProbeBW", 5*time.Second, w.inProbeBw)
	w.reach("all acknowledged", 5*time.Second, func() bool { return w.a.out.released == s.bytesA })
	idle := *w.bbr
	idle.Restart(&w.a.window, w.now+10*time.Second, 10*time.Second)
	idle.updateMinRTT(w.now+10*time.Second, &Sample{})
	idle.checkProbeRTT(&w.a.window, w.now+10*time.Second, &Sample{Any: true, Delivered: 1000})
	if idle.state == bbrProbeRTT || !idle.probeRTTExpired || idle.idleRestart {
		t.Errorf("state %d, expired %v, restart %v", idle.state, idle.probeRTTExpired, idle.idleRestart)
	}
}

func TestBBRGrowsTenfold(t *testing.T) {
	w := runBBR(t, bottleneck(10e6, 20*ms, 8))
	w.reach("in Cruise", 5*time.Second, w.in(bbrProbeCruise))
	w.a.path.rate *= 10
	w.reach("at the new rate", 12*time.Second, func() bool { return float64(w.bw)*8 > 0.85*100e6 })
}

func TestBBRShrinksTenfold(t *testing.T) {
	s := bottleneck(100e6, 20*ms, 1)
	w := runBBR(t, s)
	w.reach("in Cruise", 5*time.Second, w.in(bbrProbeCruise))
	w.a.path.rate /= 10
	w.a.path.queue = 50_000
	w.reach("down for a while", 2*time.Second, func() bool { return float64(w.bwShortterm)*8 < 30e6 })
	w.reach("down at last", 15*time.Second, func() bool { return float64(w.maxBw.max())*8 < 11e6 })
}

func TestBBRManagesLessThanASegmentInFlight(t *testing.T) {
	w := runBBR(t, bottleneck(1e6, 5*ms, 10))
	w.reach("in ProbeBW", 5*time.Second, w.inProbeBw)
	if got := w.carries(10 * time.Second); got < 0.9e6 {
		t.Errorf("%.2f Mbit/s of 1", got/1e6)
	}
	if w.a.window.Size < bbrMinPipe*w.a.window.MSS {
		t.Errorf("window is %d", w.a.window.Size)
	}
}

func TestBBRLeavesStartupOnLoss(t *testing.T) {
	// Section 5.3.1.3: more than 2 % in a round trip, in six ranges.
	s := bottleneck(100e6, 40*ms, 3)
	s.ab.loss = 0.10
	w := runBBR(t, s)
	w.reach("out of Startup", 5*time.Second, func() bool { return w.state != bbrStartup })
	if w.inflightLongterm == bbrNone || !w.fullBwReached {
		t.Error("no bound is set")
	}
}

func TestBBRUndoesSpuriousRecovery(t *testing.T) {
	// Section 5.5.11.2, in ProbeUp.
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
	// Section 3.6.
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
	// Section 5.5.10.2: of 100,000 bytes in flight, this range has 10,000. If 3,000 bytes were lost before
	// it, the loss already exceeds 2 %. If none were, the range crosses the threshold after 1,836 bytes.
	b := BBR(DraftLossThresh)().(*bbr)
	for _, c := range []struct{ lost, want uint64 }{{13_000, 90_000}, {10_000, 91_836}} {
		if got := b.inflightAtLoss(&Loss{Seq: 0, End: 10_000, Lost: c.lost, InFlight: 100_000}); got != c.want {
			t.Errorf("%d lost: %d, want %d", c.lost, got, c.want)
		}
	}
}

func TestBBRRandomLoss(t *testing.T) {
	// Linux's BBR keeps its rate, less the lost part; so does ours with DefaultLossThresh. With the draft's
	// threshold, 39 Mbit/s are left at 1 %, and less than 20 at 3 %.
	for _, loss := range []float64{0.001, 0.01, 0.03} {
		s := bottleneck(50e6, 40*ms, 1)
		s.ab.loss, s.cfgA.Congestion = loss, NewBBR
		w := runBBR(t, s)
		w.until(w.now + 2*time.Second)
		if got, want := w.carries(6*time.Second), 0.9*50e6*(1-loss)*1448/1500; got < want {
			t.Errorf("loss of %.1f %%: %.1f Mbit/s, want %.1f", loss*100, got/1e6, want/1e6)
		}
	}
}

// A sender whose machine is busy sends late. That says nothing about the path, and data that is late leaves at
// once. Here the machine pauses for a third of the time.
func TestBBROnABusyMachine(t *testing.T) {
	for _, c := range []struct {
		rtt   time.Duration
		least float64
	}{{10 * ms, 50e6}, {40 * ms, 70e6}} {
		for _, loss := range []float64{0, 0.01, 0.03} {
			for seed := range uint64(5) {
				s := bottleneck(100e6, c.rtt, 1)
				s.seed, s.ab.loss, s.cfgA.Congestion, s.buffer = seed, loss, NewBBR, 32<<20
				s.pauses = &pauses{rng: rand.New(rand.NewPCG(seed, 1)), run: 20 * ms, stop: 10 * ms}
				w := runBBR(t, s)
				w.until(w.now + time.Second)
				if rate := w.carries(2 * time.Second); rate < c.least {
					t.Errorf("%v, loss of %.0f %%, seed %d: %.1f Mbit/s, want %.0f", c.rtt, loss*100, seed, rate/1e6, c.least/1e6)
				}
			}
		}
	}
}

func TestBBRMarksInsteadOfLoss(t *testing.T) {
	s := bottleneck(50e6, 20*ms, 4)
	s.ab.mark, s.cfgA.ECN, s.cfgB.ECN = 100_000, ECNAsk, ECNAccept
	w := runBBR(t, s)
	w.until(w.now + 2*time.Second)
	got, i := w.carries(4*time.Second), w.a.Info(w.now)
	if got < 40e6 || i.TotalRetrans > 0 || i.DeliveredCE == 0 {
		t.Errorf("%.1f Mbit/s of 50, %d sent again, %d marks", got/1e6, i.TotalRetrans, i.DeliveredCE)
	}
}
