package ninep

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"loam/fs"
)

// Listing directories in advance (mode Loose). When a program lists a second directory of a parent, it probably walks the
// tree. The client then lists the directories that come next, and fetches their small files if the program reads files.
// Several requests are made at once: the server works without waiting for the client, and the client processes several
// replies each time it runs.

// Bounds for listing directories in advance.
const (
	aheadDirs     = 64
	aheadRead     = 24 // instead of aheadDirs if files are fetched too
	aheadParallel = 8  // number of goroutines
	aheadMark     = 8  // a program that lists the directory of this number continues the listing in advance
	aheadLearn    = 8  // number of listed subdirectories from which the order of the walk is learned
	aheadBatches  = 4  // batches of files that are fetched in advance from one directory
)

// walkAhead lists the directories behind d in advance, if d is the second one that is listed in its parent.
func (s *FileSystem) walkAhead(d *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := d.dir
	if up == nil || up.names == nil || len(up.names.listing) == 0 {
		return
	}
	c := up.names
	c.walked++
	c.follow(d.name)
	deep := up.dir != nil && up.dir.names != nil && up.dir.names.walked > 1
	if c.walked < 2 && !deep {
		return
	}
	if deep {
		c.reading = c.reading || up.dir.names.reading
		c.inherit(up.dir.names)
	}
	if s.aheadAt = d; !s.ahead {
		s.ahead = s.conn.beside(s.runAhead)
	}
}

// follow records that the program lists a subdirectory. From the first ones it learns whether the program lists them in the order of
// the server, or by name. The caller holds mu.
func (c *names) follow(name string) {
	last := c.lastDir
	c.lastDir = name
	if last == "" || c.walked > aheadLearn {
		return
	}
	before := c.byName
	for _, byName := range [...]bool{before, !before} {
		c.sort(byName)
		order := c.subdirectories()
		at := slices.IndexFunc(order, func(k *known) bool { return k.name == last })
		if at >= 0 && order[(at+1)%len(order)].name == name {
			return
		}
	}
	c.sort(before)
}

// sort sets the order of subdirectories. The caller holds mu.
func (c *names) sort(byName bool) {
	if c.byName != byName {
		c.byName, c.order = byName, nil
	}
}

// inherit takes over the order of the walk from another directory of the tree, unless it was learned here. The caller holds mu.
func (c *names) inherit(other *names) {
	if c.walked < 2 {
		c.sort(other.byName)
	}
}

// subdirectories returns the subdirectories in the order in which the program probably lists them. The caller holds mu.
func (c *names) subdirectories() []*known {
	if c.order != nil {
		return c.order
	}
	c.order = make([]*known, 0, c.dirs)
	for _, k := range c.listing {
		if k.attr.Mode.Type() == fs.Dir {
			c.order = append(c.order, k)
		}
	}
	if c.byName {
		slices.SortFunc(c.order, func(a, b *known) int { return strings.Compare(a.name, b.name) })
	}
	return c.order
}

// runAhead lists directories in advance, until walkAhead is no longer called meanwhile.
func (s *FileSystem) runAhead() {
	for {
		s.mu.Lock()
		d := s.aheadAt
		s.aheadAt = nil
		if d == nil || d.dir == nil || d.dir.names == nil {
			s.ahead = false
			s.mu.Unlock()
			return
		}
		most, reading := aheadDirs, d.dir.names.reading
		if reading {
			most = aheadRead
		}
		dirs := s.nextDirs(d, most)
		s.mu.Unlock()
		s.listAhead(dirs, reading)
	}
}

// continueAhead continues the listing in advance if the program has reached a mark.
func (s *FileSystem) continueAhead(d *node) {
	s.mu.Lock()
	marked := d.names != nil && d.names.mark
	if marked {
		d.names.mark = false
	}
	s.mu.Unlock()
	if marked {
		s.walkAhead(d)
	}
}

