package pace

import (
	"math"
	"math/bits"
	"time"
)

// Clock turns time into permits: an account that grows with the time and pays
// for each frame. It is counted in units times nanoseconds, as whole numbers, so
// that nothing is lost to rounding however often it is asked, and the rate over a
// second is exact.
//
// After a stall (the machine was elsewhere) it catches up, but with no more than
// Bound of the rate and the frame that was due: what was missed beyond that stays
// missed, and is counted.
//
// A user that was given permits may send frames larger than expected: the account
// then goes below zero, and the next frame waits for it.
type Clock struct {
	rate   int64 // units a second, 0: no limit
	of     Rate
	one    int64 // the price of a frame of mean size
	limit  int64 // the account is never above
	credit int64
	last   int64
	missed time.Duration
	begun  bool
}

// DefaultBound is how much of a stall is made up for.
const DefaultBound = 20 * time.Millisecond

// Unlimited is how many permits a clock without a rate gives at once.
const Unlimited = math.MaxInt32

const perUnit = int64(time.Second) // the account counts units times nanoseconds

// NewClock makes a clock for frames of the given mean size in bytes, FCS
// included. bound 0 is DefaultBound.
func NewClock(r Rate, meanSize float64, bound time.Duration) *Clock {
	if bound == 0 {
		bound = DefaultBound
	}
	c := &Clock{rate: int64(r.PerSecond), of: r}
	c.one = max(1, r.cost(1, int(math.Ceil(meanSize)))) * perUnit
	// At 1 Tb/s, 9 ms are what a 64-bit account holds.
	c.limit = math.MaxInt64 / 2
	if hi, lo := bits.Mul64(uint64(c.rate), uint64(bound)); hi == 0 && lo < uint64(c.limit) {
		c.limit = int64(lo)
	}
	c.limit += c.one // that is due, however late it is asked for
	return c
}

// Permits is how many frames of mean size may go at now. The first is for now.
// now is in nanoseconds from any origin, and never runs back.
func (c *Clock) Permits(now int64) int {
	if c.rate == 0 {
		return Unlimited
	}
	c.advance(now)
	return int(max(0, min(c.credit/c.one, Unlimited)))
}

func (c *Clock) advance(now int64) {
	if !c.begun {
		c.begun, c.last, c.credit = true, now, c.one
		return
	}
	passed := now - c.last
	if passed <= 0 {
		return
	}
	c.last = now
	room := c.limit - c.credit
	if hi, lo := bits.Mul64(uint64(passed), uint64(c.rate)); hi == 0 && lo <= uint64(room) {
		c.credit += int64(lo)
		return
	}
	c.missed += time.Duration(passed - room/c.rate)
	c.credit = c.limit
}

// Sent pays for frames with so many bytes together, FCS included.
func (c *Clock) Sent(frames, bytes int) {
	if c.rate != 0 {
		c.credit -= c.of.cost(frames, bytes) * perUnit
	}
}

// Next is the earliest time at which Permits will give one.
func (c *Clock) Next() int64 {
	if c.rate == 0 || !c.begun || c.credit >= c.one {
		return c.last
	}
	return c.last + (c.one-c.credit+c.rate-1)/c.rate
}

// Missed is the time for which no frames will be sent any more, because stalls
// were longer than the bound.
func (c *Clock) Missed() time.Duration { return c.missed }
