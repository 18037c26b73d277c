package pace

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func rate(t testing.TB, s string) Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRates(t *testing.T) {
	for s, want := range map[string]Rate{
		"max": {}, "1pps": {1, Frames}, "250kpps": {250_000, Frames}, "250Kpps": {250_000, Frames}, "1.5Mpps": {1_500_000, Frames},
		"2Gbps": {2_000_000_000, L2Bits}, "10GbpsL1": {10_000_000_000, L1Bits}, "1Tbps": {1_000_000_000_000, L2Bits},
	} {
		got := rate(t, s)
		if got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
		if again := rate(t, got.String()); again != got {
			t.Errorf("%s: printed as %s", s, got)
		}
	}
	for _, s := range []string{"", "1", "pps", "0pps", "-1pps", "1e9pps", "infpps", "2Gpps", "2Tbps", "1mpps", "0.1pps", "1 Mpps", "5bpsL2", "max pps"} {
		if r, err := ParseRate(s); err == nil {
			t.Errorf("%q was read as %v", s, r)
		}
	}
}

// 10 Gb/s on the wire are 14.88 million of the smallest frames (RFC 2544 annex).
func TestLineRate(t *testing.T) {
	if got := rate(t, "10GbpsL1").FramesPerSecond(64); math.Abs(got-14_880_952) > 1 {
		t.Errorf("%v frames a second, want 14880952", got)
	}
}

func TestSharesAddUp(t *testing.T) {
	r, sum := rate(t, "1000003pps"), uint64(0)
	for i := range 7 {
		sum += r.Share(i, 7).PerSecond
	}
	if sum != r.PerSecond {
		t.Errorf("the shares add up to %d", sum)
	}
}

// Whatever the rate, and however late the sender wakes each time, the number of
// frames in every second is right within 0.1 %, or one frame.
func TestClockHoldsTheRate(t *testing.T) {
	for _, s := range []string{"1pps", "7pps", "999pps", "33333pps", "1Mpps", "14880952pps", "1Mbps", "9.9Gbps", "10GbpsL1"} {
		r := rate(t, s)
		const size = 64
		c := NewClock(r, size, 0)
		random := rand.New(rand.NewPCG(1, 2))
		want := r.FramesPerSecond(size)
		now, sent := int64(12345), 0
		for second := range int64(3) {
			end := 12345 + (second+1)*int64(time.Second)
			sent = 0
			for now < end {
				n := min(c.Permits(now), 64)
				c.Sent(n, n*size)
				sent += n
				now = max(c.Next(), now) + random.Int64N(2000) // late by up to 2 µs
			}
			if diff := math.Abs(float64(sent) - want); diff > max(want/1000, 1) {
				t.Errorf("%s: %d frames in second %d, want %.0f", s, sent, second, want)
			}
		}
	}
}

// Of frames of several sizes the bits are counted, not the frames.
func TestClockCountsBits(t *testing.T) {
	r := rate(t, "100Mbps")
	c := NewClock(r, 362, 0)
	sizes := []int{64, 1518, 64, 594, 64, 64, 9000}
	bits := 0
	for now, i := int64(0), 0; now < int64(time.Second); now = max(now, c.Next()) {
		if c.Permits(now) > 0 {
			size := sizes[i%len(sizes)]
			c.Sent(1, size)
			bits += 8 * size
			i++
		}
	}
	if math.Abs(float64(bits)-100e6) > 100e3 {
		t.Errorf("%d bits in a second, want 100 million within 0.1 %%", bits)
	}
}

// After a stall no more than the bound is made up for, and the rest is told.
func TestNoBurstAfterAStall(t *testing.T) {
	for _, s := range []string{"1Mpps", "1Gpps", "1Tbps"} {
		r := rate(t, s)
		c := NewClock(r, 1000, 5*time.Millisecond)
		c.Permits(0)
		c.Sent(1, 1000)
		n := c.Permits(int64(time.Hour))
		if most := r.FramesPerSecond(1000)/200 + 1; float64(n) > most {
			t.Errorf("%s: %d frames at once after an hour, want at most %.0f", s, n, most)
		}
		if missed := c.Missed(); missed < time.Hour-6*time.Millisecond || missed > time.Hour {
			t.Errorf("%s: missed %v of an hour", s, missed)
		}
	}
	slow := NewClock(rate(t, "1pps"), 64, time.Millisecond)
	slow.Permits(0)
	slow.Sent(1, 64)
	if n := slow.Permits(int64(time.Minute)); n != 1 {
		t.Errorf("%d frames at once at 1 pps, want 1: the bound is never below a frame", n)
	}
}

