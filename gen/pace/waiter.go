package pace

import (
	"runtime"
	"time"
)

// Waiter waits until shortly before a given time. It sleeps while that time is far off. When the time is near, it
// returns immediately, and the caller reads the clock in a loop. A Waiter is used by one goroutine, which may be locked
// to its thread. Create it with NewWaiter.
//
// The runtime preempts a goroutine that has run for 10 ms. If the goroutine is locked to its thread, a preemption costs
// two wake-ups of threads. So a Waiter yields earlier, at moments when the caller has time.
type Waiter struct {
	rested int64 // time at which the goroutine last slept or yielded
	now    func() int64
	sleep  func(until int64)
	yield  func()
}

const (
	// watch is the time before the target time at which a Waiter stops sleeping. If the processor was idle, a thread
	// wakes up to about 100 µs late.
	watch = 250 * time.Microsecond
	// nap is the maximum length of a sleep, so that the caller can check for a stop request.
	nap = 50 * time.Millisecond
	// turn is the interval at which a Waiter yields the processor. It yields only if the target time is at least room away.
	turn = 4 * time.Millisecond
	room = 60 * time.Microsecond
)

var origin = time.Now()

// Now returns the monotonic time in nanoseconds since this package was initialized.
func Now() int64 { return int64(time.Since(origin)) }

// NewWaiter returns a Waiter on the clock of Now.
func NewWaiter() *Waiter {
	return &Waiter{rested: Now(), now: Now, sleep: sleepUntil, yield: runtime.Gosched}
}

// Approach waits until shortly before t, a time as returned by Now. It returns before t, and at the latest after 50 ms.
// A caller with several clocks passes the earliest time, and checks all clocks afterwards.
func (w *Waiter) Approach(t int64) {
	now := w.now()
	switch far := time.Duration(t - now); {
	case far > watch:
		w.sleep(min(t-int64(watch), now+int64(nap)))
	case far > room && now-w.rested > int64(turn):
		w.yield()
	default:
		return
	}
	w.rested = w.now()
}
