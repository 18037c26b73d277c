package link

import "sync/atomic"

// Counters are Stats that several goroutines may add to. Each queue has one, because its Recv and
// its Send may run at the same time. A batch is added at once and costs two atomic additions. The
// zero value is ready to use.
type Counters struct {
	rxFrames, rxBytes   atomic.Uint64
	rxDropped, rxErrors atomic.Uint64
	_                   [32]byte // keeps the counters of the two directions in different cache lines
	txFrames, txBytes   atomic.Uint64
	txDropped, txErrors atomic.Uint64
}

// Received counts frames that Recv returns.
func (c *Counters) Received(frames, bytes int) {
	c.rxFrames.Add(uint64(frames))
	c.rxBytes.Add(uint64(bytes))
}

// Sent counts frames that Send took and passed on.
func (c *Counters) Sent(frames, bytes int) {
	c.txFrames.Add(uint64(frames))
	c.txBytes.Add(uint64(bytes))
}

// RxDropped counts frames that arrived and were dropped because there was no room.
func (c *Counters) RxDropped(frames int) { c.rxDropped.Add(uint64(frames)) }

// RxError counts one frame that arrived damaged.
func (c *Counters) RxError() { c.rxErrors.Add(1) }

// TxDropped counts frames that Send took and the device dropped later.
func (c *Counters) TxDropped(frames int) { c.txDropped.Add(uint64(frames)) }

// TxError counts one frame that Send rejected.
func (c *Counters) TxError() { c.txErrors.Add(1) }

// Stats returns the counters. Each is read separately: while frames flow, the counters of one
// direction may differ by a batch.
func (c *Counters) Stats() Stats {
	return Stats{
		RxFrames: c.rxFrames.Load(), RxBytes: c.rxBytes.Load(),
		RxDropped: c.rxDropped.Load(), RxErrors: c.rxErrors.Load(),
		TxFrames: c.txFrames.Load(), TxBytes: c.txBytes.Load(),
		TxDropped: c.txDropped.Load(), TxErrors: c.txErrors.Load(),
	}
}
