package tcp

// Runs of the simulation over paths of particular kinds, and random paths.
//
// To try more random paths: go test ./stack/tcp -run SimRandom -seeds 10000

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"loam/stack/tcp/congestion"
)

var seeds = flag.Uint64("seeds", 60, "how many random paths to try")

// duplex returns a setup with the same path in both directions.
func duplex(p path) simSetup { return simSetup{seed: 3, ab: p, ba: p} }

func TestSimCleanPathIsFilled(t *testing.T) {
	for _, burst := range []int{1, 64_000} {
		s := duplex(path{rate: 100e6, delay: 10 * ms, queue: 500_000})
		s.bytesA, s.burst = 20<<20, burst
		w := newSim(t, s)
		w.run(time.Hour)
		if w.rate() < 85e6 || w.a.counters[Timeouts] > 0 {
			t.Errorf("frames of %d: %v over 100 Mb/s", burst, w)
		}
	}
}

func TestSimNothingIsSentAgainWithoutLoss(t *testing.T) {
	for _, burst := range []int{1, 64_000} {
		s := duplex(path{rate: 100e6, delay: 10 * ms})
		s.bytesA, s.bytesB, s.burst = 2<<20, 1<<20, burst
		w := newSim(t, s)
		w.run(time.Hour)
		for _, h := range []*simHost{w.a, w.b} {
			if i := h.Info(w.now); i.TotalRetrans > 0 || h.counters[TailProbes] > 0 || h.counters[DuplicatesIn] > 0 {
				t.Errorf("%d segments sent again, %d probes", i.TotalRetrans, h.counters[TailProbes])
			}
		}
	}
}

func TestSimReorderingCostsLittle(t *testing.T) {
	// Other implementations lose most of their throughput here, because each late segment is taken for lost.
	// The window must not shrink for it, or must be restored.
	s := duplex(path{rate: 50e6, delay: 33 * ms, queue: 2_000_000})
	s.bytesA = 20 << 20
	clean := newSim(t, s)
	clean.run(time.Hour)
	s.ab.reorder, s.ab.late = 0.02, 5*ms
	late := newSim(t, s)
	late.run(time.Hour)
	if late.rate() < 0.8*clean.rate() {
		t.Errorf("%v with reordering, %v without", late, clean)
	}
	if n := late.a.counters[FastRecoveries] - late.a.counters[Undos]; n > 3 {
		t.Errorf("%d recoveries for nothing: %v", n, late)
	}
}

// constantWindow is a congestion control that never changes the window.
type constantWindow uint32

func (constantWindow) Name() string                          { return "constant" }
func (n constantWindow) Acked(w *Window, a Ack)              { w.Size = uint32(n) }
func (n constantWindow) Reduce(*Window, Time, uint32) uint32 { return uint32(n) }
func (constantWindow) Timeout(*Window, Time)                 {}
func (constantWindow) Undo(*Window, Time)                    {}
func (constantWindow) Restart(*Window, Time, Time)           {}

func TestSimRealLossIsNotUndone(t *testing.T) {
	// The window has thousands of segments. In every round trip many of them are lost.
	// Recoveries follow one another while retransmissions of the previous one are still in
	// flight.
	for _, loss := range []float64{0.001, 0.01, 0.05} {
		s := duplex(path{rate: 1e9, delay: 25 * ms})
		s.ab.loss, s.bytesA, s.buffer = loss, 30<<20, 16<<20
		s.cfgB.MaxReceiveBuffer = 16 << 20
		s.cfgA.Congestion = func() Congestion { return constantWindow(6 << 20) }
		w := newSim(t, s)
		w.run(time.Hour)
		i := w.a.Info(w.now)
		lost := loss * float64(i.DataSegmentsOut)
		if w.a.counters[Undos] > 0 || float64(i.TotalRetrans) > 1.3*lost+10 {
			t.Errorf("%v, of which %.0f were lost", w, lost)
		}
	}
}

func TestSimDuplicationCostsNothing(t *testing.T) {
	s := duplex(path{rate: 50e6, delay: 10 * ms, dup: 0.2})
	s.bytesA = 4 << 20
	w := newSim(t, s)
	w.run(time.Hour)
	if i := w.a.Info(w.now); i.TotalRetrans > 0 || w.rate() < 30e6 {
		t.Errorf("%v", w)
	}
}

func TestSimMarksInsteadOfLoss(t *testing.T) {
	s := duplex(path{rate: 50e6, delay: 10 * ms, queue: 1_000_000, mark: 100_000})
	s.bytesA = 10 << 20
	s.cfgA.ECN, s.cfgB.ECN = ECNAsk, ECNAccept
	w := newSim(t, s)
	w.run(time.Hour)
	i := w.a.Info(w.now)
	if i.TotalRetrans > 0 || i.DeliveredCE == 0 || w.rate() < 40e6 {
		t.Errorf("%v, %d marks", w, i.DeliveredCE)
	}
}

