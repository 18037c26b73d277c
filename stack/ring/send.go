package ring

import "sync"

// Send holds what the program has written and the peer has not acknowledged.
//
//	released        end              reserved
//	   |   readable   |   being copied   |
//
// The zero value is empty with a limit of zero: SetLimit opens it.
type Send struct {
	mu       sync.Mutex
	store    store
	released uint64
	end      uint64
	reserved uint64 // end, or beyond it while Write copies
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
	return max(0, q.limit-int(q.end-q.released))
}

// Len is how many bytes are held.
func (q *Send) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.end - q.released)
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
		q.store.reserve(q.end, q.end+uint64(n))
		n = q.store.pick(&sp, q.end, q.end+uint64(n))
		q.reserved = q.end + uint64(n)
	}
	q.mu.Unlock()
	if n == 0 {
		return 0
	}
	sp.copyIn(p[:n])
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead { // Reset came in between and left the chunks to us
		q.reserved = q.end
		q.store.clear(q.end)
		return 0
	}
	q.end = q.reserved
	return n
}

// End is the offset behind the last byte written.
func (q *Send) End() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.end
}

// ReadAt fills p with the bytes at off, all of which are held: written, and not
// released. It panics if they are not. Only the shard calls it. The copy runs
// without the lock: what lies in front of end does not change, and only the
// shard, which is busy here, releases it.
func (q *Send) ReadAt(p []byte, off uint64) {
	for len(p) > 0 {
		var sp spans
		q.mu.Lock()
		if off < q.released || off+uint64(len(p)) > q.end || q.dead {
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
	if off > q.end {
		panic("ring: release of bytes that were not written")
	}
	if off <= q.released || q.dead {
		return
	}
	q.released = off
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
	q.released = q.end
	if q.reserved == q.end {
		q.store.clear(q.end)
	}
}
