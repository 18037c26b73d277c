package ring

import (
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
	released atomic.Uint64 // changed under mu, never beyond end
	end      atomic.Uint64 // changed under mu
	reserved uint64        // end, or behind it while Write copies
	limit    int
	dead     bool // Reset was called
}

// SetLimit sets how many bytes the queue may hold. A limit below the current size takes effect as bytes are
// released.
func (q *Send) SetLimit(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = n
}

// Limit returns the value of SetLimit.
func (q *Send) Limit() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// Room returns how many bytes Write would accept now.
func (q *Send) Room() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.room()
}

func (q *Send) room() int {
	if q.dead {
		return 0
	}
	return max(0, q.limit-q.Len())
}

// Len returns how many bytes are held.
func (q *Send) Len() int {
	released := q.released.Load() // load first: end may advance, but never falls behind
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
	n := min(len(p), q.room())
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
	if q.dead { // Reset was called during the copy and left the chunks
		q.reserved = q.end.Load()
		q.store.clear(q.reserved)
		return 0
	}
	q.end.Store(q.reserved)
	return n
}

// End returns the offset behind the last byte written.
func (q *Send) End() uint64 { return q.end.Load() }

// ReadAt fills p with the bytes at off. It panics unless all of them are held: written, and not released.
// Only the shard calls it. The copy runs without the lock: bytes in front of end do not change, and only the
// shard, which is busy here, releases them.
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

// Release drops all bytes in front of off, which must be at most End. Only the shard calls it. An off that
// has already been released has no effect.
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

// Reset drops all bytes. Afterwards Write accepts nothing and Len is 0. It may run concurrently with Write,
// but not with ReadAt: the shard calls it, or the last user once the shard is gone.
func (q *Send) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = true
	end := q.end.Load()
	q.released.Store(end)
	if q.reserved == end {
		q.store.clear(end)
	}
}
