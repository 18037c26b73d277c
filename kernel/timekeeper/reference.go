package timekeeper

// Reference is a counter of known frequency. It wraps around to 0 after Bits bits.
type Reference struct {
	Bits     uint   // number of bits of the counter, from 1 to 64
	Num, Den uint64 // nanoseconds for each tick, as the fraction Num/Den

	last uint64
}

// Sample is a reading of a reference between two readings of the counter.
type Sample struct {
	Counter uint64 // midpoint of the two readings
	Doubt   uint64 // half of the distance between the two readings, in ticks of the counter
	Value   uint64 // reading of the reference
}

// Between returns the sample of a value that was read between two readings of the counter.
func Between(before, value, after uint64) Sample {
	if after < before {
		after = before // the two readings of the counter are from different CPUs, so their order means nothing
	}
	return Sample{before + (after-before)/2, (after - before + 1) / 2, value}
}

// mask returns the largest value of the reference counter.
func (r *Reference) mask() uint64 { return 1<<(r.Bits-1)<<1 - 1 }

// Nanos returns the duration of a number of ticks.
func (r *Reference) Nanos(ticks uint64) uint64 { return MulDiv(ticks, r.Num, r.Den) }

// since returns the ticks from one value to a later one. The counter must not have wrapped around more than once
// between them.
func (r *Reference) since(from, to uint64) uint64 { return (to - from) & r.mask() }

// Elapsed returns the nanoseconds between two values. The counter must not have wrapped around more than once
// between them.
func (r *Reference) Elapsed(from, to uint64) uint64 { return r.Nanos(r.since(from, to)) }

// advance returns the nanoseconds since the previous value. guess is the same duration by another clock; it
// resolves how often the counter has wrapped around. The result is false if the guess is too inaccurate for that.
func (r *Reference) advance(value, guess uint64) (nanos uint64, ok bool) {
	ticks := r.since(r.last, value)
	r.last = value
	if r.Bits == 64 {
		return r.Nanos(ticks), true
	}
	round := r.Nanos(r.mask()) // time after which the reference wraps around, in nanoseconds
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

// worstDrift is the accuracy of a guess: the other clock is wrong by less than one nanosecond in worstDrift.
const worstDrift = 1000

// Longest returns the maximum time between two samples, in nanoseconds.
func (r *Reference) Longest() uint64 {
	if r.Bits == 64 {
		return 1<<64 - 1
	}
	return MulDiv(r.Nanos(r.mask())/4, worstDrift, 2)
}

// slowest is a lower bound of the counter's rate, in ticks for each ten nanoseconds.
const slowest = 1

// SeenWhole reports whether Elapsed has certainly noticed every wraparound of the reference while the time stamp counter advanced by
// ticks. pause is the largest advance between two readings of the reference; a wraparound can be missed only during such a pause.
func (r *Reference) SeenWhole(ticks, pause uint64) bool {
	return pause <= ticks/2 || r.Bits == 64 || ticks < r.Nanos(r.mask())/10*slowest
}
