package account

import (
	"time"

	"loam/abi/linux"
)

// Timer is one of the timers of CPU time of a process: ITIMER_VIRTUAL and ITIMER_PROF.
type Timer struct {
	at, interval time.Duration // at: CPU time of the next expiration; 0: the timer is stopped
}

// Set starts the timer at the CPU time now, and returns the remaining time and the interval of the former
// setting.
func (c *Timer) Set(now, first, interval time.Duration) (left, old time.Duration) {
	left, old = c.Left(now)
	c.at, c.interval = 0, interval
	if first > 0 {
		c.at = now + first
	}
	return left, old
}

// Left returns the CPU time until the next expiration, at least a microsecond, and the interval.
func (c *Timer) Left(now time.Duration) (left, interval time.Duration) {
	if c.at == 0 {
		return 0, c.interval
	}
	return max(c.at-now, time.Microsecond), c.interval
}

// Armed reports whether the timer runs.
func (c *Timer) Armed() bool { return c.at != 0 }

// Due reports whether the timer has expired at the CPU time now. A periodic timer is restarted.
func (c *Timer) Due(now time.Duration) bool {
	if c.at == 0 || now < c.at {
		return false
	}
	c.at = 0
	if c.interval > 0 {
		c.at = now + c.interval
	}
	return true
}

// CannotSleep reports whether clock_nanosleep(2) does not support a clock, although programs can read it.
func CannotSleep(clock int) bool {
	switch clock {
	case linux.CLOCK_THREAD_CPUTIME_ID, linux.CLOCK_MONOTONIC_RAW, linux.CLOCK_REALTIME_COARSE, linux.CLOCK_MONOTONIC_COARSE:
		return true
	}
	return false
}

// Slept converts the result of a wait that waits for nothing but its timeout: ETIMEDOUT means success.
func Slept(errno linux.Errno) linux.Errno {
	if errno == linux.ETIMEDOUT {
		return 0
	}
	return errno
}

// Rounded rounds the time of a clock down to the clock's resolution.
func Rounded(now int64, clock int) int64 { return now - now%linux.ClockResolution(clock) }
