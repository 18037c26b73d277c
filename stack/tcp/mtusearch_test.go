package tcp

import (
	"net/netip"
	"testing"
	"time"

	"loam/stack/plpmtud"
	"loam/stack/tcp/congestion"
)

// Path MTU discovery without ICMP (RFC 4821), and black holes (RFC 2923 section 2.1).

// wide returns a connection on a path of 1500 bytes that has two full segments in flight. If proven, the peer has acknowledged a
// full segment before.
func wide(t *testing.T, cfg *Config, proven bool) *testConn {
	c := accept(t, cfg, "S 0 win 50000 <mss 1460>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	if proven {
		c.write(1460)
		c.want("PA 1:1461 ack 1")
		c.send("A 1 ack 1461")
	}
	return c
}

func TestBlackHoleIsPassed(t *testing.T) {
	c := wide(t, nil, true)
	c.write(2920)
	c.want("A 1461:2921 ack 1")
	c.want("PA 2921:4381 ack 1")
	c.advance(time.Second)
	c.want("A 1461:2921 ack 1")
	c.advance(time.Second)
	c.want("A 1461:2921 ack 1")
	c.advance(2 * time.Second)
	// RFC 4821 section 7.7: R1 timeouts of one segment without an ICMP message are a full-stop timeout.
	c.want("A 1461:2485 ack 1")
	c.wantCount(BlackHoles, 1)
	c.send("A 1 ack 2485")
	c.want("A 2485:3509 ack 1")
	c.send("A 1 ack 3509")
	c.want("PA 3509:4381 ack 1")
	c.send("A 1 ack 4381")
	if i := c.Info(c.now); i.SndMSS != 1024 || i.PathMSS != 1024 {
		t.Errorf("segments of %d bytes, a path for %d", i.SndMSS, i.PathMSS)
	}
}

// A size that was never acknowledged is given up after two timeouts.
func TestNarrowBlackHoleIsPassed(t *testing.T) {
	c := wide(t, nil, false)
	c.write(2920)
	c.want("A 1:1461 ack 1")
	c.want("PA 1461:2921 ack 1")
	c.advance(time.Second)
	c.want("A 1:1461 ack 1")
	c.advance(time.Second)
	c.want("A 1:1025 ack 1")
	c.advance(2 * time.Second)
	// RFC 4821 section 7.7: search_low and eff_pmtu are halved upon additional timeouts, down to a size that every host accepts.
	c.want("A 1:537 ack 1")
	c.advance(4 * time.Second)
	c.want("A 1:537 ack 1")
}

// If a router or this host reports that there is no route, the path is not taken for a black hole.
func TestPathWithoutEndIsNoBlackHole(t *testing.T) {
	c := wide(t, nil, false)
	c.write(2920)
	c.want("A 1:1461 ack 1")
	c.want("PA 1461:2921 ack 1")
	for _, d := range []time.Duration{1, 1, 2, 4} {
		c.ICMP(c.now, ICMPUnreachable, testISS+1, 0)
		c.advance(d * time.Second)
		c.want("A 1:1461 ack 1")
	}
}

func TestBlackHoleWithoutSearch(t *testing.T) {
	c := wide(t, &Config{Probing: plpmtud.Config{Mode: plpmtud.Off}}, false)
	c.write(2920)
	c.want("A 1:1461 ack 1")
	c.want("PA 1461:2921 ack 1")
	for _, d := range []time.Duration{1, 1, 2, 4} {
		c.advance(d * time.Second)
		c.want("A 1:1461 ack 1")
	}
	c.wantCount(BlackHoles, 0)
}

func TestLossOfSmallSegmentsIsNoBlackHole(t *testing.T) {
	c := wide(t, nil, false)
	c.write(500)
	c.want("PA 1:501 ack 1")
	for _, d := range []time.Duration{1, 1, 2, 4} {
		c.advance(d * time.Second)
		c.want("PA 1:501 ack 1")
	}
	c.send("A 1 ack 501")
	if i := c.Info(c.now); i.SndMSS != 1460 {
		t.Errorf("segments of %d bytes", i.SndMSS)
	}
}

