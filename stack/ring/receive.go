package ring

import (
	"sync"
	"sync/atomic"
)

// Receive holds the bytes that have arrived, in or out of order, and that the program has not read.
//
//	consumed         committed                        top
//	   |   readable     |   pieces, holes between them   |
//
// It has no limit of its own: the window offered by TCP is the limit. Even a single byte holds a whole chunk. A
// peer that sends one byte in every 4096 makes the queue hold the whole window, but never more than that and
// one chunk.
//
// The zero value is empty and ready.
type Receive struct {
	mu        sync.Mutex
	store     store
	lent      *loans        // frames that hold committed bytes; nil: none
	consumed  atomic.Uint64 // offset of the first byte that the program has not read; changed with mu held, never beyond committed
	committed atomic.Uint64 // offset after the last byte that the program may read; changed with mu held
	top       uint64        // offset after the last byte that is stored
	reading   bool          // the program is copying bytes between consumed and committed
	dead      bool          // Reset has been called
}

// WriteAt stores p at the offset off, which must be at or after the end of the committed bytes. Only
// the shard calls it. The copy runs without the lock: the program does not read after committed, and
// before top it only frees chunks that it has read completely.
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

// Commit makes all bytes before the offset off readable. They must all have been stored.
// Only the shard calls it.
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

// Committed returns the offset after the last byte that Commit or Lend has made readable.
func (q *Receive) Committed() uint64 { return q.committed.Load() }

// Consumed returns the offset of the first byte that the program has not read.
func (q *Receive) Consumed() uint64 { return q.consumed.Load() }

// Readable returns the number of bytes that Read would return now.
func (q *Receive) Readable() int {
	consumed := q.consumed.Load() // consumed is loaded first: committed may advance in between, but consumed never exceeds it
	return int(q.committed.Load() - consumed)
}

// Read moves readable bytes to p and returns their number. Only one goroutine at a time, the program's, may
// call Read, Peek and Discard.
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

// Peek copies readable bytes to p without consuming them. It starts skip bytes after the first readable byte. It returns the
// number of bytes copied.
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

// read copies one stride or loan, starting skip bytes after the first readable byte, and consumes it if take is set. The
// copy runs without the lock, because committed bytes do not change. Their chunks are freed only by the program, which is in
// this call, or by Reset, which leaves them to read while reading is set.
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

// Discard consumes up to n readable bytes without copying them, and returns their number.
func (q *Receive) Discard(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = max(0, min(n, q.Readable()))
	q.consume(n)
	return n
}

// consume advances consumed by n and frees the memory before it. The caller holds mu.
func (q *Receive) consume(n int) {
	consumed := q.consumed.Add(uint64(n))
	q.giveBack(consumed)
	if consumed == q.top {
		q.store.clear(consumed)
	} else {
		q.store.drop(consumed)
	}
}

// Reset drops all bytes. Afterwards nothing is readable and nothing can be stored. It may run concurrently with Read, Peek
// and Discard, but not with WriteAt. It is called by the shard, or by the last user after the shard has ended.
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

// clear frees all memory after Reset.
func (q *Receive) clear() {
	q.giveBack(q.top)
	q.store.clear(q.top)
}
