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
		"max": {}, "1pps": {1, Frames}, "250kpps": {250_000, Frames}, "250Kpps": {250_000, Frames}, "1.5Mpps": {1_500_000, Frames}, "14.88Mpps": {14_880_000, Frames}, "0.001kpps": {1, Frames}, "1.234567Gbps": {1_234_567_000, L2Bits},
		"2Gbps": {2_000_000_000, L2Bits}, "50%": {500_000, Line}, "0.0001%": {1, Line}, "100%": {1_000_000, Line}, "10GbpsL1": {10_000_000_000, L1Bits}, "1Tbps": {1_000_000_000_000, L2Bits},
	} {
		got := rate(t, s)
		if got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
		if again := rate(t, got.String()); again != got {
			t.Errorf("%s: printed as %s", s, got)
		}
	}
	for _, s := range []string{"", "1", "pps", "0pps", "-1pps", "1e9pps", "infpps", "2Gpps", "2Tbps", "1mpps", "0.1pps", "0.5pps", "1.5pps", "0%", "101%", "%", "0.00001%", "0.0015kpps", "1 Mpps", "5bpsL2", "max pps"} {
		if r, err := ParseRate(s); err == nil {
			t.Errorf("%q was read as %v", s, r)
		}
	}
}

// 10 Gb/s on the wire is 14.88 million frames of the smallest size per second (RFC 2544 annex).
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

// For any rate and any delay of the sender, the number of frames in every second is accurate to 0.1 %, or to one
// frame.
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
				now = max(c.Next(), now) + random.Int64N(2000) // up to 2 µs late
			}
			if diff := math.Abs(float64(sent) - want); diff > max(want/1000, 1) {
				t.Errorf("%s: %d frames in second %d, want %.0f", s, sent, second, want)
			}
		}
	}
}

// With frames of several sizes, a rate in bits limits bits, not frames.
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

// After a stall, at most the bound is made up for, and the rest is reported as missed.
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

