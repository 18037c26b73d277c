package ring

import (
	"sync"
	"sync/atomic"
)

// Send holds what the program has written and the peer has not acknowledged.
//
//	released        end              reserved
//	   |   readable   |   being copied   |
//
// The zero value is empty with a limit of zero: SetLimit opens it.
type Send struct {
	mu       sync.Mutex
	store    store
	released atomic.Uint64 // changed under mu, and never beyond end
	end      atomic.Uint64 // changed under mu
	reserved uint64        // end, or beyond it while Write copies
	limit    int
	dead     bool // after Reset
}

// SetLimit sets how many bytes may be held. A limit below what is held takes
// effect as bytes are released.
func (q *Send) SetLimit(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = n
}

// Limit is what SetLimit set.
func (q *Send) Limit() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// Room is how many bytes Write would take now.
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

// Len is how many bytes are held.
func (q *Send) Len() int {
	released := q.released.Load() // first: end may go on, and stays ahead
	return int(q.end.Load() - released)
}

// Write appends as much of p as there is room for and returns how much that was.
// One goroutine at a time, the program's.
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

// write takes one stride of p. The copy runs without the lock: the bytes lie
// behind end, where the shard does not read, in chunks that neither Release nor
// Reset frees while reserved is beyond end.
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
	if q.dead { // Reset came in between and left the chunks to us
		q.reserved = q.end.Load()
		q.store.clear(q.reserved)
		return 0
	}
	q.end.Store(q.reserved)
	return n
}

// End is the offset behind the last byte written.
func (q *Send) End() uint64 { return q.end.Load() }

// ReadAt fills p with the bytes at off, all of which are held: written, and not
// released. It panics if they are not. Only the shard calls it. The copy runs
// without the lock: what lies in front of end does not change, and only the
// shard, which is busy here, releases it.
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

// Release forgets everything in front of off, which is at most End. Only the
// shard calls it. Offsets that have been released before are left as they are.
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

// Reset gives up what is held; after it, Write takes nothing and Len is 0. It may
// overlap with Write, but not with ReadAt: it is the shard's call, or that of
// whoever is left when there is no shard any more.
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