func TestClockWithoutLimit(t *testing.T) {
	c := NewClock(Rate{}, 64, 0)
	for range 3 {
		if n := c.Permits(0); n != Unlimited {
			t.Errorf("%d permits", n)
		}
		c.Sent(1000, 64000)
	}
}

// The pacer sleeps while the time is far, watches when it is near, and never
// goes early. The clock of this test moves by itself when it is read, and sleeps
// are late.
func TestPacerWaits(t *testing.T) {
	now, slept := int64(0), 0
	p := NewPacer(NewClock(rate(t, "100pps"), 64, 0))
	p.now = func() int64 { now += 50; return now }
	p.sleep = func(d time.Duration) { now += int64(d) + 90_000; slept++ }
	never := func() bool { return false }
	for i := range 100 {
		if n := p.Wait(64, never); n != 1 {
			t.Fatalf("frame %d: %d permits", i, n)
		}
		due := int64(50) + int64(i)*int64(10*time.Millisecond)
		if now < due || now > due+200 {
			t.Fatalf("frame %d went %d ns after its time", i, now-due)
		}
		p.Sent(1, 64)
	}
	if slept < 90 {
		t.Errorf("it slept %d times", slept)
	}
	g := p.Spread.Gaps()
	if g.Count != 99 || g.P50 < 9900*time.Microsecond || g.Max > 10100*time.Microsecond || g.Deviation > 20*time.Microsecond {
		t.Errorf("gaps %+v", g)
	}
}

func TestPacerStops(t *testing.T) {
	p := NewPacer(NewClock(rate(t, "1pps"), 64, 0))
	now, asked := int64(0), 0
	p.now = func() int64 { return now }
	p.sleep = func(d time.Duration) { now += int64(d) }
	p.Wait(1, nil)
	p.Sent(1, 64)
	if n := p.Wait(1, func() bool { asked++; return asked == 3 }); n != 0 || now > int64(200*time.Millisecond) {
		t.Errorf("%d permits at %d", n, now)
	}
}

// Frames that go in one batch have no gap, and that is told.
func TestSpreadOfBatches(t *testing.T) {
	s, o := NewSpread(), NewSpread()
	for i := range int64(10) {
		s.Sent(i*1000, 10)
	}
	o.Sent(0, 1)
	o.Sent(int64(time.Hour), 1) // out of range
	if g := s.Gaps(); g.Count != 99 || g.P50 != 0 || g.Max < 990 || g.Max > 1010 {
		t.Errorf("gaps %+v", g)
	}
	s.Merge(o)
	if g := s.Gaps(); g.Count != 100 || g.Max < 99*time.Second {
		t.Errorf("merged gaps %+v", g)
	}
}

func TestPacingAllocatesNothing(t *testing.T) {
	p := NewPacer(NewClock(rate(t, "1Gpps"), 64, 0))
	stop := func() bool { return false }
	if n := testing.AllocsPerRun(1000, func() { p.Sent(p.Wait(64, stop), 64) }); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("1.5Mpps")
	f.Add("10GbpsL1")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q became %v", s, r)
		}
		NewClock(r, 64, 0).Permits(1)
	})
}

// A slow rate is held by a caller that is always late: the lateness of one frame is made up for
// by the next.
func TestSlowRatesAreHeld(t *testing.T) {
	const late = int64(50 * time.Millisecond)
	for _, text := range []string{"1pps", "3pps", "700bps"} {
		r, err := ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		c := NewClock(r, 64, 200*time.Millisecond)
		frames, end := 0, int64(100*time.Second)
		for now := int64(0); now < end; now = c.Next() + late {
			n := c.Permits(now)
			c.Sent(n, n*64)
			frames += n
		}
		want := r.FramesPerSecond(64) * 100
		if off := float64(frames) - want; off < -1 || off > 1 || c.Missed() > 0 {
			t.Errorf("%s: %d frames in 100 s, want %.0f; %v are missed", text, frames, want, c.Missed())
		}
	}
}