// probing returns a connection that searches from the beginning, with n bytes to send and its first probe sent.
func probing(t *testing.T, options string, n int) *testConn {
	c := accept(t, &Config{Probing: plpmtud.Config{Mode: plpmtud.Always}}, "S 0 win 50000 <mss 1460"+options+">")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.write(n)
	c.want("A 1:1461 ack 1") // the probe has the largest size that the link and the peer allow
	return c
}

func TestDeliveredProbeRaisesTheSize(t *testing.T) {
	c := probing(t, ", sackOK", 20_000)
	c.want("A 1461:2485 ack 1") // RFC 4821 section 7.5: one probe at a time; the rest has the usual size
	size := c.window.Size
	c.send("A 1 ack 1461")
	if i := c.Info(c.now); i.SndMSS != 1460 || c.window.Size < size {
		t.Errorf("segments of %d bytes, window %d after %d", i.SndMSS, c.window.Size, size)
	}
	c.wantCount(MTUProbes, 1)
}

// RFC 4821 section 7.6.2: the loss of the probe alone indicates that the path MTU is smaller. It is no sign of congestion.
func TestLostProbeIsRepairedWithoutCongestionResponse(t *testing.T) {
	for _, options := range []string{", sackOK", ""} {
		c := probing(t, options, 20_000)
		for i := range 4 {
			c.want("A " + itoa(1461+1024*i) + ":" + itoa(2485+1024*i) + " ack 1")
		}
		size, threshold := c.window.Size, c.window.Threshold
		for i := range 3 {
			if options == "" {
				c.send("A 1 ack 1")
			} else {
				c.send("A 1 ack 1 <sack 1461-" + itoa(2485+1024*i) + ">")
			}
		}
		c.wantCount(MTUProbesLost, 1)
		if c.rec.state != CAOpen || c.window.Size < size || c.window.Threshold != threshold {
			t.Errorf("%q: state %v, window %d after %d, threshold %d after %d", options, c.rec.state, c.window.Size, size, c.window.Threshold, threshold)
		}
		c.want("A 1:1025 ack 1") // the data of the probe in segments of the usual size
		c.want("A 1025:1461 ack 1")
	}
}

// RFC 4821 section 7.6.4: if other segments are lost with the probe, it is inconclusive, and the losses are a sign of congestion.
func TestLossBesideProbeIsCongestion(t *testing.T) {
	c := probing(t, ", sackOK", 20_000)
	c.drain()
	size := c.window.Size
	c.send("A 1 ack 1 <sack 2485-5557>")
	c.wantCount(MTUProbesLost, 0)
	if c.rec.state != CARecovery || c.window.Threshold >= size {
		t.Errorf("state %v, threshold %d of %d", c.rec.state, c.window.Threshold, size)
	}
}

// RFC 4821 section 7.4: a probe requires enough data to follow it.
func TestProbeNeedsData(t *testing.T) {
	c := accept(t, &Config{Probing: plpmtud.Config{Mode: plpmtud.Always}}, "S 0 win 50000 <mss 1460, sackOK>")
	c.want("SA 0 ack 1")
	c.send("A 1 ack 1")
	c.write(4000)
	c.want("A 1:1025 ack 1")
}

// A report of a router about a probe is believed.
func TestReportAboutProbe(t *testing.T) {
	c := probing(t, ", sackOK", 20_000)
	if !c.ICMP(c.now, ICMPTooBig, testISS+1, 1360) {
		t.Error("message not believed")
	}
	if got := c.Info(c.now).SndMSS; got != 1024 {
		t.Errorf("segments of %d bytes", got)
	}
	c.search.Inconclusive()
	if got := c.search.Next(c.now); got != 1400 {
		t.Errorf("the next probe has %d bytes", got)
	}
}

// holes are the paths of the tests below: the MTU of a path in one direction by time.
func constant(mtu int) func(Time) int { return func(Time) int { return mtu } }

// sizeOf returns the size of full packets that a host sends.
func (h *simHost) sizeOf() int {
	i := h.Info(h.sim.now)
	n := i.SndMSS + h.headers()
	if i.Timestamps {
		n += timestampsLen
	}
	return n
}

