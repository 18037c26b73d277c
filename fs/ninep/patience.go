package ninep

import "time"

// Patience decides how a reader waits for input. Input mostly arrives sooner than the kernel wakes a thread, so a reader
// first spins, then polls and lets other threads use the CPU between two attempts, and then blocks its thread. Each step
// is bounded in time. A step that fails is left out for a number of reads, which doubles while it fails: spinning is of no
// use if both processes run on one CPU, and polling takes the CPU from other programs if the CPUs are busy.
type Patience struct{ spins, polls backoff }

const (
	spinTime = 15 * time.Microsecond // time for which a reader spins
	lookTime = 50 * time.Microsecond // time for which a reader spins and polls
	busyTime = 20 * time.Microsecond // time of a yield of the CPU after which the CPUs are considered busy
	// attempts is the number of attempts between two looks at the clock while a reader spins.
	attempts = 16
)

// backoff counts the reads for which a step is left out.
type backoff struct {
	skip    int
	penalty int // value of skip after the last failure
}

// Bounds of backoff.penalty, a number of reads.
const (
	leastPenalty = 4
	mostPenalty  = 256
)

// due reports whether to take the step.
func (b *backoff) due() bool {
	if b.skip > 0 {
		b.skip--
		return false
	}
	return true
}

func (b *backoff) failed() {
	b.penalty = min(max(2*b.penalty, leastPenalty), mostPenalty)
	b.skip = b.penalty
}

func (b *backoff) succeeded() { b.penalty /= 2 }

// Wait calls try until that returns true. It returns false if the reader must block. yield lets another thread use the
// CPU.
func (p *Patience) Wait(try func() bool, yield func()) bool {
	if try() {
		return true
	}
	start := time.Now()
	if p.spins.due() {
		if spin(try, start) {
			p.spins.succeeded()
			return true
		}
		p.spins.failed()
	}
	return p.polls.due() && p.poll(try, yield, start)
}

func spin(try func() bool, start time.Time) bool {
	for time.Since(start) < spinTime {
		for range attempts {
			if try() {
				return true
			}
		}
	}
	return false
}

func (p *Patience) poll(try func() bool, yield func(), start time.Time) bool {
	for before := time.Now(); ; {
		yield()
		now := time.Now()
		switch {
		case try():
			p.polls.succeeded()
			return true
		case now.Sub(before) > busyTime:
			p.polls.failed()
			return false
		case now.Sub(start) > lookTime:
			return false
		}
		before = now
	}
}
