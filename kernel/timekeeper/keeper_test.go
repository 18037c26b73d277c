package timekeeper

import (
	"math/rand/v2"
	"testing"
)

// machine is a model of a machine whose counter runs at some rate. Its virtual CPU is often descheduled while it
// reads clocks.
type machine struct {
	now   float64 // nanoseconds
	speed float64 // ticks of the counter for each nanosecond
	r     *Reference
	busy  float64 // maximum duration of a reading, in nanoseconds
	rand  *rand.Rand
}

// counter returns a value far from 0, as after days of uptime.
func (m *machine) counter() uint64 { return 1<<50 + uint64(m.now*m.speed) }

// pass advances the time by a random duration in nanoseconds, at most the parameter most.
func (m *machine) pass(most float64) { m.now += m.rand.Float64() * most }

// sample returns the most accurate of five readings.
func (m *machine) sample() Sample {
	best := Sample{Doubt: 1 << 62}
	for range 5 {
		before := m.counter()
		m.pass(m.busy * m.rand.Float64())
		value := uint64(m.now*float64(m.r.Den)/float64(m.r.Num)) & m.r.mask()
		m.pass(m.busy * m.rand.Float64())
		if s := Between(before, value, m.counter()); s.Doubt < best.Doubt {
			best = s
		}
	}
	return best
}

var references = map[string]Reference{
	"interval timer":   {Bits: 16, Num: second, Den: 1193182},
	"ACPI timer":       {Bits: 24, Num: second, Den: 3579545},
	"HPET":             {Bits: 64, Num: 10_000_000, Den: 1_000_000},
	"HPET of 32 bits":  {Bits: 32, Num: 10_000_000, Den: 1_000_000},
	"hypervisor clock": {Bits: 64, Num: 1, Den: 1},
}

// A clock that starts with an inaccurate rate becomes correct, stays correct for hours, and never goes back.
func TestKeeper(t *testing.T) {
	for name, r := range references {
		for _, busy := range []float64{2_000, 2_000_000} {
			for _, wrong := range []float64{-0.0009, 0, 0.0009} {
				m := &machine{speed: 2.9, r: &r, busy: busy, rand: rand.New(rand.NewPCG(1, 2))}
				follow(t, name, m, wrong)
			}
		}
	}
}

func follow(t *testing.T, name string, m *machine, wrong float64) {
	m.pass(1e9)
	k := Keeper{Reference: *m.r}
	begin := m.sample()
	started := float64(begin.Counter-1<<50) / m.speed
	k.Begin(begin, uint64((1+wrong)/m.speed*(1<<32)), second/1000)
	const settled, hours = 200e9, 3 * 3600e9
	last, worst := uint64(0), 0.0
	for m.now < hours {
		for now := k.At(m.counter()); now < k.Due(); now = k.At(m.counter()) {
			if now < last {
				t.Fatalf("%s: the time goes back from %d to %d", name, last, now)
			}
			last = now
			m.now += 1 + float64(k.Due()-now)/2
		}
		m.pass(1e6) // an interrupt of a real machine calls Correct a little later than it is due
		k.Correct(m.sample())
		m.pass(1e6)
		before := k.At(m.counter())
		k.Hold()
		k.GoOn(m.counter())
		if after := k.At(m.counter()); after != before {
			t.Fatalf("%s: the time jumps from %d to %d", name, before, after)
		}
		if m.now > settled {
			off := float64(before) - (m.now - started)
			worst = max(worst, off, -off)
		}
	}
	if bound := 20_000 + 2*m.busy; worst > bound {
		t.Errorf("%s, readings of %v ns, speed wrong by %v: off by %.0f ns, more than %.0f", name, m.busy, wrong, worst, bound)
	}
	if k.sequence%2 != 0 {
		t.Errorf("%s: readers wait for ever", name)
	}
}

// After a sleep longer than the reference can measure, the clock continues by the counter alone.
func TestKeeperLost(t *testing.T) {
	r := references["interval timer"]
	m := &machine{speed: 1, r: &r, busy: 100, rand: rand.New(rand.NewPCG(1, 2))}
	k := Keeper{Reference: r}
	k.Begin(m.sample(), 1<<32, second/1000)
	m.now += 3600e9
	k.Correct(m.sample())
	k.Hold()
	k.GoOn(m.counter())
	if off := int64(k.At(m.counter())) - int64(m.now); abs(off) > 10_000 {
		t.Errorf("off by %d ns", off)
	}
	m.now += 1e9
	k.Correct(m.sample())
	if k.Due() < k.At(m.counter()) {
		t.Error("the next sample was due in the past")
	}
}

// advance returns the time that has passed since the last value, even if the counter has wrapped around several times.
// It only needs an approximate time.
func TestAdvance(t *testing.T) {
	for name, r := range references {
		for _, passed := range []uint64{0, 1, 1000, 54_000_000, 55_000_000, second, 5 * second, 13 * second} {
			for _, guess := range []uint64{passed, passed - passed/1200, passed + passed/1200} {
				r.last = 12345 & r.mask()
				ticks := MulDiv(passed, r.Den, r.Num)
				got, ok := r.advance((r.last+ticks)&r.mask(), guess)
				if !ok || got > passed || passed-got > 1000 {
					t.Errorf("%s, guess %d: %d, %v, want %d", name, guess, got, ok, passed)
				}
			}
		}
		if limit := r.Longest(); r.Bits < 64 && (limit < second || limit > 100_000*second) {
			t.Errorf("%s: samples are wanted every %d ns", name, limit)
		}
	}
}

// MulDiv is exact for operands near the ends of their range, and saturates on overflow.
func TestMulDiv(t *testing.T) {
	for _, c := range []struct{ v, num, den, want uint64 }{
		{0, 1, 1, 0}, {7, 3, 2, 10}, {1 << 63, 2, 1, 1<<64 - 1}, {1 << 63, 2, 4, 1 << 62}, {1<<64 - 1, 1<<64 - 1, 1<<64 - 1, 1<<64 - 1}, {1, 1, 0, 1<<64 - 1},
	} {
		if got := MulDiv(c.v, c.num, c.den); got != c.want {
			t.Errorf("%d*%d/%d: %d, want %d", c.v, c.num, c.den, got, c.want)
		}
	}
}
