package pace

import "time"

// Pacer drives a Clock: it waits until frames may go, by sleeping while that is
// far off and by watching the time when it is near, since a sleeping thread is
// woken some 50 to 100 µs late. It is used by one goroutine.
type Pacer struct {
	*Clock
	Spread *Spread
	now    func() int64
	sleep  func(time.Duration)
}

const (
	// watch is how long before the time a Pacer stops sleeping.
	watch = 200 * time.Microsecond
	// nap is the longest sleep, so that a stop is noticed.
	nap = 50 * time.Millisecond
)

var origin = time.Now()

// Now is the monotonic time that pacers go by, in nanoseconds.
func Now() int64 { return int64(time.Since(origin)) }

// NewPacer paces by the time of this machine.
func NewPacer(c *Clock) *Pacer {
	return &Pacer{Clock: c, Spread: NewSpread(), now: Now, sleep: time.Sleep}
}

// Wait returns how many frames, at most most, may go now, and waits for the
// first. It returns 0 once stop reports true, which it asks at least every 50 ms.
func (p *Pacer) Wait(most int, stop func() bool) int {
	for {
		now := p.now()
		if n := p.Permits(now); n > 0 {
			return min(n, most)
		}
		if far := time.Duration(p.Next() - now); far > watch {
			if stop() {
				return 0
			}
			p.sleep(min(far-watch, nap))
		}
	}
}

// Approach brings its caller nearer to a time of Now, which it sleeps towards or,
// when it is close, watches for: who keeps several clocks asks for the earliest,
// and then looks again.
func Approach(t int64) {
	if far := time.Duration(t - Now()); far > watch {
		time.Sleep(min(far-watch, nap))
	}
}

// Sent pays for what went, and notes when.
func (p *Pacer) Sent(frames, bytes int) {
	p.Clock.Sent(frames, bytes)
	p.Spread.Sent(p.now(), frames)
}
