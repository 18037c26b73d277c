package method

import "sync/atomic"

// counters are Counters that one goroutine adds to and any reads. They are added
// to once a batch.
type counters struct {
	handed, bytes, left, refused atomic.Uint64
	busy, noBuffers, down, kicks atomic.Uint64
}

// Counters implements Sender.
func (c *counters) Counters() Counters {
	return Counters{
		Handed: c.handed.Load(), Bytes: c.bytes.Load(), Left: c.left.Load(), Refused: c.refused.Load(),
		Busy: c.busy.Load(), NoBuffers: c.noBuffers.Load(), Down: c.down.Load(), Kicks: c.kicks.Load(),
	}
}

// took counts frames that were handed over by so many calls.
func (c *counters) took(frames, bytes, kicks int) {
	c.handed.Add(uint64(frames))
	c.bytes.Add(uint64(bytes))
	c.kicks.Add(uint64(kicks))
}
