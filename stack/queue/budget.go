package queue

import "sync/atomic"

// Budget counts the bytes that a socket has queued for sending. The zero value has none.
type Budget struct {
	pending atomic.Int64 // bytes of the frame buffers that are queued
	starved atomic.Bool  // a writer has found no room
}

// Room reports whether a datagram may be sent now. If not, a later call of Give will return true.
func (b *Budget) Room(limit int) bool {
	if b.pending.Load() < int64(limit) {
		return true
	}
	b.starved.Store(true)
	return b.pending.Load() < int64(limit)
}

// Take adds size bytes.
func (b *Budget) Take(size int) { b.pending.Add(int64(size)) }

// Give releases size bytes and reports whether a writer is waiting for room.
func (b *Budget) Give(size int) bool {
	b.pending.Add(int64(-size))
	return b.starved.Load() && b.starved.Swap(false)
}
