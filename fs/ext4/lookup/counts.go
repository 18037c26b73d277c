package lookup

import (
	"slices"
	"sync"
)

// Counts has a number for each file, which is 0 at first. The numbers are spread over parts with a lock each, under which no other lock
// is taken, so that opens of different files rarely wait for each other.
type Counts struct{ parts [parts]part }

// parts is the number of parts. Each has a list, which is short unless many thousands of files are open.
const (
	parts    = 1 << partBits
	partBits = 8
)

type part struct {
	mu sync.Mutex
	of []count // numbers above 0, in no order
}

type count struct {
	file File
	n    int
}

// part returns the part of a file.
func (c *Counts) part(f File) *part { return &c.parts[spread(f.Inode)>>(64-partBits)] }

// find returns the index of a file in the list, or -1. The caller holds mu.
func (p *part) find(f File) int {
	for i := range p.of {
		if p.of[i].file == f {
			return i
		}
	}
	return -1
}

// Add adds n to the number of a file, and returns the sum. A negative sum becomes 0.
func (c *Counts) Add(f File, n int) int {
	p := c.part(f)
	p.mu.Lock()
	i := p.find(f)
	if i >= 0 {
		n += p.of[i].n
	}
	switch {
	case n <= 0 && i >= 0:
		last := len(p.of) - 1
		p.of[i] = p.of[last]
		p.of = p.of[:last]
	case n <= 0:
	case i >= 0:
		p.of[i].n = n
	default:
		p.of = append(p.of, count{f, n})
	}
	p.mu.Unlock()
	return max(n, 0)
}

// Count returns the number of a file.
func (c *Counts) Count(f File) int {
	p := c.part(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.find(f); i >= 0 {
		return p.of[i].n
	}
	return 0
}

// Clear sets all numbers to 0.
func (c *Counts) Clear() {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.of = slices.Delete(p.of, 0, len(p.of))
		p.mu.Unlock()
	}
}
