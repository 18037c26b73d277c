package ring

import (
	"sync"
	"sync/atomic"
)

// Receive holds what has arrived and the program has not read, in or out of
// order.
//
//	consumed         committed                        top
//	   |   readable     |   pieces, holes between them   |
//
// It has no limit of its own: the window that TCP offers is the limit. Since a
// chunk is held for a single byte, a peer that sends one byte in every 4096 makes
// it hold the whole window, and never more than that and one chunk.
//
// The zero value is empty and ready.
type Receive struct {
	mu        sync.Mutex
	store     store
	lent      *loans        // nil: none
	consumed  atomic.Uint64 // changed under mu, and never beyond committed
	committed atomic.Uint64 // changed under mu
	top       uint64        // behind the last byte stored
	reading   bool          // the program copies from [consumed, committed)
	dead      bool          // after Reset
}

// WriteAt stores p at off, at or behind what has been committed. Only the shard
// calls it. The copy runs without the lock: the program does not read behind
// committed, and it does not free chunks in front of top but those it has read
// to their end.
func (q *Receive) WriteAt(p []byte, off uint64) {
	for len(p) > 0 {
		var sp spans
		q.mu.Lock()
		if q.dead {
			q.mu.Unlock()
			return
		}
		if off < q.committed.Load() {
			q.mu.Unlock()
			panic("ring: write over committed bytes")
		}
		end := off + uint64(len(p))
		q.store.reserve(off, end)
		n := q.store.pick(&sp, off, end)
		q.top = max(q.top, end)
		q.mu.Unlock()
		sp.copyIn(p[:n])
		p, off = p[n:], off+uint64(n)
	}
}

// Commit makes everything in front of off readable; it has all been stored. Only
// the shard calls it.
func (q *Receive) Commit(off uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return
	}
	if off > q.top {
		panic("ring: commit of bytes that were not stored")
	}
	q.committed.Store(max(q.committed.Load(), off))
}

// Committed is how far Commit has come: all that was ever readable.
func (q *Receive) Committed() uint64 { return q.committed.Load() }

// Consumed is the offset of the first byte that the program has not read.
func (q *Receive) Consumed() uint64 { return q.consumed.Load() }

// Readable is how many bytes Read would return now.
func (q *Receive) Readable() int {
	consumed := q.consumed.Load() // first: committed may go on, and stays ahead
	return int(q.committed.Load() - consumed)
}

// Read moves readable bytes to p and returns how many. One goroutine at a time,
// the program's, calls Read, Peek and Discard.
func (q *Receive) Read(p []byte) int {
	total := 0
	for len(p) > 0 {
		n := q.read(p, 0, true)
		if n == 0 {
			break
		}
		total += n
		p = p[n:]
	}
	return total
}

// Peek copies readable bytes to p and leaves them where they are, beginning skip
// bytes behind the first. It returns how many it copied.
func (q *Receive) Peek(p []byte, skip int) int {
	total := 0
	for len(p) > 0 {
		n := q.read(p, skip+total, false)
		if n == 0 {
			break
		}
		total += n
		p = p[n:]
	}
	return total
}

// read copies one stride or loan, skip bytes in, and consumes it if take is set. The copy
// runs without the lock: committed bytes do not change, and their chunks are freed
// by the program, which is busy here, or by Reset, which leaves them to us while
// reading is set.
func (q *Receive) read(p []byte, skip int, take bool) int {
	if skip >= q.Readable() {
		return 0
	}
	var sp spans
	q.mu.Lock()
	from, committed := q.consumed.Load()+uint64(skip), q.committed.Load()
	if from >= committed {
		q.mu.Unlock()
		return 0
	}
	to := min(from+uint64(len(p)), committed)
	lent, to := q.borrowed(from, to)
	n := len(lent)
	if n == 0 {
		n = q.store.pick(&sp, from, to)
	}
	q.reading = true
	q.mu.Unlock()

	if lent != nil {
		copy(p, lent)
	} else {
		sp.copyOut(p[:n])
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	q.reading = false
	switch {
	case q.dead:
		q.clear()
	case take:
		q.consume(n)
	}
	return n
}

// Discard consumes up to n readable bytes unseen and returns how many.
func (q *Receive) Discard(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = max(0, min(n, q.Readable()))
	q.consume(n)
	return n
}

func (q *Receive) consume(n int) {
	consumed := q.consumed.Add(uint64(n))
	q.giveBack(consumed)
	if consumed == q.top {
		q.store.clear(consumed)
	} else {
		q.store.drop(consumed)
	}
}

// Reset gives up what is held; after it nothing is readable and nothing is
// stored. It may overlap with Read, Peek and Discard, but not with WriteAt: it is
// the shard's call, or that of whoever is left when there is no shard any more.
func (q *Receive) Reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = true
	q.committed.Store(q.top)
	q.consumed.Store(q.top)
	if !q.reading {
		q.clear()
	}
}

// clear gives all memory back, after Reset.
func (q *Receive) clear() {
	q.giveBack(q.top)
	q.store.clear(q.top)
}
