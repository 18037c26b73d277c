package ring

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Memory of the queues: chunks for the bytes and, for a queue that outgrows the
// table inside its struct, tables of chunks. Both are pooled, so that a stream
// in its stride allocates nothing.

// chunkSize is large enough that the work per chunk (some 20 ns) vanishes behind
// the copy, and small enough that a connection with a few bytes in flight is
// cheap. A power of two.
const chunkSize = 4096

type chunk [chunkSize]byte

// table maps chunk numbers to chunks; its length is a power of two. It is a
// struct so that the pool holds a pointer.
type table struct{ slot []*chunk }

var (
	chunks = sync.Pool{New: func() any { return new(chunk) }}
	tables [bits.UintSize]sync.Pool // by log2 of the length

	tracking    atomic.Bool
	outstanding atomic.Int64
)

func newChunk() *chunk {
	if tracking.Load() {
		outstanding.Add(1)
	}
	return chunks.Get().(*chunk)
}

func (c *chunk) free() {
	if tracking.Load() {
		outstanding.Add(-1)
		for i := range c {
			c[i] = 0xdb
		}
	}
	chunks.Put(c)
}

// newTable returns an empty table of n slots, a power of two.
func newTable(n int) *table {
	if t, ok := tables[bits.TrailingZeros(uint(n))].Get().(*table); ok {
		return t
	}
	return &table{make([]*chunk, n)}
}

// free takes back a table whose slots are all nil.
func (t *table) free() { tables[bits.TrailingZeros(uint(len(t.slot)))].Put(t) }

// Track switches the accounting that tests use on or off: chunks outstanding are
// counted and freed ones overwritten. Chunks that are held when it is switched
// on confuse the count; to switch on what is on changes nothing.
func Track(on bool) {
	if tracking.Swap(on) != on {
		outstanding.Store(0)
	}
}

// Outstanding is the number of chunks held by all queues of the process while
// tracking.
func Outstanding() int { return int(outstanding.Load()) }
