package ninep

import (
	"sync/atomic"
	"time"
)

// instant is a time on the clock of a FileSystem, in nanoseconds. 0 is before all others. It is smaller than a
// time.Time: each cached name has several instants.
type instant int64

// Before reports whether i is earlier than j.
func (i instant) Before(j instant) bool { return i < j }

// clock returns the time with the precision of its period. It is cheaper than reading the exact
// time, which matters because resolving a path of five names reads the time ten times. A timer
// updates the clock while it is in use.
type clock struct {
	base    time.Time
	period  time.Duration // precision of now: the time returned is at most this old; 0: exact
	coarse  atomic.Int64  // the last time
	used    atomic.Bool   // the clock was read since the last update
	ticking atomic.Bool   // the timer is armed
}

// Bounds of a clock's period.
const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = 100 * time.Millisecond
)

// set sets the period for cache entries that are valid for the given time. It returns the time for which they may be
// valid by this clock, which is shorter by the clock's imprecision.
func (c *clock) set(valid time.Duration) time.Duration {
	c.base = time.Now()
	if c.period = min(valid/8, maxPeriod); c.period < minPeriod {
		c.period = 0
	}
	return valid - c.period
}

// exact returns the time without imprecision.
func (c *clock) exact() instant { return instant(time.Since(c.base)) + 1 }

// now returns the time, at most a period late.
func (c *clock) now() instant {
	if c.period == 0 {
		return c.exact()
	}
	if !c.used.Load() {
		c.used.Store(true)
	}
	if !c.ticking.Load() {
		c.coarse.Store(int64(c.exact()))
		if c.ticking.CompareAndSwap(false, true) {
			time.AfterFunc(c.period, c.tick)
		}
	}
	return instant(c.coarse.Load())
}

// tick updates the clock, and stops the timer if the clock is not in use.
func (c *clock) tick() {
	if !c.used.Swap(false) {
		c.ticking.Store(false)
		return
	}
	c.coarse.Store(int64(c.exact()))
	time.AfterFunc(c.period, c.tick)
}
