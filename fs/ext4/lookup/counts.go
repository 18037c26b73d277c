package lookup

import "sync"

// Counts has a number for each inode, which is 0 at first. It has a lock of its own, under which no other lock is taken.
type Counts struct {
	mu sync.Mutex
	of map[uint32]int // numbers above 0
}

// Add adds n to the number of an inode, and returns the sum. A negative sum becomes 0.
func (c *Counts) Add(inode uint32, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n += c.of[inode]; n <= 0 {
		delete(c.of, inode)
		return 0
	}
	if c.of == nil {
		c.of = map[uint32]int{}
	}
	c.of[inode] = n
	return n
}

// Count returns the number of an inode.
func (c *Counts) Count(inode uint32) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[inode]
}

// Clear sets all numbers to 0.
func (c *Counts) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.of)
}
