package ninep

import (
	"container/list"
	"errors"
	"slices"

	"loam/abi/linux"
	"loam/fs"
)

// Cached names of directories (mode Loose).

// names are the names of a directory that the client knows.
type names struct {
	known    map[string]*known
	complete bool    // known has all names
	until    instant // complete is valid until then
	// listing has the entries in the order of the server; nil: not known. Entries that are marked absent were removed
	// after the listing.
	listing   []*known
	ascending bool // the offsets of listing ascend (on tmpfs, they descend)
	misses    int  // number of lookups of unknown names since the last listing
	large     bool // the directory has too many names to be listed
	lru       *list.Element

	// Fields that prefetch.go uses.
	readAt  int           // index in listing behind the last file that was opened for reading
	opened  int           // number of files that were opened for reading since the listing
	walked  int           // number of subdirectories that were listed
	reading bool          // the program reads files of a subdirectory
	batches int           // number of batches that were fetched ahead
	dirs    int           // number of subdirectories in listing
	order   []*known      // the subdirectories in listing, in the order in which the program probably lists them; nil: not known
	byName  bool          // the program lists subdirectories by name
	lastDir string        // the subdirectory that was listed last
	mark    bool          // when the program lists this directory again, more directories are listed in advance
	fetches chan struct{} // closed when the running fetch has ended; nil: none runs
}

// known is the cached result of looking up a name.
type known struct {
	name    string
	content *content // content of a small file; see prefetch.go
	dir     *node    // node of a directory; nil: not known
	attr    record
	next    uint64  // offset of the next entry
	began   uint64  // value of FileSystem.tick when the request began
	until   instant // valid until then
	absent  bool
	stale   bool // the client has changed the file since: attr is not valid
	read    bool // the file was opened for reading since the listing
}

// nodeIn returns the node that was found at the name in directory d, or nil. The caller holds mu.
func (k *known) nodeIn(d *node) *node {
	if n := k.dir; n != nil && n.dir == d && n.name == k.name && !n.gone {
		return n
	}
	n := d.kid(k.name)
	if n != nil && n.kind == fs.Dir {
		k.dir = n
	}
	return n
}

// deadline returns the time until which a result that arrives now is valid. The caller holds mu.
func (s *FileSystem) deadline() instant {
	if s.valid == 0 {
		return 0
	}
	return s.now() + instant(s.valid)
}

// remembered returns the cached result for a name. isKnown is false if nothing is cached; n is nil
// if the name is known not to exist.
func (s *FileSystem) remembered(d *node, name string) (n *node, isKnown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := d.names
	if c == nil {
		return nil, false
	}
	now := s.now()
	k := c.known[name]
	switch {
	case k != nil && now.Before(k.until):
		if k.absent {
			return nil, true
		}
		n := k.nodeIn(d)
		if n == nil || n.key != k.attr.key {
			if k.stale || k.attr.Links > 1 && k.attr.Mode.Type() != fs.Dir {
				return nil, false // the client may have changed the file by another name
			}
			if n = s.nodeOf(d, name, &k.attr); n == nil {
				return nil, false
			}
		}
		if !k.stale && n.fresh.Before(k.until) {
			n.learn(&k.attr, k.began, k.until)
		}
		return n, true
	case k == nil && c.complete && now.Before(c.until):
		return nil, true
	}
	return nil, false
}

// Glance implements fs.Glancing.
func (s *FileSystem) Glance(dir fs.Directory, name string) (fs.Attr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.untouched(dir, name)
	if k == nil || k.attr.Mode.Type() == fs.Symlink {
		return fs.Attr{}, false
	}
	return k.attr.Attr, true
}

// Present implements fs.Glancing.
func (s *FileSystem) Present(dir fs.Directory, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.untouched(dir, name) != nil
}

// untouched returns the cached result for a name, if it is of a file with one name that is no directory, and that has no node. (A
// node may have newer attributes, also if it was found at another name.) Otherwise it returns nil. The caller holds mu.
func (s *FileSystem) untouched(dir fs.Directory, name string) *known {
	d, ok := dir.(directory)
	if !ok || d.names == nil {
		return nil
	}
	k := d.names.known[name]
	switch {
	case k == nil || k.absent || k.stale || k.attr.Links != 1 || !s.now().Before(k.until):
		return nil
	case k.attr.Mode.Type() == fs.Dir || s.nodes[k.attr.key].Value() != nil:
		return nil
	}
	return k
}

