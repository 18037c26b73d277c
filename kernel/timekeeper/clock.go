// Package timekeeper is the arithmetic of clocks: how the time stamp counter
// becomes nanoseconds (Clock), how counters that are read beside it and begin again
// every few seconds tell how much time has passed (Reference), and how the first is
// kept in step with the second (Keeper). It reads no clock: readings come in.
//
// Time never goes back and never jumps. When the clock is wrong, its speed is
// changed, by a two thousandth at most, until it is right.
//
// Nothing here allocates, and nothing locks: the owner does. Only a Clock may be read
// by others while it is changed.
package timekeeper

import (
	"math/bits"
	"sync/atomic"
)

// Clock turns readings of the counter into nanoseconds. Assembly that reads it knows
// the offsets of its fields.
type Clock struct {
	sequence uint32 // odd while the others change; atomic
	_        uint32
	start    uint64 // a reading
	base     uint64 // the nanoseconds that it stands for
	scale    uint64 // nanoseconds for each tick, with 32 bits of fraction
	Wall     int64  // nanoseconds since 1970 when the clock was at 0
}

// At is the time of a reading. It may only be called by the owner; others have to
// look at the sequence before and behind.
func (c *Clock) At(counter uint64) uint64 {
	if int64(counter-c.start) < 0 {
		return c.base // another CPU's counter may be some ticks behind
	}
	return c.base + mulScale(counter-c.start, c.scale)
}

// Hold has readers wait, until Keeper.GoOn: the counter is read between, since the
// speed has to change at a reading that no reader has passed.
func (c *Clock) Hold() { atomic.AddUint32(&c.sequence, 1) }

// goOn has readers go on.
func (c *Clock) goOn() { atomic.AddUint32(&c.sequence, 1) }

// SetWall sets the time of the day.
func (c *Clock) SetWall(wall int64) {
	c.Hold()
	c.Wall = wall
	c.goOn()
}

// mulScale is v*scale, where scale has 32 bits of fraction.
func mulScale(v, scale uint64) uint64 {
	hi, lo := bits.Mul64(v, scale)
	return hi<<32 | lo>>32
}

// MulDiv is v*num/den; the largest number if that has no room.
func MulDiv(v, num, den uint64) uint64 {
	hi, lo := bits.Mul64(v, num)
	if hi >= den {
		return 1<<64 - 1
	}
	q, _ := bits.Div64(hi, lo, den)
	return q
}

// Scale is nanoseconds for each tick, with 32 bits of fraction.
func Scale(nanos, ticks uint64) uint64 { return MulDiv(nanos, 1<<32, ticks) }
