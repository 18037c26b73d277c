package ninep

import (
	"sync/atomic"
	"time"
)

// clock returns the time with the precision of its period, for less than the time takes: a path of five names asks ten
// times. While it is in use a timer updates it.
type clock struct {
	base    time.Time
	period  time.Duration // 0: exact
	coarse  atomic.Int64  // nanoseconds after base
	used    atomic.Bool   // since the last update
	ticking atomic.Bool   // the timer is armed
}

// Bounds of the period of a clock.
const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = 100 * time.Millisecond
)

// set sets the period for entries that count for valid. It returns for how long they may count by this clock.
func (c *clock) set(valid time.Duration) time.Duration {
	c.base = time.Now()
	if c.period = min(valid/8, maxPeriod); c.period < minPeriod {
		c.period = 0
	}
	return valid - c.period
}

// now returns the time, at most a period late.
func (c *clock) now() time.Time {
	if c.period == 0 {
		return time.Now()
	}
	if !c.used.Load() {
		c.used.Store(true)
	}
	if !c.ticking.Load() {
		c.coarse.Store(int64(time.Since(c.base)))
		if c.ticking.CompareAndSwap(false, true) {
			time.AfterFunc(c.period, c.tick)
		}
	}
	return c.base.Add(time.Duration(c.coarse.Load()))
}

// tick updates the clock, and stops the timer if the clock is not in use.
func (c *clock) tick() {
	if !c.used.Swap(false) {
		c.ticking.Store(false)
		return
	}
	c.coarse.Store(int64(time.Since(c.base)))
	time.AfterFunc(c.period, c.tick)
}
