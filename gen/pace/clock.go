package pace

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Clock computes how many frames may be sent at a given time. It keeps a credit that grows with time and from which
// each sent frame is paid. The credit is an integer in units times nanoseconds. So rounding loses nothing, however
// often the clock is read, and the rate over a second is exact.
//
// If the process does not get the processor for some time (a stall), frames are late afterwards. The clock still
// permits the late frames of a limited time, the bound: the credit never exceeds the bound plus one frame. Time beyond the
// bound is lost and counted as missed.
//
// Late frames after a short stall are not sent in a burst. With even spacing, a frame that is up to mostEased time
// slots late follows the frame before it after at least easing of a slot. Otherwise, at 100,000 frames per second, a
// timer interrupt of 50 µs would be followed by five frames at once.
//
// A caller may send frames that are larger than the mean. The credit then becomes negative, and the next frame waits
// until the credit is positive again.
type Clock struct {
	rate   int64 // rate in units per second; 0: unlimited
	of     Rate
	one    int64 // credit that a frame of mean size costs
	limit  int64 // upper limit of credit
	mean   float64
	bound  time.Duration
	credit int64
	last   int64
	missed time.Duration
	begun  bool

	ease     int64 // shortest time between two frames, in nanoseconds; 0: any
	eased    int64 // largest credit for which ease applies
	earliest int64 // time before which no frame may be sent, while ease applies

	spacing Spacing
	left    int        // frames left in the current burst
	random  *rand.Rand // source of random gaps, for Poisson spacing
}

// DefaultBound is the default of the longest stall after which a clock still permits all late frames.
const DefaultBound = 20 * time.Millisecond

// Unlimited is the number of frames that a clock without a rate permits.
const Unlimited = math.MaxInt32

// Parameters for late frames after a short stall.
const (
	easing       = 0.97
	mostEased    = 32                   // slots, at most half of the bound; after a longer stall, late frames are not spaced
	shortestEase = 2 * time.Microsecond // minimum length of a slot; at higher rates, frames are sent in batches
	longestEase  = time.Millisecond     // maximum length of a slot; at lower rates, a stall rarely delays more than one frame
)

const perUnit = int64(time.Second) // the credit counts units times nanoseconds

// NewClock returns a clock for frames of the given mean size in bytes, FCS included. bound is the length of a stall
// after which all late frames are still sent; 0 means DefaultBound.
func NewClock(r Rate, meanSize float64, bound time.Duration) *Clock {
	if bound == 0 {
		bound = DefaultBound
	}
	c := &Clock{mean: meanSize, bound: bound}
	c.set(r)
	return c
}

// set sets the rate, and the fields that depend on it.
func (c *Clock) set(r Rate) {
	c.rate, c.of = int64(r.PerSecond), r
	c.one = max(1, r.cost(1, int(math.Ceil(c.mean)))) * perUnit
	// At 1 Tb/s, a 64-bit credit holds about 9 ms.
	c.limit = math.MaxInt64 / 2
	if hi, lo := bits.Mul64(uint64(c.rate), uint64(c.bound)); hi == 0 && lo < uint64(c.limit) {
		c.limit = int64(lo)
	}
	c.limit += c.one // a late frame is never given up
	c.ease, c.earliest = 0, 0
	c.eased = c.one + min(mostEased*c.one, (c.limit-c.one)/2)
	if r.PerSecond == 0 || c.spacing != (Spacing{}) {
		return
	}
	if slot := c.one / c.rate; slot >= int64(shortestEase) && slot <= int64(longestEase) {
		c.ease = int64(easing * float64(slot))
	}
}

// Change changes the rate at time now. Neither the old nor the new rate may be unlimited. The part of the next frame's
// time slot that has passed counts as passed at the new rate, too. So a change neither adds nor skips a frame.
func (c *Clock) Change(r Rate, now int64) {
	c.advance(now)
	slots := float64(c.credit) / float64(c.one)
	c.set(r)
	c.credit = min(int64(slots*float64(c.one)), c.limit)
}

// Permits returns the number of frames of mean size that may be sent at time now. The first call permits one frame. now
// is in nanoseconds from an arbitrary start and must not decrease.
func (c *Clock) Permits(now int64) int {
	n := c.Due(now)
	switch {
	case n == 0, c.ease == 0, c.credit > c.eased:
		return n
	case now < c.earliest:
		return 0
	}
	return 1
}

// Due is Permits without the spacing of late frames. It is for a caller that has no time left, and sends all late
// frames at once.
func (c *Clock) Due(now int64) int {
	if c.rate == 0 {
		return Unlimited
	}
	c.advance(now)
	return c.spaced(int(max(0, min(c.credit/c.one, Unlimited))))
}

// advance adds the credit for the time up to now. Credit above the limit is counted as missed time.
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

// Sent reduces the credit by the cost of frames that were sent. bytes is their total size, FCS included.
func (c *Clock) Sent(frames, bytes int) {
	if c.rate != 0 {
		c.credit -= c.price(frames, bytes)
		c.earliest = c.last + c.ease
	}
}

// Next returns the earliest time at which Permits will return at least 1.
func (c *Clock) Next() int64 {
	if c.rate == 0 || !c.begun || c.left > 0 {
		return c.last
	}
	next := c.last
	if c.credit < c.one {
		next += (c.one - c.credit + c.rate - 1) / c.rate
	}
	if c.ease != 0 && c.credit <= c.eased {
		next = max(next, c.earliest)
	}
	return next
}

// Missed returns the time whose frames will never be sent, because stalls were longer than the bound.
func (c *Clock) Missed() time.Duration { return c.missed }
