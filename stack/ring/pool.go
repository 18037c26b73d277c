package ring

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// Memory pools of the queues: chunks for the bytes, and chunk tables for queues that outgrow the table inside their struct.
// A stream in the steady state allocates no memory.

// chunkSize is a power of two. It is large enough that the work per chunk (some 20 ns) is small compared with
// the copy, and small enough that a connection with few bytes in flight is cheap.
const chunkSize = 4096

type chunk [chunkSize]byte

// table is the storage of a chunk table. Its length is a power of two. It is a struct, so that a pool can hold a pointer to
// it.
type table struct{ slot []*chunk }

var (
	chunks = sync.Pool{New: func() any { return new(chunk) }}
	tables [bits.UintSize]sync.Pool // pools of tables, indexed by log2 of their length

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

// newTable returns an empty table of n slots. n must be a power of two.
func newTable(n int) *table {
	if t, ok := tables[bits.TrailingZeros(uint(n))].Get().(*table); ok {
		return t
	}
	return &table{make([]*chunk, n)}
}

// free returns a table to its pool. All slots must be nil.
func (t *table) free() { tables[bits.TrailingZeros(uint(len(t.slot)))].Put(t) }

// Track switches the leak check for tests on or off. While it is on, chunks in use are counted and freed chunks are
// overwritten. When it is switched on, no queue may hold chunks. Repeated calls with the same value have no effect.
func Track(on bool) {
	if tracking.Swap(on) != on {
		outstanding.Store(0)
	}
}

// Outstanding returns the number of chunks held by all queues of the process, while Track is on.
func Outstanding() int { return int(outstanding.Load()) }