// cache returns the cached names of a directory. The caller holds mu.
func (s *FileSystem) cache(d *node) *names {
	if d.names == nil {
		d.names = &names{known: map[string]*known{}}
		d.names.lru = s.cached.PushFront(d)
	}
	return d.names
}

// remember caches the attributes of a name, from a request that began at tick began. r is nil if
// the name does not exist. The caller holds mu.
func (s *FileSystem) remember(d *node, name string, r *record, began uint64, until instant) {
	if until == 0 || d.gone {
		return
	}
	k := &known{name: name, absent: r == nil, until: until, began: began}
	if r != nil {
		k.attr = *r
	}
	s.know(d, k)
	s.trimNames(d)
}

// know replaces the cached result for a name. The caller holds mu.
func (s *FileSystem) know(d *node, k *known) {
	c := s.cache(d)
	old := c.known[k.name]
	if old == nil {
		s.names++
		c.known[k.name] = k
		return
	}
	s.dropContent(old)
	next := old.next // the listing may refer to the old entry
	*old = *k
	old.next = next
}

// doubt records that the file at a name is unknown from now on. The caller holds mu.
func (s *FileSystem) doubt(d *node, name string) {
	d.touch()
	if d.names != nil {
		s.know(d, &known{name: name})
		d.names.unlist()
	}
}

// unlist forgets the order of the entries. The caller holds mu.
func (c *names) unlist() { c.listing, c.order = nil, nil }

// removed records that the client has removed a name. The caller holds mu.
func (s *FileSystem) removed(d *node, name string) {
	d.touch()
	if c := d.names; c != nil {
		if k := c.known[name]; k != nil { // k stays in known, because the listing refers to k too
			s.dropContent(k)
			k.absent, k.until = true, s.deadline()
			return
		}
	}
	s.remember(d, name, nil, s.tick, s.deadline())
}

// trimNames drops the cached names of the directories that were filled the longest time ago, except
// those of d. The caller holds mu.
func (s *FileSystem) trimNames(d *node) {
	for s.names > s.mostCached && s.cached.Len() > 1 {
		oldest := s.cached.Back().Value.(*node)
		if oldest == d {
			s.cached.MoveToFront(d.names.lru)
			continue
		}
		s.dropNames(oldest)
	}
	if s.names > 2*s.mostCached {
		s.dropNames(d)
	}
}

// dropNames drops all cached names of a directory. The caller holds mu.
func (s *FileSystem) dropNames(d *node) {
	if c := d.names; c != nil {
		s.names -= len(c.known)
		for _, k := range c.known {
			s.dropContent(k)
		}
		s.cached.Remove(c.lru)
		d.names = nil
	}
}

