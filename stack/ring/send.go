package ring

import (
	"math"
	"sync"
	"sync/atomic"
)

// Send holds the bytes that the program has written and the peer has not acknowledged.
//
//	released        end              reserved
//	   |   readable   |   being copied   |
//
// The zero value is empty and has a limit of zero; SetLimit raises it.
type Send struct {
	mu       sync.Mutex
	store    store
	released atomic.Uint64 // offset of the first byte that is still held; changed with mu held, never beyond end
	end      atomic.Uint64 // offset after the last byte that was written; changed with mu held
	reserved uint64        // equal to end, or beyond it while Write copies
	limit    atomic.Uint32 // 0 after Reset; changed with mu held
	dead     bool          // Reset was called
}

// SetLimit sets the maximum number of bytes that the queue may hold, at most 4 GiB less one byte. If the queue holds more
// than a new limit, it shrinks as bytes are released.
func (q *Send) SetLimit(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.dead {
		q.limit.Store(uint32(min(max(n, 0), math.MaxUint32)))
	}
}

// Limit returns the limit that SetLimit has set, or 0 after Reset.
func (q *Send) Limit() int { return int(q.limit.Load()) }

// Room returns the number of bytes that Write would accept now.
func (q *Send) Room() int { return max(0, q.Limit()-q.Len()) }

// Len returns the number of bytes that the queue holds.
func (q *Send) Len() int {
	released := q.released.Load() // released is loaded first: end may advance in between, but released never exceeds it
	return int(q.end.Load() - released)
}

// Write appends as much of p as there is room for and returns the number of bytes. Only one goroutine at a
// time may call it, the program's.
func (q *Send) Write(p []byte) int {
	total := 0
	for len(p) > 0 {
		n := q.write(p)
		if n == 0 {
			break
		}
		total += n
		p = p[n:]
	}
	return total
}

// write copies one stride of p. The copy runs without the lock: the bytes are beyond end, where the shard
// does not read, in chunks that neither Release nor Reset frees while reserved is beyond end.
func (q *Send) write(p []byte) int {
	var sp spans
	q.mu.Lock()
	n := min(len(p), q.Room())
	if n > 0 {
		end := q.end.Load()
		q.store.reserve(end, end+uint64(n))
		n = q.store.pick(&sp, end, end+uint64(n))
		q.reserved = end + uint64(n)
	}
	q.mu.Unlock()
	if n == 0 {
		return 0
	}
	sp.copyIn(p[:n])
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead { // Reset was called during the copy, and has left the chunks to this call
		q.reserved = q.end.Load()
		q.store.clear(q.reserved)
		return 0
	}
	q.end.Store(q.reserved)
	return n
}

// End returns the offset after the last byte that was written.
func (q *Send) End() uint64 { return q.end.Load() }

// ReadAt fills p with the bytes at the offset off. It panics unless the queue holds all of them. Only the shard calls
// it. The copy runs without the lock, because bytes before end do not change, and only the shard, which is in this
// call, releases them.
func (q *Send) ReadAt(p []byte, off uint64) {
	for len(p) > 0 {
		var sp spans
		q.mu.Lock()
		if off < q.released.Load() || off+uint64(len(p)) > q.end.Load() || q.dead {
			q.mu.Unlock()
			panic("ring: read of bytes that are not held")
		}
		n := q.store.pick(&sp, off, off+uint64(len(p)))
		q.mu.Unlock()
		sp.copyOut(p[:n])
		p, off = p[n:], off+uint64(n)
	}
}

// Release drops all bytes before the offset off, which must be at most End. Only the
// shard calls it. It does nothing if the bytes have already been released.
func (q *Send) Release(off uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if off > q.end.Load() {
		panic("ring: release of bytes that were not written")
	}
	if off <= q.released.Load() || q.dead {
		return
	}
	q.released.Store(off)
	if off == q.reserved {
		q.store.clear(off)
	} else {
		q.store.drop(off)
	}
}

// Reset drops all bytes. Afterwards Write accepts nothing and Len is 0. It may run concurrently with Write, but not with
// ReadAt. It is called by the shard, or by the last user after the shard has ended.
func (q *Send) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = true
	q.limit.Store(0)
	end := q.end.Load()
	q.released.Store(end)
	if q.reserved == end {
		q.store.clear(end)
	}
}