// After a short stall, such as that by a timer interrupt, the clock catches up without a burst. After a longer one it
// permits all due frames at once.
func TestShortStallIsEased(t *testing.T) {
	const slot, stall, second = 10_000, 45_000, int64(time.Second)
	c := NewClock(rate(t, "100kpps"), 64, 0)
	sent, last, stalled := 0, int64(-slot), int64(0)
	for now := int64(0); now < second; now = c.Next() {
		if now-stalled > int64(4*time.Millisecond) {
			now += stall
			stalled = now
		}
		n := c.Permits(now)
		if n != 1 {
			t.Fatalf("%d permits at %v", n, time.Duration(now))
		}
		if gap := now - last; gap < slot*95/100 {
			t.Fatalf("a gap of %d ns at %v", gap, time.Duration(now))
		}
		c.Sent(1, 64)
		last = now
		sent++
	}
	if sent < 99_990 {
		t.Errorf("%d frames in a second", sent)
	}
	if n, late := c.Permits(second+50*slot), c.Due(second+50*slot); n < 40 || n != late {
		t.Errorf("%d permits after a long stall, %d are due", n, late)
	}
	if next := c.Next(); next != second+50*slot {
		t.Errorf("the next frame is due at %d", next)
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

// A Waiter sleeps while the time is far off, returns when it is near, and is never late by itself. The clock of
// this test advances when it is read, and sleeps end late.
func TestWaiter(t *testing.T) {
	now, slept, yielded := int64(0), 0, 0
	w := &Waiter{
		now:   func() int64 { now += 50; return now },
		sleep: func(until int64) { now = until + 90_000; slept++ },
		yield: func() { now += 20_000; yielded++ },
	}
	for _, gap := range []time.Duration{10 * time.Millisecond, 200 * time.Microsecond, 10 * time.Microsecond} {
		slept, yielded = 0, 0
		c := NewClock(Rate{PerSecond: uint64(time.Second / gap)}, 64, 0)
		first := now
		for i := range int64(1000) {
			for c.Permits(now) == 0 {
				w.Approach(c.Next())
			}
			if due := first + i*int64(gap); now < due || now > due+200 {
				t.Fatalf("%v: frame %d went %d ns after its time", gap, i, now-due)
			}
			c.Sent(1, 64)
		}
		switch {
		case gap > watch && slept < 990, gap < watch && slept > 0:
			t.Errorf("%v: it slept %d times", gap, slept)
		case gap < watch && gap > room && (yielded < 40 || yielded > 60), gap < room && yielded > 0:
			t.Errorf("%v: it yielded %d times", gap, yielded)
		}
	}
	if w.sleep = func(until int64) { now = until }; true {
		before := now
		w.Approach(before + int64(time.Hour))
		if now-before > int64(nap)+200 {
			t.Errorf("it slept for %v: a stop is not noticed meanwhile", time.Duration(now-before))
		}
	}
}

// A sleep shorter than a millisecond is not rounded up to one, even if no other goroutine runs.
func TestSleepsAreNotRoundedUp(t *testing.T) {
	defer Punctual()()
	shortest := int64(math.MaxInt64)
	for range 200 {
		begin := Now()
		sleepUntil(begin + int64(200*time.Microsecond))
		shortest = min(shortest, Now()-begin)
	}
	if shortest < int64(200*time.Microsecond) || shortest > int64(700*time.Microsecond) {
		t.Errorf("the shortest of 200 sleeps of 200 µs lasted %v", time.Duration(shortest))
	}
}

// Frames of one batch have no gap between them, and the gaps are recorded as 0.
func TestSpreadOfBatches(t *testing.T) {
	s, o := NewSpread(), NewSpread()
	for i := range int64(10) {
		s.Sent(i*1000, 10)
	}
	o.Sent(0, 1)
	o.Sent(int64(time.Hour), 1) // the gap to the previous frame is longer than longestGap
	if g := s.Gaps(); g.Count != 99 || g.P50 != 0 || g.Max < 990 || g.Max > 1010 {
		t.Errorf("gaps %+v", g)
	}
	s.Merge(o)
	if g := s.Gaps(); g.Count != 100 || g.Max < 99*time.Second {
		t.Errorf("merged gaps %+v", g)
	}
}

func TestPacingAllocatesNothing(t *testing.T) {
	c, w, s := NewClock(rate(t, "1Gpps"), 64, 0), NewWaiter(), NewSpread()
	if n := testing.AllocsPerRun(1000, func() {
		w.Approach(c.Next())
		n := min(c.Permits(Now()), 64)
		c.Sent(n, 64*n)
		s.Sent(Now(), n)
	}); n != 0 {
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
		NewClock(r.Of(1e9), 64, 0).Permits(1)
	})
}

// A slow rate is accurate even if the caller is always late: the next frame makes up for the lateness of the last.
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

// A share of the line becomes bits on the wire.
func TestShareOfTheLine(t *testing.T) {
	if got := rate(t, "50%").Of(10_000_000_000); got != (Rate{5_000_000_000, L1Bits}) {
		t.Errorf("%+v", got)
	}
	if got := rate(t, "1kpps").Of(10_000_000_000); got != (Rate{1000, Frames}) {
		t.Errorf("%+v", got)
	}
}

// times returns the times at which a caller that is never late sends the frames.
func times(t *testing.T, spacing string, frames, batch int) (all []int64) {
	s, err := ParseSpacing(spacing)
	if err != nil {
		t.Fatal(err)
	}
	c := NewClock(rate(t, "10kpps"), 64, 200*time.Millisecond)
	c.Space(s, 7)
	for now := int64(0); len(all) < frames; now = max(now, c.Next()) {
		n := min(c.Permits(now), batch)
		for range n {
			all = append(all, now)
		}
		if n > 0 {
			c.Sent(n, 64*n)
		}
	}
	return all[:frames]
}

// A burst is sent at once, and the next one follows after the time that its frames take at the rate.
func TestBursts(t *testing.T) {
	for _, batch := range []int{1, 7, 64, 1000} {
		for i, at := range times(t, "burst:100", 1000, batch) {
			if want := int64(i/100) * int64(10*time.Millisecond); at != want {
				t.Fatalf("in batches of %d, frame %d goes at %d, want %d", batch, i, at, want)
			}
		}
	}
}

// The gaps of a Poisson process have the mean that the rate requires and a standard deviation equal to the mean. A
// fraction 1/e of them is longer than the mean.
func TestPoisson(t *testing.T) {
	const frames, gap = 200_000, 100_000.0
	all := times(t, "poisson", frames, 64)
	var sum, squares float64
	longer := 0
	for i := 1; i < frames; i++ {
		d := float64(all[i] - all[i-1])
		sum, squares = sum+d, squares+d*d
		if d > gap {
			longer++
		}
	}
	mean := sum / (frames - 1)
	deviation := math.Sqrt(squares/(frames-1) - mean*mean)
	if math.Abs(mean/gap-1) > 0.01 || math.Abs(deviation/gap-1) > 0.02 || math.Abs(float64(longer)/frames*math.E-1) > 0.02 {
		t.Errorf("mean %v, deviation %v, longer %d of %d", mean, deviation, longer, frames)
	}
}

func TestSpacings(t *testing.T) {
	for _, s := range []string{"", "burst", "burst:0", "burst:x", "burst:1000001", "uneven", "7"} {
		if _, err := ParseSpacing(s); err == nil {
			t.Errorf("%q is a spacing", s)
		}
	}
}

// A change of the rate neither adds nor skips a frame: the time slot of the next frame continues at the new rate.
func TestChangeKeepsTheSlot(t *testing.T) {
	c := NewClock(Rate{PerSecond: 10}, 64, 0)
	if n := c.Permits(0); n != 1 {
		t.Fatalf("%d at the start", n)
	}
	c.Sent(1, 64)
	c.Change(Rate{PerSecond: 1000}, int64(50*time.Millisecond)) // half of the time slot of the next frame (100 ms) has passed
	if got := c.Next(); got != int64(50*time.Millisecond+500*time.Microsecond) {
		t.Errorf("the next frame is due at %v", time.Duration(got))
	}
	c.Permits(c.Next())
	c.Sent(1, 64)
	now := c.Next() - int64(500*time.Microsecond)
	c.Change(Rate{PerSecond: 84 * 8, Unit: L1Bits}, now) // 84 bytes on the wire per second: one frame of the smallest size
	if got := time.Duration(c.Next() - now); got != 500*time.Millisecond {
		t.Errorf("the next frame is due after %v", got)
	}
	if c.Missed() != 0 {
		t.Errorf("missed %v", c.Missed())
	}
}