// wantsListing reports whether a directory should be listed because of an unknown name. It returns true from the
// second unknown name on.
func (s *FileSystem) wantsListing(d *node) bool {
	if s.valid == 0 || !s.conn.loam {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.cache(d)
	c.misses++
	return c.misses > 1 && !c.large
}

// listBytes is the size of a reply to a listing.
const listBytes = 256 << 10

// fill lists a directory and caches all its names. If another goroutine is doing so already, fill
// waits for it.
func (s *FileSystem) fill(d *node) error {
	s.mu.Lock()
	if other := d.filling; other != nil {
		s.mu.Unlock()
		<-other
		return nil
	}
	d.filling = make(chan struct{}) // closed here; others wait for it
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(d.filling)
		d.filling = nil
	}()
	began, until := s.begin()
	all, ascending, err := s.readNames(d, began, until)
	byName := make(map[string]*known, len(all))
	dirs := 0
	for _, k := range all {
		byName[k.name] = k
		if k.attr.Mode.Type() == fs.Dir {
			dirs++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == errLarge:
		s.cache(d).large = true
		return nil
	case err != nil:
		return err
	case d.changed > began || d.gone:
		return nil
	}
	old := s.cache(d)
	s.dropNames(d)
	c := s.cache(d)
	c.known, c.dirs = byName, dirs
	c.complete, c.until = true, until
	c.opened, c.walked, c.reading = old.opened, old.walked, old.reading
	c.byName, c.lastDir = old.byName, old.lastDir
	c.ascending = ascending
	if c.listing = all; all == nil {
		c.listing = []*known{}
	}
	s.names += len(c.known)
	s.trimNames(d)
	return nil
}

// errLarge is returned by readNames for a directory with more than half as many names as are kept.
var errLarge = errors.New("ninep: the directory has too many names to keep")

// readNames reads all names of a directory. A directory without a FID is addressed by its parent
// and its name.
func (s *FileSystem) readNames(d *node, began uint64, until instant) (all []*known, ascending bool, err error) {
	m := List{Count: listBytes}
	var dir held
	defer func() { dir.release() }()
	s.mu.Lock()
	if up := d.dir; d.fid == 0 && up != nil && up.fid != 0 && !d.gone {
		m.Name, dir = d.name, s.pin(up)
		s.mu.Unlock()
	} else {
		s.mu.Unlock()
		if dir, err = s.dirFID(d); err != nil {
			return nil, false, err
		}
	}
	m.FID = dir.fid
	ascending = true
	for {
		entries, of, end, err := s.list(m)
		if err != nil {
			return nil, false, err
		}
		if m.Name != "" && keyOf(of) != d.key {
			return nil, false, linux.ENOENT
		}
		all = slices.Grow(all, len(entries))
		for i := range entries {
			k := &entries[i]
			k.began, k.until = began, until
			ascending = ascending && k.next > m.Offset
			m.Offset = k.next
			all = append(all, k)
		}
		switch {
		case end:
			return all, ascending, nil
		case len(all) > s.mostCached/2 || len(entries) == 0:
			return nil, false, errLarge
		}
	}
}

// Read implements fs.Directory.
func (d directory) Read(cursor uint64, yield func(fs.Entry) bool) error {
	s := d.s
	for filled := false; ; filled = true {
		listing, ascending := s.listingOf(d.node)
		if at, ok := position(listing, ascending, cursor); ok {
			if cursor == 0 {
				s.continueAhead(d.node)
			}
			return readFrom(s, listing[at:], yield)
		}
		if filled || s.valid == 0 || !s.conn.loam || s.tooLarge(d.node) {
			break
		}
		if err := s.fill(d.node); err != nil {
			return err
		}
		s.walkAhead(d.node)
	}
	dir, err := s.dirFID(d.node)
	if err != nil {
		return err
	}
	defer dir.release()
	return s.stream(dir.fid, cursor, yield)
}

// listingOf returns the cached listing of a directory, or nil if it is not valid.
func (s *FileSystem) listingOf(d *node) (listing []*known, ascending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := d.names; c != nil && c.complete && s.now().Before(c.until) {
		return c.listing, c.ascending
	}
	return nil, false
}

func (s *FileSystem) tooLarge(d *node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.names != nil && d.names.large
}

// position returns the index of the first entry behind a cursor. Cursors are offsets of the server, so that a
// listing can be continued when it was read again. ok is false without a listing, and if the cursor is not
// in it: the server must be asked.
func position(listing []*known, ascending bool, cursor uint64) (at int, ok bool) {
	switch {
	case listing == nil:
		return 0, false
	case cursor == 0:
		return 0, true
	case !ascending:
		at = slices.IndexFunc(listing, func(k *known) bool { return k.next == cursor })
		return at + 1, at >= 0
	}
	at, _ = slices.BinarySearchFunc(listing, cursor, func(k *known, c uint64) int {
		if k.next <= c {
			return -1
		}
		return 1
	})
	return at, true
}

// readFrom yields entries of a listing.
func readFrom(s *FileSystem, listing []*known, yield func(fs.Entry) bool) error {
	for _, k := range listing {
		s.mu.Lock()
		absent, e := k.absent, k.entry()
		s.mu.Unlock()
		if !absent && !yield(e) {
			return nil
		}
	}
	return nil
}

func (k *known) entry() fs.Entry {
	return fs.Entry{Name: k.name, Inode: k.attr.Inode, Type: k.attr.Mode.Type(), Cursor: k.next}
}

// streamBytes is the size of a reply for a part of a listing that is not kept.
const streamBytes = 16 << 10

// stream reads a listing from the server and yields the entries behind a cursor. It caches none of them.
func (s *FileSystem) stream(fid uint32, cursor uint64, yield func(fs.Entry) bool) error {
	for {
		entries, end, err := s.entries(fid, cursor)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !yield(e) {
				return nil
			}
			cursor = e.Cursor
		}
		if end || len(entries) == 0 {
			return nil
		}
	}
}