// wantSize checks the size of the packets of a host: at most mtu, and nearly as large.
func (h *simHost) wantSize(t *testing.T, mtu int) {
	t.Helper()
	if n := h.sizeOf(); n > mtu || n <= mtu-plpmtud.DefaultThreshold {
		t.Errorf("packets of %d bytes on a path with an MTU of %d: %+v", n, mtu, h.search)
	}
}

var testID6 = ID{
	Local:  netip.MustParseAddrPort("[2001:db8::1]:80"),
	Remote: netip.MustParseAddrPort("[2001:db8::2]:40000"),
}

// holed returns a simulation of a path that drops packets larger than mtu, in both directions.
func holed(t *testing.T, mtu int, id ID, cc func() Congestion, fromA, fromB uint64) *sim {
	s := duplex(path{rate: 10e6, delay: 10 * ms, queue: 50_000, mtu: constant(mtu)})
	s.bytesA, s.bytesB, s.id = fromA, fromB, id
	s.mss = 1500 - HeadersLen(id.Remote.Addr())
	s.cfgA.Congestion, s.cfgB.Congestion = cc, cc
	if mtu%100 == 0 {
		s.burst = 64_000
	}
	return newSim(t, s)
}

func TestSimBlackHole(t *testing.T) {
	for _, cc := range []func() Congestion{nil, congestion.NewBBR} {
		for _, mtu := range []int{1492, 1400, 1280, 600} {
			for _, id := range []ID{testID, testID6} {
				if id == testID6 && mtu < 1280 {
					continue
				}
				for _, bytes := range [][2]uint64{{8 << 20, 0}, {0, 8 << 20}} {
					w := holed(t, mtu, id, cc, bytes[0], bytes[1])
					sender := w.a
					if bytes[0] == 0 {
						sender = w.b
					}
					w.until(time.Hour + 800*ms)
					if n := sender.Info(w.now).BytesAcked; n == 0 && mtu > 1064 {
						t.Errorf("MTU %d: nothing has passed after 800 ms", mtu)
					}
					w.until(time.Hour + 6*time.Second)
					sender.wantSize(t, mtu)
					w.run(time.Hour)
				}
			}
		}
	}
}

// If both hosts send at once, their large segments also carry the acknowledgments, which are lost with them.
func TestSimBlackHoleOfBothHosts(t *testing.T) {
	w := holed(t, 1400, testID, nil, 20<<20, 20<<20)
	w.until(time.Hour + 15*time.Second)
	w.a.wantSize(t, 1400)
	w.b.wantSize(t, 1400)
	w.run(time.Hour)
}

// A path that shrinks during a transfer, and grows again later. Its size is found both times.
func TestSimPathChanges(t *testing.T) {
	{
		s := duplex(path{rate: 1e6, delay: 10 * ms, queue: 30_000})
		s.bytesA = 120 << 20
		s.ab.mtu = func(at Time) int {
			if at < time.Hour+10*time.Second || at > time.Hour+5*time.Minute {
				return 1500
			}
			return 1420
		}
		w := newSim(t, s)
		w.long = true
		w.until(time.Hour + 9*time.Second)
		w.a.wantSize(t, 1500)
		w.until(time.Hour + 20*time.Second)
		w.a.wantSize(t, 1420)
		w.until(time.Hour + 11*time.Minute)
		w.a.wantSize(t, 1500) // after ten minutes, larger sizes are tried again
	}
}

// Random loss must not keep the size low. Losses near a probe make it inconclusive.
func TestSimRandomLossIsNoNarrowPath(t *testing.T) {
	for seed := range uint64(4) {
		for _, mtu := range []int{1500, 1400} {
			s := duplex(path{rate: 20e6, delay: 10 * ms, queue: 100_000, loss: 0.02, mtu: constant(mtu)})
			s.seed, s.bytesA, s.buffer = seed, 20<<20, 256<<10
			s.cfgA.Probing.Mode = plpmtud.Always
			w := newSim(t, s)
			w.until(time.Hour + 20*time.Second)
			w.a.wantSize(t, mtu)
		}
	}
}

