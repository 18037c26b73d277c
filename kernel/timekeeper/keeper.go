package timekeeper

// Keeper keeps a Clock in step with a Reference. The owner passes a sample to Correct at the times that Due
// returns. Each sample shows the clock's error. Together with a much older sample it also shows the true rate of
// the counter.
type Keeper struct {
	Clock
	Reference Reference

	speed   uint64 // best estimate of the counter's scale
	doubt   uint64 // possible error of speed, in nanoseconds per second
	next    uint64 // scale that GoOn sets: speed, adjusted to remove the error of the clock
	passed  uint64 // time since the clock was 0, in nanoseconds by the reference
	last    uint64 // reading of the counter at the time in the field passed
	old     anchor // sample from which speed is measured
	young   anchor // sample that replaces the sample old after the time window
	due     uint64 // time of the next sample, in nanoseconds by the clock
	between uint64 // interval between samples in nanoseconds
}

// anchor is a sample with its time by the reference.
type anchor struct{ counter, doubt, passed uint64 }

const (
	second   = 1_000_000_000
	shortest = second      // minimum interval between samples in nanoseconds
	longest  = 64 * second // maximum interval, unless the reference needs a shorter one
	slewTime = 4 * second  // time in which an error is removed, in nanoseconds
	mostSlew = second / 2000
	window   = 512 * second // time after which young replaces old, in nanoseconds
)

// Begin starts the clock: its time at the sample s is 0. scale is the estimated length of a tick of the counter, which may be wrong by up to
// doubt nanoseconds a second.
func (k *Keeper) Begin(s Sample, scale, doubt uint64) {
	k.start, k.base, k.scale = s.Counter, 0, scale
	k.speed, k.next, k.doubt = scale, scale, max(doubt, 1)
	k.passed, k.last = 0, s.Counter
	k.Reference.last = s.Value
	k.old = anchor{s.Counter, s.Doubt, 0}
	k.young = k.old
	k.between, k.due = shortest, shortest
}

// Due returns when Correct has to be called, in nanoseconds by the clock.
func (k *Keeper) Due() uint64 { return k.due }

// Correct evaluates a sample. The clock itself changes at GoOn.
func (k *Keeper) Correct(s Sample) {
	if s.Counter <= k.last {
		return
	}
	now := k.At(s.Counter)
	nanos, ok := k.Reference.advance(s.Value, mulScale(s.Counter-k.last, k.speed))
	k.last = s.Counter
	if !ok { // the reference may have wrapped around more than once: assume that the clock is right
		k.passed = now
		k.old = anchor{s.Counter, s.Doubt, now}
		k.young = k.old
		k.wait(now, 0)
		k.next = k.speed
		return
	}
	k.passed += nanos
	k.measure(s)
	off := int64(k.passed - now)
	if size := abs(off); size <= mulScale(s.Doubt, k.speed) {
		off = 0 // the error is smaller than the accuracy of the sample, so it is not corrected
	}
	k.wait(now, abs(off))
	k.next = slewed(k.speed, off)
}

// GoOn ends a Hold. From the reading counter on, the clock runs at the speed that Correct has computed.
func (k *Keeper) GoOn(counter uint64) {
	if int64(counter-k.start) > 0 {
		k.base, k.start = k.At(counter), counter
	}
	k.scale = k.next
	k.goOn()
}

// measure updates the estimated rate of the counter, if the sample is about as accurate as the estimate or better.
func (k *Keeper) measure(s Sample) {
	ticks, nanos := s.Counter-k.old.counter, k.passed-k.old.passed
	doubt := 1 + MulDiv(s.Doubt+k.old.doubt, second, ticks)
	if nanos == 0 || doubt > 2*k.doubt {
		return
	}
	k.speed, k.doubt = Scale(nanos, ticks), doubt
	if k.passed-k.young.passed > window {
		k.old, k.young = k.young, anchor{s.Counter, s.Doubt, k.passed}
	}
}

// wait sets due, the time of the next sample. The interval doubles while the clock is right, and is shorter
// while an error is being removed.
func (k *Keeper) wait(now, off uint64) {
	k.between = min(2*k.between, longest, k.Reference.Longest())
	if off != 0 {
		k.between = min(k.between, slewTime)
	}
	const much = second / 10_000
	if off > much {
		k.between = min(shortest, k.Reference.Longest())
	}
	k.due = now + k.between
}

// slewed returns the scale that removes an error of off nanoseconds within slewTime, as far as mostSlew allows.
func slewed(scale uint64, off int64) uint64 {
	part := min(MulDiv(abs(off), second, slewTime), mostSlew) // adjustment in nanoseconds per second
	change := MulDiv(scale, part, second)
	if off < 0 {
		return scale - change
	}
	return scale + change
}

func abs(v int64) uint64 {
	if v < 0 {
		return uint64(-v)
	}
	return uint64(v)
}
