package pace

import (
	"runtime"
	"time"
)

// Waiter waits until shortly before a given time. It sleeps while the time is far off, and returns at once when it
// is near, so that the caller busy-waits on the clock. A Waiter is used by one goroutine, which may be locked to
// its thread. Create it with NewWaiter.
//
// The runtime preempts a goroutine that has run for 10 ms. If it is locked to its thread, a preemption costs two
// thread wake-ups. A Waiter avoids this by yielding earlier, when there is time.
type Waiter struct {
	rested int64 // when the goroutine last slept or yielded
	now    func() int64
	sleep  func(until int64)
	yield  func()
}

const (
	// watch is how long before the target time a Waiter stops sleeping. A thread wakes up to about 100 µs late if
	// the processor was idle.
	watch = 250 * time.Microsecond
	// nap is the longest sleep, so that the caller notices a stop request.
	nap = 50 * time.Millisecond
	// A Waiter yields once every turn, if the target time is further away than room.
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

// Approach waits until shortly before t, a time of Now. It returns before t, and after at most 50 ms. A caller with
// several clocks passes the earliest time and then checks all clocks again.
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
