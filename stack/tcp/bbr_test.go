package tcp

import (
	"math/rand/v2"
	"testing"
	"time"

	"loam/stack/tcp/congestion"
)

// This file has the example test cases of draft-ietf-ccwg-bbr (its last appendix), with the draft's
// LossThresh. Each runs over a bottleneck in virtual time. The headings are the draft's.

// bottleneck returns a path whose queue holds the given number of round trips of data, and a sender with the
// draft's BBR.
func bottleneck(rate int, rtt time.Duration, queue float64) simSetup {
	bdp := float64(rate) / 8 * rtt.Seconds()
	s := simSetup{seed: 3, ab: path{rate: rate, delay: rtt / 2, queue: max(int(bdp*queue), 20_000)}, ba: path{rate: rate, delay: rtt / 2}}
	s.bytesA, s.buffer, s.burst = 1<<30, 8<<20, 64_000
	s.cfgA.Congestion = congestion.BBR(congestion.DraftLossThresh)
	s.cfgB.MaxReceiveBuffer = 16 << 20
	return s
}

// bbrSim is a running simulation of a sender with BBR.
type bbrSim struct{ *sim }

// path returns the sender's model of the path.
func (w *bbrSim) path() congestion.Path {
	return w.a.Conn.cc.(interface {
		Path(*Window) congestion.Path
	}).Path(&w.a.window)
}

func runBBR(t *testing.T, s simSetup) *bbrSim {
	w := newSim(t, s)
	w.long = true
	for w.a.Conn.cc == nil {
		w.step()
	}
	return &bbrSim{w}
}

// step advances to the next event.
func (w *sim) step() { w.until(w.events[0].at) }

// reach advances until f returns true, and fails after the duration limit.
func (w *bbrSim) reach(what string, limit time.Duration, f func() bool) {
	w.t.Helper()
	for end := w.now + limit; !f(); w.step() {
		if w.now > end {
			w.t.Fatalf("not %s after %v: %+v", what, limit, w.path())
		}
	}
}

func (w *bbrSim) in(phase string) func() bool { return func() bool { return w.path().Phase == phase } }

// inProbeBw reports whether the sender is in one of the phases of ProbeBW.
func (w *bbrSim) inProbeBw() bool {
	switch w.path().Phase {
	case "ProbeDown", "ProbeCruise", "ProbeRefill", "ProbeUp":
		return true
	}
	return false
}

// inStartup reports whether the sender is in Startup.
func (w *bbrSim) inStartup() bool { return w.path().Phase == "Startup" }

// carries returns the rate of the data received during d, in bits per second.
func (w *sim) carries(d time.Duration) float64 {
	before := w.b.in.committed
	w.until(w.now + d)
	return float64(w.b.in.committed-before) * 8 / d.Seconds()
}

func TestBBRLeavesStartupOnPlateau(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("out of Startup", 5*time.Second, func() bool { return !w.inStartup() })
	p := w.path()
	if p.Phase != "Drain" || !p.Full || p.FullRounds != 3 {
		t.Errorf("%+v", p)
	}
	if bw := float64(p.Most) * 8; bw < 0.98*20e6*1448/1500 || bw > 1.02*20e6 {
		t.Errorf("max_bw is %.1f Mbit/s, want within 2 %% of 20", bw/1e6)
	}
}

func TestBBRStartupDoublesTheRate(t *testing.T) {
	// Section 5.3.1.1 of the BBR draft: O(log2(BDP)) round trips, here from 10 segments to 69.
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("at the rate", 6*40*ms, func() bool { return float64(w.path().Bandwidth)*8 > 0.9*20e6 })
}

func TestBBRLeavesDrainOnInflight(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("in Drain", 5*time.Second, w.in("Drain"))
	if g := w.a.Info(w.now).BBR.PacingGain; g != 50 {
		t.Errorf("pacing gain is %d %%", g)
	}
	w.reach("in ProbeBW", 5*40*ms, w.inProbeBw)
	if pipe := uint64(w.a.pipe()); pipe > w.path().Volume {
		t.Errorf("%d bytes in flight at the end of Drain", pipe)
	}
}

