package cache

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"loam/mem"
)

// Limits determine when dirty pages are written back.
type Limits struct {
	// Age is the maximum time that a page may stay dirty. Zero means 30 s.
	Age time.Duration
	// Interval is the time between two calls of Step. Zero means 5 s.
	Interval time.Duration
	// Background is a number of dirty pages. If there are more, Step writes back the files that have been dirty
	// longest, until half of this number is left.
	Background int64
	// Dirty is a number of dirty pages. If there are more, a writer writes its own file back first. Zero means no
	// limit.
	Dirty int64
}

// Cache holds the pages of all files of a system.
type Cache struct {
	memory mem.Memory
	limits Limits

	mu    sync.Mutex
	ring  list.List // all pages (*entry) except dirty pages of files in memory; Reclaim examines the page at the back next
	dirty map[*File]time.Time
	// number of present pages, number of dirty pages, and time of the last Step
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

// Pages returns the numbers of present pages and of dirty pages. It counts only files with a Pager.
func (c *Cache) Pages() (present, dirty int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages, c.dirtyPages
}

// Step writes back the pages that are due at time now, and returns when to call it next. An error is stored in the
// file; File.Sync returns it.
func (c *Cache) Step(now time.Time) (next time.Time) {
	for _, f := range c.due(now) {
		if c.wants(f, now) {
			f.writeBack(0, ^uint64(0))
		}
	}
	return now.Add(c.limits.Interval)
}

// due returns the files with dirty pages, those that have been dirty longest first. It returns none if nothing has to
// be written.
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

// wants reports whether a file has to be written back: its pages have been dirty for Age, or there are still too many
// dirty pages.
func (c *Cache) wants(f *File, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, dirty := c.dirty[f]
	return dirty && (now.Sub(since) >= c.limits.Age || c.limits.Background > 0 && c.dirtyPages > c.limits.Background/2)
}

// crowded reports whether there are more than Limits.Dirty dirty pages. A writer then has to write pages back itself.
func (c *Cache) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits.Dirty > 0 && c.dirtyPages > c.limits.Dirty
}

// entered adds a loaded page to the ring.
func (c *Cache) entered(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.ring = c.ring.PushFront(e)
	c.pages++
}

// left removes a page from the ring.
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

// soiled counts a page of f that has become dirty.
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

// forget removes f from the list of files with dirty pages, if none of its pages is dirty.
func (c *Cache) forget(f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.dirty, f)
}

// Free evicts clean pages, as Reclaim does. If it finds none, it writes dirty pages back and tries again. The caller
// must hold no lock.
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

// Reclaim evicts up to want clean pages, and returns the number of pages it has evicted. It goes around the ring at
// most twice, because in the first round, pages in use only lose their reference bit.
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

// turn returns the page at the back of the ring of all pages, which Reclaim examines next, and moves it to the front.
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
