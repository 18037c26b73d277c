package method

import (
	"sync/atomic"
	"time"
)

// counters holds the counters of a sender. One goroutine updates them, once per batch; any goroutine may read them.
type counters struct {
	handed, bytes, left, refused atomic.Uint64
	busy, noBuffers, down, kicks atomic.Uint64
	bound                        atomic.Int64 // how long the sender waits for a device that is full or down, in nanoseconds (see Patient); 0: DefaultPatience
}

// Counters implements Sender.
func (c *counters) Counters() Counters {
	return Counters{
		Handed: c.handed.Load(), Bytes: c.bytes.Load(), Left: c.left.Load(), Refused: c.refused.Load(),
		Busy: c.busy.Load(), NoBuffers: c.noBuffers.Load(), Down: c.down.Load(), Kicks: c.kicks.Load(),
	}
}

// took adds frames and bytes that the kernel has accepted, and the number of system calls.
func (c *counters) took(frames, bytes, kicks int) {
	c.handed.Add(uint64(frames))
	c.bytes.Add(uint64(bytes))
	c.kicks.Add(uint64(kicks))
}

// SetPatience implements Patient.
func (c *counters) SetPatience(d time.Duration) { c.bound.Store(int64(d)) }

// patience returns how long a frame may wait until it is accepted.
func (c *counters) patience() time.Duration {
	if d := c.bound.Load(); d > 0 {
		return time.Duration(d)
	}
	return DefaultPatience
}
