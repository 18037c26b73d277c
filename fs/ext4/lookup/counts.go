package lookup

import "sync"

// Counts has a number for each file, which is 0 at first. It has a lock of its own, under which no other lock is taken.
type Counts struct {
	mu sync.Mutex
	of map[File]int // numbers above 0
}

// Add adds n to the number of a file, and returns the sum. A negative sum becomes 0.
func (c *Counts) Add(f File, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n += c.of[f]; n <= 0 {
		delete(c.of, f)
		return 0
	}
	if c.of == nil {
		c.of = map[File]int{}
	}
	c.of[f] = n
	return n
}

// Count returns the number of a file.
func (c *Counts) Count(f File) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[f]
}

// Clear sets all numbers to 0.
func (c *Counts) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.of)
}
