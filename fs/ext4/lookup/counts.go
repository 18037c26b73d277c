package lookup

import "sync"

// Counts has a number for each file, which is 0 at first. The numbers are spread over parts with a lock each, under which no other lock
// is taken, so that opens of different files rarely wait for each other.
type Counts struct{ parts [parts]part }

// parts is the number of parts.
const (
	parts    = 1 << partBits
	partBits = 8
)

// A part is a list until it has more than mostListed numbers. Then it is a map, until it has no more than fewMapped. A list is faster
// than a map while it is short: a file that is opened and closed is at its end.
const (
	mostListed = 128
	fewMapped  = 32
)

// part has the numbers above 0 of its files.
type part struct {
	mu   sync.Mutex
	few  []count      // in no order; used if many is nil
	many map[File]int // nil: few is used
}

type count struct {
	file File
	n    int
}

// part returns the part of a file.
func (c *Counts) part(f File) *part { return &c.parts[spread(f.Inode)>>(64-partBits)] }

// find returns the index of a file in the list, or -1. The caller holds mu.
func (p *part) find(f File) int {
	for i := len(p.few) - 1; i >= 0; i-- {
		if p.few[i].file == f {
			return i
		}
	}
	return -1
}

// Add adds n to the number of a file, and returns the sum. A negative sum becomes 0.
func (c *Counts) Add(f File, n int) int {
	p := c.part(f)
	p.mu.Lock()
	if p.many != nil {
		n = p.addMapped(f, n)
	} else {
		n = p.addListed(f, n)
	}
	p.mu.Unlock()
	return n
}

// Open counts an open of a file, and reports whether the cache shows that it has a name. The count precedes the look, and an op that
// removes the last name forgets the attributes before it reads the number. So either the op sees the open file, or Open returns false.
func (c *Counts) Open(f File, in *Cache) bool {
	c.Add(f, 1)
	return in.Linked(f)
}

// Close counts the close of a file, and reports whether it is still open, or the cache shows that it has a name. The order is that of
// Open. If the look came first, an op between it and the count would take the file for open, and no thread would free it.
func (c *Counts) Close(f File, in *Cache) bool { return c.Add(f, -1) > 0 || in.Linked(f) }

// addListed is Add for a list. The caller holds mu.
func (p *part) addListed(f File, n int) int {
	i := p.find(f)
	if i >= 0 {
		n += p.few[i].n
	}
	switch {
	case n <= 0 && i >= 0:
		last := len(p.few) - 1
		p.few[i] = p.few[last]
		p.few = p.few[:last]
	case n <= 0:
	case i >= 0:
		p.few[i].n = n
	case len(p.few) < mostListed:
		p.few = append(p.few, count{f, n})
	default:
		p.many = make(map[File]int, 2*mostListed)
		for _, c := range p.few {
			p.many[c.file] = c.n
		}
		p.many[f], p.few = n, nil
	}
	return max(n, 0)
}

// addMapped is Add for a map. The caller holds mu.
func (p *part) addMapped(f File, n int) int {
	n = max(n+p.many[f], 0)
	if n > 0 {
		p.many[f] = n
		return n
	}
	delete(p.many, f)
	if len(p.many) <= fewMapped {
		for f, n := range p.many {
			p.few = append(p.few, count{f, n})
		}
		p.many = nil
	}
	return 0
}

// Count returns the number of a file.
func (c *Counts) Count(f File) int {
	p := c.part(f)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.find(f); i >= 0 {
		return p.few[i].n
	}
	return p.many[f]
}

// Clear sets all numbers to 0.
func (c *Counts) Clear() {
	for i := range c.parts {
		p := &c.parts[i]
		p.mu.Lock()
		p.few, p.many = nil, nil
		p.mu.Unlock()
	}
}
