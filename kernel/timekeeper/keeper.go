package timekeeper

// Keeper keeps a Clock in step with a Reference. The owner gives it samples when it
// asks for them (Due); each shows how far the clock is off, and, with one from long
// ago, how fast the counter really is.
type Keeper struct {
	Clock
	Reference Reference

	speed   uint64 // the best that is known of the counter's scale
	doubt   uint64 // of it, in nanoseconds a second
	next    uint64 // the scale from GoOn on: speed, and what undoes the error
	passed  uint64 // nanoseconds by the reference, from the clock's 0
	last    uint64 // the counter, when passed was
	old     anchor // from where speed is measured
	young   anchor // what becomes old
	due     uint64 // when the next sample is wanted, by the clock
	between uint64 // and how long after this one
}

// anchor is a sample of which one knows when it was.
type anchor struct{ counter, doubt, passed uint64 }

const (
	second   = 1_000_000_000
	shortest = second      // between samples
	longest  = 64 * second // if the reference does not want more
	slewTime = 4 * second  // in which an error is to be undone
	mostSlew = second / 2000
	window   = 512 * second // at which the place to measure from moves on
)

// Begin starts the clock at 0, from a sample; scale may be wrong by doubt
// nanoseconds in a second.
func (k *Keeper) Begin(s Sample, scale, doubt uint64) {
	k.start, k.base, k.scale = s.Counter, 0, scale
	k.speed, k.next, k.doubt = scale, scale, max(doubt, 1)
	k.passed, k.last = 0, s.Counter
	k.Reference.last = s.Value
	k.old = anchor{s.Counter, s.Doubt, 0}
	k.young = k.old
	k.between, k.due = shortest, shortest
}

// Due is when Correct wants to be called, by the clock.
func (k *Keeper) Due() uint64 { return k.due }

// Correct takes a sample. The clock changes at GoOn.
func (k *Keeper) Correct(s Sample) {
	if s.Counter <= k.last {
		return
	}
	now := k.At(s.Counter)
	nanos, ok := k.Reference.advance(s.Value, mulScale(s.Counter-k.last, k.speed))
	k.last = s.Counter
	if !ok { // nobody knows: what the clock says is true
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
		off = 0 // it may as well be right
	}
	k.wait(now, abs(off))
	k.next = slewed(k.speed, off)
}

// GoOn has the clock go on, after Hold, from a reading at the speed that Correct has
// found.
func (k *Keeper) GoOn(counter uint64) {
	if int64(counter-k.start) > 0 {
		k.base, k.start = k.At(counter), counter
	}
	k.scale = k.next
	k.goOn()
}

// measure finds the speed of the counter anew, if the sample shows it better than it
// is known.
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

// wait says when the next sample is wanted: when an error has been undone, and in
// quiet times ever later.
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

// slewed is the scale by which an error of so many nanoseconds goes in slewTime.
func slewed(scale uint64, off int64) uint64 {
	part := min(MulDiv(abs(off), second, slewTime), mostSlew) // nanoseconds in a second
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