// An outage that ends right after the fallback looks like a black hole. The first probe after it restores the size.
func TestSimOutageIsNoNarrowPath(t *testing.T) {
	s := duplex(path{rate: 20e6, delay: 10 * ms, queue: 100_000})
	s.bytesA = 100 << 20
	paths := &storedPaths{}
	s.cfgA.Paths = paths
	var w *sim
	s.ab.outage = func(at Time) bool { return at > time.Hour+time.Second && w.a.counters[BlackHoles] == 0 }
	w = newSim(t, s)
	w.until(time.Hour + 5*time.Second)
	if w.a.counters[BlackHoles] == 0 {
		t.Error("the outage does not look like a black hole")
	}
	w.a.wantSize(t, 1500)
	if n := w.a.counters[MTUProbes]; n != 1 {
		t.Errorf("%d probes", n)
	}
	if paths.result != (plpmtud.Result{}) {
		t.Errorf("%+v is stored", paths.result)
	}
}

// storedPaths is a Paths that stores one result.
type storedPaths struct {
	plpmtud.Config
	result plpmtud.Result
}

func (p *storedPaths) Searches() plpmtud.Config { return p.Config }
func (p *storedPaths) Found(Time, netip.Addr) (plpmtud.Result, bool) {
	return p.result, p.result.Low != 0
}
func (p *storedPaths) Store(_ Time, _ netip.Addr, r plpmtud.Result) { p.result = r }

// An outage leaves no trace: the full size is used again with the first data that passes, and nothing is stored for other
// connections. With a small buffer, the program never has enough data for a probe.
func TestSimOutageLeavesNoTrace(t *testing.T) {
	for _, cc := range []func() Congestion{nil, congestion.NewBBR} {
		for _, buffer := range []uint64{3000, 1 << 20} {
			for _, outage := range []time.Duration{300 * ms, 2 * time.Second, 5 * time.Second, 20 * time.Second, 60 * time.Second} {
				for _, loss := range []float64{0, 0.05} {
					s := duplex(path{rate: 5e6, delay: 10 * ms, queue: 30_000, loss: loss})
					s.ab.outage = func(at Time) bool { return at > time.Hour+time.Second && at < time.Hour+time.Second+outage }
					s.bytesA, s.buffer = 1<<30, buffer
					paths := &storedPaths{}
					s.cfgA.Paths, s.cfgA.Congestion = paths, cc
					w := newSim(t, s)
					w.long = true
					end := time.Hour + time.Second + outage
					w.until(end)
					before := w.a.Info(w.now).BytesAcked
					for w.a.Info(w.now).BytesAcked == before {
						end += 10 * ms
						w.until(end)
					}
					w.until(end + 2*time.Second)
					suspected := w.a.counters[BlackHoles] > 0
					if loss == 0 && suspected != (outage >= 2*time.Second) {
						t.Errorf("outage of %v: suspected %v", outage, suspected)
					}
					if n := w.a.sizeOf(); n != 1500 {
						t.Errorf("outage of %v, buffer %d, loss %v: packets of %d bytes: %+v", outage, buffer, loss, n, w.a.search)
					}
					if paths.result != (plpmtud.Result{}) {
						t.Errorf("outage of %v, buffer %d, loss %v: %+v is stored", outage, buffer, loss, paths.result)
					}
				}
			}
		}
	}
}

// All data arrives, but the acknowledgments of some seconds are delayed. The timeouts were unnecessary (RFC 3522), so the size remains.
func TestSimDelayIsNoBlackHole(t *testing.T) {
	s := duplex(path{rate: 5e6, delay: 10 * ms, queue: 60_000})
	s.bytesA, s.buffer = 100<<20, 3000 // too little data for a probe
	w := newSim(t, s)
	const end = time.Hour + 3*time.Second
	for at := time.Hour + time.Second; at < end; at += 5 * ms {
		w.until(at)
		w.b.path.delay = end - at
	}
	w.b.path.delay = 10 * ms
	w.until(end + time.Second)
	if w.a.counters[BlackHoles] == 0 || w.a.counters[Undos] == 0 || w.a.counters[MTUProbes] > 0 {
		t.Errorf("%d suspicions, %d undone timeouts, %d probes", w.a.counters[BlackHoles], w.a.counters[Undos], w.a.counters[MTUProbes])
	}
	w.a.wantSize(t, 1500)
}
