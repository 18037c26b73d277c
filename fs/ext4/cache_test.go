package ext4

import "testing"

// The cache is full, and all its buffers were used again. A buffer that is then added stays in the cache.
func TestAddedBufferStays(t *testing.T) {
	const limit = 64
	c := newCache(limit)
	for i := range uint64(limit) {
		c.add(&buffer{number: i})
		c.find(i)
	}
	if b := c.add(&buffer{number: limit}); c.find(limit) != b {
		t.Error("the new buffer is not in the cache")
	}
	if c.count != limit {
		t.Errorf("%d buffers, want %d", c.count, limit)
	}
}
