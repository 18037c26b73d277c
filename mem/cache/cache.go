package cache

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"loam/mem"
)

// Limits say when dirty pages are written back.
type Limits struct {
	// Age is the maximum time that a page may be dirty. Zero means 30 s.
	Age time.Duration
	// Interval is the time between two Steps. Zero means 5 s.
	Interval time.Duration
	// Background is the number of dirty pages above which Step writes the oldest back, to half of it.
	Background int64
	// Dirty is the number above which a writer writes its own file back. Zero means no limit.
	Dirty int64
}

// Cache holds the pages of all files of a system.
type Cache struct {
	memory mem.Memory
	limits Limits

	mu    sync.Mutex
	ring  list.List // of *entry, the hand at the back
	dirty map[*File]time.Time
	// counts, and the time of the last Step
	pages, dirtyPages int64
	now               time.Time
}

// New returns an empty cache.
func New(memory mem.Memory, limits Limits) *Cache {
	if limits.Age == 0 {
		limits.Age = 30 * time.Second
	}
	if limits.Interval == 0 {
		limits.Interval = 5 * time.Second
	}
	return &Cache{memory: memory, limits: limits, dirty: map[*File]time.Time{}}
}

// Pages returns how many pages of files with a Pager are present, and how many are dirty.
func (c *Cache) Pages() (present, dirty int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages, c.dirtyPages
}

// Step writes back the pages that are due at now, and returns when to call it next. Errors are kept for File.Sync.
func (c *Cache) Step(now time.Time) (next time.Time) {
	for _, f := range c.due(now) {
		if c.wants(f, now) {
			f.writeBack(0, ^uint64(0))
		}
	}
	return now.Add(c.limits.Interval)
}

// due returns the files with dirty pages, if some of them have to be written: the longest dirty first.
func (c *Cache) due(now time.Time) (files []*File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	crowded := c.limits.Background > 0 && c.dirtyPages > c.limits.Background
	for f, since := range c.dirty {
		if crowded || now.Sub(since) >= c.limits.Age {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b *File) int { return c.dirty[a].Compare(c.dirty[b]) })
	return files
}

// wants reports whether a file is to be written: it is old, or there are still too many dirty pages.
func (c *Cache) wants(f *File, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, dirty := c.dirty[f]
	return dirty && (now.Sub(since) >= c.limits.Age || c.limits.Background > 0 && c.dirtyPages > c.limits.Background/2)
}

// crowded reports whether a writer has to write back.
func (c *Cache) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Dirty > 0 && c.dirtyPages > c.limits.Dirty
}

// entered puts a loaded page into the ring.
func (c *Cache) entered(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.ring = c.ring.PushFront(e)
	c.pages++
}

// left takes a page out of the ring.
func (c *Cache) left(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.ring == nil {
		return
	}
	c.ring.Remove(e.ring)
	e.ring = nil
	c.pages--
	if e.dirty {
		c.dirtyPages--
	}
}

// soiled counts a page of f that has become dirty, and cleaned counts a page that has become clean.
func (c *Cache) soiled(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirtyPages++
	if _, ok := c.dirty[f]; !ok {
		c.dirty[f] = c.now
	}
}

func (c *Cache) cleaned(pages int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirtyPages -= pages
}

// forget takes a file without dirty pages off the list of those that have some.
func (c *Cache) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.dirty, f)
}

// Free is Reclaim for a caller that holds no lock: if no page could be evicted, it writes dirty pages back and tries again.
func (c *Cache) Free(want int) (evicted int) {
	if n := c.Reclaim(want); n > 0 {
		return n
	}
	c.mu.Lock()
	files := slices.Collect(maps.Keys(c.dirty))
	c.mu.Unlock()
	if len(files) == 0 {
		return 0
	}
	for _, f := range files {
		f.writeBack(0, ^uint64(0))
	}
	return c.Reclaim(want)
}

// Reclaim evicts up to want clean pages, and returns how many it has evicted. It turns the ring at
// most twice: pages that are in use lose their reference bit in the first turn.
func (c *Cache) Reclaim(want int) (evicted int) {
	present, _ := c.Pages()
	for range 2 * present {
		if evicted >= want {
			break
		}
		if e := c.turn(); e == nil {
			break
		} else if e.file.evict(e) {
			evicted++
		}
	}
	return evicted
}

// turn moves the hand by one page and returns that page.
func (c *Cache) turn() *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.ring.Back()
	if last == nil {
		return nil
	}
	c.ring.MoveToFront(last)
	return last.Value.(*entry)
}
