package tcp

import (
	"testing"
	"time"

	"loam/stack/tcp/congestion"
)

// In the tests of this file, two connections share a bottleneck. Its queue holds as much data as the link carries in
// two round trips.

// share runs connections with the given congestion controls side by side. It returns the bits per second of
// each after the first ten seconds.
func share(t *testing.T, d time.Duration, ccs ...func() Congestion) (rates []float64) {
	const rate, rtt = 20e6, 40 * ms
	bottleneck := path{rate: rate, delay: rtt / 2, queue: rate / 8 * 2 * int(rtt/ms) / 1000}
	var ws []*sim
	for i, cc := range ccs {
		s := simSetup{seed: uint64(i + 1), ab: bottleneck, ba: bottleneck, bytesA: 1 << 30, buffer: 8 << 20}
		s.cfgA.Congestion = cc
		w := newSim(t, s)
		w.long, w.a.shared = true, &bottleneck
		ws = append(ws, w)
	}
	const settle = 10 * time.Second
	runTogether(ws, time.Hour+settle)
	for _, w := range ws {
		rates = append(rates, -float64(w.b.in.committed))
	}
	runTogether(ws, time.Hour+settle+d)
	for i, w := range ws {
		rates[i] = (rates[i] + float64(w.b.in.committed)) * 8 / d.Seconds()
	}
	return rates
}

// runTogether runs the events of several simulations in order of time.
func runTogether(ws []*sim, end Time) {
	for {
		next := ws[0]
		for _, w := range ws {
			if w.events[0].at < next.events[0].at {
				next = w
			}
		}
		if next.events[0].at > end {
			return
		}
		next.step()
	}
}

func TestFairness(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  func() Congestion
		least float64 // minimum share of the slower connection in the sum of both rates
	}{
		{"cubic, cubic", congestion.NewCubic, congestion.NewCubic, 0.3},
		{"bbr, bbr", congestion.NewBBR, congestion.NewBBR, 0.3},
		{"bbr by the draft, the same", congestion.BBR(congestion.DraftLossThresh), congestion.BBR(congestion.DraftLossThresh), 0.3},
		{"bbr, cubic", congestion.NewBBR, congestion.NewCubic, 0.1},
		{"bbr by the draft, cubic", congestion.BBR(congestion.DraftLossThresh), congestion.NewCubic, 0.15},
	} {
		r := share(t, 40*time.Second, c.a, c.b)
		sum := r[0] + r[1]
		t.Logf("%s: %.1f and %.1f Mbit/s of 20", c.name, r[0]/1e6, r[1]/1e6)
		if least := min(r[0], r[1]) / sum; least < c.least || sum < 0.9*20e6*1448/1500 {
			t.Errorf("%s: %.1f and %.1f Mbit/s of 20", c.name, r[0]/1e6, r[1]/1e6)
		}
	}
}
