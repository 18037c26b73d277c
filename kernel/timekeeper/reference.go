package timekeeper

// Reference is a counter whose speed is known, and that begins again at 0 after so
// many bits.
type Reference struct {
	Bits     uint   // 1 to 64
	Num, Den uint64 // nanoseconds for each tick, as a fraction

	last uint64
}

// Sample is a reading of a reference between two of the counter.
type Sample struct {
	Counter uint64 // in the middle
	Doubt   uint64 // how far the reading may have been from there, in ticks of the counter
	Value   uint64 // of the reference
}

// Between is a sample of a value that was read after one reading of the counter and
// before another.
func Between(before, value, after uint64) Sample {
	if after < before {
		after = before // readings of two CPUs
	}
	return Sample{before + (after-before)/2, (after - before + 1) / 2, value}
}

// mask is the greatest value.
func (r *Reference) mask() uint64 { return 1<<(r.Bits-1)<<1 - 1 }

// Nanos is how long it takes for so many ticks.
func (r *Reference) Nanos(ticks uint64) uint64 { return MulDiv(ticks, r.Num, r.Den) }

// since is the ticks from one value to a later one, if the counter has not begun
// again more than once between.
func (r *Reference) since(from, to uint64) uint64 { return (to - from) & r.mask() }

// Elapsed is the nanoseconds between two values, if it has not begun again more than
// once between.
func (r *Reference) Elapsed(from, to uint64) uint64 { return r.Nanos(r.since(from, to)) }

// advance takes a value and returns how many nanoseconds have passed since the one
// before, if by another clock about guess have. It is false if the guess is not good
// enough to say how often the counter has begun again.
func (r *Reference) advance(value, guess uint64) (nanos uint64, ok bool) {
	ticks := r.since(r.last, value)
	r.last = value
	if r.Bits == 64 {
		return r.Nanos(ticks), true
	}
	round := r.Nanos(r.mask()) // in nanoseconds
	nanos = r.Nanos(ticks)
	if guess/worstDrift > round/4 {
		return guess, false
	}
	if guess > nanos {
		rounds := (guess - nanos + round/2) / round
		nanos = r.Nanos(ticks + rounds*(r.mask()+1))
	}
	return nanos, true
}

// worstDrift is how good a guess is: by the clock, which is wrong by less than one
// nanosecond in so many.
const worstDrift = 1000

// Longest is how much time may pass between two samples, in nanoseconds.
func (r *Reference) Longest() uint64 {
	if r.Bits == 64 {
		return 1<<64 - 1
	}
	return MulDiv(r.Nanos(r.mask())/4, worstDrift, 2)
}

// slowest is the least speed of a processor's counter, as ticks in ten nanoseconds.
const slowest = 1

// SeenWhole reports whether Elapsed is all the time that has passed while the counter
// went on by so many ticks. pause is the most of them between two looks at the
// reference, which may have begun again then, if that was long enough.
func (r *Reference) SeenWhole(ticks, pause uint64) bool {
	return pause <= ticks/2 || r.Bits == 64 || ticks < r.Nanos(r.mask())/10*slowest
}
