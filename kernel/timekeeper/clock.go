// Package timekeeper computes time from counters. A Clock converts the time stamp counter into nanoseconds. A
// Reference is a counter of known frequency that wraps around after some seconds. A Keeper corrects the Clock by
// the Reference. The package reads no clock itself: the caller passes readings.
//
// Time never goes back and never jumps. An error is corrected by a change of speed, of at most 1/2000, until the
// clock is right.
//
// Nothing here allocates or locks: the caller provides the locking. Only a Clock may be read while it is changed
// (see Hold).
package timekeeper

import (
	"math/bits"
	"sync/atomic"
)

// Clock converts readings of the counter into nanoseconds. Assembly that reads it knows the offsets of its fields.
type Clock struct {
	sequence uint32 // odd while the fields below change; atomic
	_        uint32
	start    uint64 // reading of the counter at which the clock showed base
	base     uint64 // time of the clock when the counter had the value start, in nanoseconds
	scale    uint64 // nanoseconds for each tick of the counter, with 32 fraction bits
	Wall     int64  // wall clock time at which the clock was 0, in nanoseconds since 1970
}

// At returns the time of a reading in nanoseconds. Only the owner may call it. Other readers have to check that
// sequence is even, and unchanged after the computation.
func (c *Clock) At(counter uint64) uint64 {
	if int64(counter-c.start) < 0 {
		return c.base // the counter of this CPU may be some ticks behind the counter of the CPU that set start: return base
	}
	return c.base + mulScale(counter-c.start, c.scale)
}

// State returns the base of the clock: a reading of the counter, the time at that reading in nanoseconds, and the
// nanoseconds for each later tick, with 32 fraction bits. Only the owner may call it.
func (c *Clock) State() (counter, nanos, scale uint64) { return c.start, c.base, c.scale }

// Scale returns the address of the clock's scale, the nanoseconds for each tick, for readers that need only this word.
func (c *Clock) Scale() *uint64 { return &c.scale }

// Hold makes readers wait until Keeper.GoOn. The caller reads the counter in between: the speed must change at a
// reading that is later than every reading of a reader.
func (c *Clock) Hold() { atomic.AddUint32(&c.sequence, 1) }

// goOn ends a Hold, so that readers continue.
func (c *Clock) goOn() { atomic.AddUint32(&c.sequence, 1) }

// SetWall sets the wall clock time at which the clock was 0, in nanoseconds since 1970.
func (c *Clock) SetWall(wall int64) {
	c.Hold()
	c.Wall = wall
	c.goOn()
}

// mulScale returns v*scale, where scale has 32 fraction bits.
func mulScale(v, scale uint64) uint64 {
	hi, lo := bits.Mul64(v, scale)
	return hi<<32 | lo>>32
}

// MulDiv returns v*num/den, or the largest uint64 on overflow.
func MulDiv(v, num, den uint64) uint64 {
	hi, lo := bits.Mul64(v, num)
	if hi >= den {
		return 1<<64 - 1
	}
	q, _ := bits.Div64(hi, lo, den)
	return q
}

// Scale returns nanoseconds for each tick, with 32 fraction bits.
func Scale(nanos, ticks uint64) uint64 { return MulDiv(nanos, 1<<32, ticks) }