func TestSimOutage(t *testing.T) {
	s := duplex(path{rate: 50e6, delay: 10 * ms, queue: 500_000})
	s.bytesA = 8 << 20
	s.ab.outage = func(at Time) bool { return at > time.Hour+500*ms && at < time.Hour+3500*ms }
	w := newSim(t, s)
	w.run(time.Hour)
	// The outage lasts 3 s. The sender notices its end at its next retransmission timeout, which has been doubled: at most
	// 3.4 s later.
	if d := w.b.finished - time.Hour; d > 8*time.Second {
		t.Errorf("8 MiB took %v with 3 s of outage: %v", d, w)
	}
}

func TestSimSlowReader(t *testing.T) {
	s := duplex(path{rate: 100e6, delay: ms, queue: 500_000})
	s.bytesA, s.slow = 1<<20, 500
	w := newSim(t, s)
	w.run(time.Hour)
	i := w.a.Info(w.now)
	if i.TotalRetrans > 0 || w.a.counters[Timeouts] > 0 {
		t.Errorf("%v", w)
	}
	if i.DataSegmentsOut > 1600 { // 725 full segments of 1448 bytes would carry the data
		t.Errorf("%d segments for a slow reader: silly windows", i.DataSegmentsOut)
	}
}

func TestSimSmallWritesOfManySizes(t *testing.T) {
	for buffer := uint64(100); buffer < 6000; buffer += 371 {
		s := duplex(path{rate: 100e6, delay: ms, loss: 0.02})
		s.bytesA, s.buffer = 60_000, buffer
		newSim(t, s).run(time.Hour)
	}
}

func TestSimFillsLongFatPath(t *testing.T) {
	// 4 MiB of window over 100 ms are 335 Mb/s.
	s := duplex(path{rate: 1e9, delay: 50 * ms, queue: 8 << 20})
	s.bytesA, s.burst, s.buffer = 100<<20, 64_000, 8<<20
	w := newSim(t, s)
	w.run(time.Hour)
	if w.rate() < 200e6 || w.a.Info(w.now).TotalRetrans > 0 {
		t.Errorf("%v, window %d", w, w.b.Info(w.now).RcvSpace)
	}
}

// randomSetup returns a random path and two random configurations.
func randomSetup(seed uint64) simSetup {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(xs ...float64) float64 { return xs[r.IntN(len(xs))] }
	mss := int(pick(1460, 1460, 536, 8960, 88))
	aPath := func() path {
		p := path{
			rate: int(pick(1e6, 10e6, 100e6, 1e9)), delay: time.Duration(pick(0, 0.05, 1, 20, 150) * 1e6),
			queue: int(pick(0, 5000, 30000, 200000)), mark: int(pick(0, 0, 10000)),
			loss:    pick(0, 0, 0.01, 0.1, 0.3),
			reorder: pick(0, 0, 0.02, 0.3), late: time.Duration(pick(0.1, 5, 50) * 1e6),
			dup: pick(0, 0, 0.02, 0.5),
		}
		if p.queue > 0 {
			p.queue = max(p.queue, 3*mss)
		}
		return p
	}
	config := func() Config {
		c := Config{
			ReceiveBuffer: int(pick(0, 2048, 10000)), MaxReceiveBuffer: int(pick(0, 2048, 50000, 1<<20)),
			NoDelay: r.IntN(2) == 0, NoSACK: r.IntN(4) == 0, NoTimestamps: r.IntN(3) == 0, NoWindowScale: r.IntN(4) == 0,
			ECN: ECNMode(r.IntN(3)), TimeWait: time.Hour, MaxRTO: 5 * time.Second, Retries: 100, SynRetries: 50,
		}
		if r.IntN(3) == 0 {
			c.Congestion = congestion.NewReno
		}
		if r.IntN(3) == 0 {
			c.Congestion = congestion.NewBBR
		}
		if r.IntN(3) == 0 {
			c.KeepAlive, c.KeepAliveCount = time.Second, 100
		}
		return c
	}
	return simSetup{
		seed: seed, ab: aPath(), ba: aPath(), cfgA: config(), cfgB: config(), mss: mss,
		bytesA: uint64(r.IntN(300_000)), bytesB: uint64(pick(0, 1, 50_000)), buffer: uint64(pick(0, 1000, 30_000)),
		burst: int(pick(0, 1460, 10_000, 65_000)), slow: int(pick(0, 0, 0, 100, 3000)),
	}
}

func TestSimRandom(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 4
	}
	for seed := range n {
		s := randomSetup(seed)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { newSim(t, s).run(20 * time.Hour) }) {
			t.Fatalf("%+v", s)
		}
	}
}