func TestBBRCyclesThroughProbeBw(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	for _, s := range []string{"ProbeDown", "ProbeCruise", "ProbeRefill", "ProbeUp", "ProbeDown", "ProbeCruise"} {
		w.reach("in the next phase", 5*time.Second, w.in(s))
	}
	if got := w.carries(4 * time.Second); got < 0.9*20e6 {
		t.Errorf("%.1f Mbit/s of 20", got/1e6)
	}
}

func TestBBREntersAndLeavesProbeRTT(t *testing.T) {
	w := runBBR(t, bottleneck(20e6, 40*ms, 3))
	w.reach("in ProbeRTT", 8*time.Second, w.in("ProbeRTT"))
	entered := w.now
	if !w.path().Full || w.a.Info(w.now).BBR.WindowGain != 50 {
		t.Error("ProbeRTT in Startup, or without its gain")
	}
	w.reach("out of ProbeRTT", time.Second, w.inProbeBw)
	if d := w.now - entered; d < 200*ms {
		t.Errorf("ProbeRTT took %v", d)
	}
	if d := w.path().MinRTT; d > 42*ms {
		t.Errorf("min_rtt is %v of 40 ms", d)
	}
}

func TestBBRGrowsTenfold(t *testing.T) {
	w := runBBR(t, bottleneck(10e6, 20*ms, 8))
	w.reach("in Cruise", 5*time.Second, w.in("ProbeCruise"))
	w.a.path.rate *= 10
	w.reach("at the new rate", 12*time.Second, func() bool { return float64(w.path().Bandwidth)*8 > 0.85*100e6 })
}

func TestBBRShrinksTenfold(t *testing.T) {
	s := bottleneck(100e6, 20*ms, 1)
	w := runBBR(t, s)
	w.reach("in Cruise", 5*time.Second, w.in("ProbeCruise"))
	w.a.path.rate /= 10
	w.a.path.queue = 50_000
	w.reach("down for a while", 2*time.Second, func() bool { return float64(w.path().Short)*8 < 30e6 })
	w.reach("down at last", 15*time.Second, func() bool { return float64(w.path().Most)*8 < 11e6 })
}

func TestBBRManagesLessThanASegmentInFlight(t *testing.T) {
	w := runBBR(t, bottleneck(1e6, 5*ms, 10))
	w.reach("in ProbeBW", 5*time.Second, w.inProbeBw)
	if got := w.carries(10 * time.Second); got < 0.9e6 {
		t.Errorf("%.2f Mbit/s of 1", got/1e6)
	}
	if w.a.window.Size < 4*w.a.window.MSS {
		t.Errorf("window is %d", w.a.window.Size)
	}
}

func TestBBRLeavesStartupOnLoss(t *testing.T) {
	// Section 5.3.1.3 of the BBR draft: Startup ends if more than 2 % is lost in a round
	// trip, in six ranges.
	s := bottleneck(100e6, 40*ms, 3)
	s.ab.loss = 0.10
	w := runBBR(t, s)
	w.reach("out of Startup", 5*time.Second, func() bool { return !w.inStartup() })
	if p := w.path(); !p.Bounded || !p.Full {
		t.Error("no bound is set")
	}
}

func TestBBRRandomLoss(t *testing.T) {
	// Linux's BBR keeps its rate, less the lost part; so does ours with DefaultLossThresh. With the draft's
	// threshold, 39 Mbit/s are left at 1 %, and less than 20 at 3 %.
	for _, loss := range []float64{0.001, 0.01, 0.03} {
		s := bottleneck(50e6, 40*ms, 1)
		s.ab.loss, s.cfgA.Congestion = loss, congestion.NewBBR
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
				s.seed, s.ab.loss, s.cfgA.Congestion, s.buffer = seed, loss, congestion.NewBBR, 32<<20
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