// nextDirs returns directories that a walk of the tree probably reaches after d, and whose names are not known, up to most: other
// subdirectories of its parent, and then of the grandparent. Their order is treated as a ring, because a program may visit
// directories in another order. The caller holds mu.
func (s *FileSystem) nextDirs(d *node, most int) (dirs []*node) {
	const levels = 2
	up := d.dir
	walk := up.names
	for range levels {
		if up == nil || up.names == nil {
			break
		}
		up.names.inherit(walk)
		order := up.names.subdirectories()
		at := slices.IndexFunc(order, func(k *known) bool { return k.name == d.name })
		for i := range len(order) - 1 { // all but d
			if len(dirs) == most {
				return dirs
			}
			k := order[(at+1+i)%len(order)]
			if n := s.dirOf(up, k); n != nil && !s.listed(n) {
				dirs = append(dirs, n)
			} else if n != nil && n.names.dirs > 0 {
				n.names.inherit(walk)
				dirs = s.unlisted(n, dirs, most)
			}
		}
		d, up = up, up.dir
	}
	return dirs
}

// unlisted appends the subdirectories of a directory whose names are not known, up to most in all. The caller holds mu.
func (s *FileSystem) unlisted(up *node, dirs []*node, most int) []*node {
	for _, k := range up.names.subdirectories() {
		if len(dirs) == most {
			break
		}
		if n := s.dirOf(up, k); n != nil && !s.listed(n) {
			dirs = append(dirs, n)
		}
	}
	return dirs
}

// dirOf returns the node of an entry that is a directory, or nil. The caller holds mu.
func (s *FileSystem) dirOf(up *node, k *known) *node {
	if k.attr.Mode.Type() != fs.Dir || k.absent || !s.now().Before(k.until) {
		return nil
	}
	if n := k.nodeIn(up); n != nil {
		return n
	}
	return s.nodeOf(up, k.name, &k.attr)
}

// listed reports whether the names of a directory are known. The caller holds mu.
func (s *FileSystem) listed(d *node) bool {
	return d.names != nil && d.names.complete && s.now().Before(d.names.until)
}

// listAhead lists directories, and fetches their files if reading is set.
func (s *FileSystem) listAhead(dirs []*node, reading bool) {
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(dirs) || !s.prepare(dirs[i], i%aheadMark == aheadMark-1, reading) {
				return
			}
		}
	}
	var others sync.WaitGroup
	for range min(aheadParallel, len(dirs)) - 1 {
		others.Add(1)
		if !s.conn.beside(func() { defer others.Done(); work() }) {
			others.Done()
		}
	}
	work()
	others.Wait()
}

// prepare lists a directory, and fetches its files if reading is set. It returns false if there is no room or the server
// has failed.
func (s *FileSystem) prepare(d *node, mark, reading bool) bool {
	s.mu.Lock()
	s.recycle(d.dir)
	full, listed := s.names > s.mostCached*7/8 || reading && s.content > mostContent/2, s.listed(d)
	s.mu.Unlock()
	if full {
		return false
	}
	if !listed && s.fill(d) != nil {
		return false
	}
	if mark {
		s.mu.Lock()
		if d.names != nil {
			d.names.mark = true
		}
		s.mu.Unlock()
	}
	for reading {
		b := s.nextBatch(d)
		if len(b.files) == 0 {
			break
		}
		if s.fetch(b) != nil {
			return false
		}
	}
	return true
}

// recycle makes room for names that are requested in advance: if there is little, it drops the names of directories that
// were filled the longest time ago. It keeps the names of up, and of directories whose subdirectories were listed, because
// the program still resolves paths through them. The caller holds mu.
func (s *FileSystem) recycle(up *node) {
	if s.names <= s.mostCached*7/8 {
		return
	}
	for range s.cached.Len() {
		oldest := s.cached.Back().Value.(*node)
		if oldest == up || oldest.names.walked > 0 {
			s.cached.MoveToFront(oldest.names.lru)
			continue
		}
		if s.dropNames(oldest); s.names <= s.mostCached*3/4 {
			return
		}
	}
}

// nextBatch returns files of a directory whose content is not known.
func (s *FileSystem) nextBatch(d *node) batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := d.names
	if c == nil || c.fetches != nil || c.batches == aheadBatches {
		return batch{}
	}
	c.batches++
	c.opened = max(c.opened, 1)
	return s.batch(d, 0, false)
}
