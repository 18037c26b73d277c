package ninep

import (
	"loam/fs"
)

// Content of small files (mode Loose). When a second small file of a directory is opened for reading, the client
// fetches it together with the next ones of the listing.

// content is the complete content of a file.
type content struct {
	data  []byte
	until instant // valid until then
}

// Sizes of a fetch in bytes, and its number of files.
const (
	fetchMost  = 16 << 10 // maximum for one file
	fetchBytes = 256 << 10
	fetchFiles = 64
)

// known returns the cached content of the file, if it is valid.
func (h *handle) known() ([]byte, bool) {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	c := h.cached
	if c == nil {
		return nil, false
	}
	if h.fid == 0 && h.gone || s.now().Before(c.until) {
		return c.data, true
	}
	h.cached = nil
	return nil, false
}

// forgetContent drops the cached content of a file that changes. The caller holds mu.
func (n *node) forgetContent() {
	if k := n.entry(); k != nil {
		n.s.dropContent(k)
	}
	for _, h := range n.handles {
		h.cached = nil
	}
}

// dropContent drops the cached content at a name. The caller holds mu.
func (s *FileSystem) dropContent(k *known) {
	if k.content != nil {
		s.content -= len(k.content.data)
		k.content = nil
	}
}

// entry returns the cached result for the name at which the file was found, if it still is this
// file. The caller holds mu.
func (n *node) entry() *known {
	if n.gone || n.dir == nil || n.dir.names == nil {
		return nil
	}
	if k := n.dir.names.known[n.name]; k != nil && !k.absent && keyOf(k.attr.QID) == n.key {
		return k
	}
	return nil
}

// takeContent opens h without the server if the content is cached, or can be fetched together with
// the content of other files.
func (s *FileSystem) takeContent(h *handle) bool {
	if s.valid == 0 || !s.conn.loam {
		return false
	}
	if h.takeKnown() {
		s.fetchAhead(h.node)
		return true
	}
	b, wait := s.following(h.node, true)
	if wait != nil {
		<-wait
		if h.takeKnown() {
			return true
		}
		b, _ = s.following(h.node, true)
	}
	return len(b.files) > 0 && s.fetch(b) == nil && h.takeKnown()
}

// batch is a set of files whose content is fetched. While it is fetched, names.fetches is set.
type batch struct {
	dir   *node
	names *names // cached names of dir
	files []string
}

// fetchAhead starts to fetch the next contents of a directory in which a file was just opened, if
// few cached ones are left.
func (s *FileSystem) fetchAhead(n *node) {
	s.mu.Lock()
	if k := n.entry(); k == nil || n.dir.names.fetches != nil {
		s.mu.Unlock()
		return
	}
	c := n.dir.names
	left := 0
	for i := c.find(n.name); i >= 0 && i < len(c.listing) && left < fetchFiles/2; i++ {
		if c.listing[i].content == nil && c.listing[i].wanted() {
			break
		}
		left++
	}
	s.mu.Unlock()
	if left >= fetchFiles/2 {
		return
	}
	if b, _ := s.following(n, false); len(b.files) > 0 {
		if !s.conn.beside(func() { s.fetch(b) }) {
			s.fetch(b) // fetch ends the batch, also on errors
		}
	}
}

// takeKnown opens h if the content of the file is cached.
func (h *handle) takeKnown() bool {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k := h.node.entry()
	if k == nil {
		return false
	}
	k.read = true
	if k.content == nil {
		return false
	}
	c := k.content
	s.dropContent(k) // most files are read once
	if !s.now().Before(c.until) {
		return false
	}
	h.cached = c
	h.node.handles = append(h.node.handles, h)
	return true
}

// following returns small files of n's directory whose content is to be fetched: the files behind n in the listing,
// which is treated as a ring, and before them n itself if first is set. It returns none if n is the first file that
// is read in the directory. If a fetch of the directory is running, wait is closed when that has ended.
func (s *FileSystem) following(n *node, first bool) (b batch, wait <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.gone || n.dir == nil || n.dir.names == nil {
		return b, nil
	}
	c := n.dir.names
	if c.fetches != nil {
		return b, c.fetches
	}
	at := c.find(n.name)
	if at < 0 || !s.now().Before(c.until) {
		return b, nil
	}
	c.readAt = at + 1
	if first {
		c.opened++
		if up := n.dir.dir; up != nil && up.names != nil {
			up.names.reading = true
			if top := up.dir; top != nil && top.names != nil {
				top.names.reading = true
			}
		}
		if c.opened < 2 || !c.listing[at].small() {
			return b, nil
		}
	}
	return s.batch(n.dir, at, first), nil
}

// batch returns files of a directory to be fetched, from an index of the listing on. The caller holds mu.
func (s *FileSystem) batch(d *node, at int, first bool) batch {
	b := batch{dir: d, names: d.names}
	size := 0
	for i := range b.names.listing {
		k := b.names.listing[(at+i)%len(b.names.listing)]
		if !(first && i == 0) && (!k.wanted() || k.content != nil) {
			continue
		}
		size += int(k.attr.Size)
		if len(b.files) > 0 && (size > fetchBytes || len(b.files) == fetchFiles || s.content+size > mostContent) {
			break
		}
		b.files = append(b.files, k.name)
	}
	if len(b.files) > 0 {
		b.names.fetches = make(chan struct{}) // closed by fetch; others wait for it
	}
	return b
}

// wanted reports whether to fetch the content of a file before it is requested.
func (k *known) wanted() bool { return k.small() && !k.absent && !k.stale && !k.read }

// small reports whether the content of a file may be fetched. A file with several names may not,
// because it can change by another name.
func (k *known) small() bool {
	return fs.Mode(k.attr.Mode).Type() == fs.Regular && k.attr.Size <= fetchMost && k.attr.Links == 1
}

// find returns the index of a name in the listing, or -1. Files are mostly read in the order of the listing, or of
// their names.
func (c *names) find(name string) int {
	for i := c.readAt; i < min(len(c.listing), c.readAt+fetchFiles); i++ {
		if c.listing[i].name == name {
			return i
		}
	}
	for i, k := range c.listing {
		if k.name == name {
			return i
		}
	}
	return -1
}

// fetch fetches the content of files.
func (s *FileSystem) fetch(b batch) error {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(b.names.fetches)
		b.names.fetches = nil
	}()
	fid, release, err := s.dirFID(b.dir)
	if err != nil {
		return err
	}
	defer release()
	began, until := s.begin()
	var data Data
	const room = 256 // for attributes and lengths
	m := Fetch{fid, fetchMost, fetchBytes + fetchFiles*room, b.files}
	if err := s.conn.call(TypeFetch, &m, &data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := data.Data
	for _, name := range b.files {
		if len(rest) == 0 {
			break
		}
		var c Content
		if rest, err = c.Next(rest); err != nil {
			return err
		}
		if c.Errno == 0 && b.dir.changed <= began && uint64(len(c.Data)) == c.Attr.Size {
			s.keepContent(b.dir, name, &c, began, until)
		}
	}
	return nil
}

// keepContent stores the content of a file. The caller holds mu.
func (s *FileSystem) keepContent(d *node, name string, c *Content, began uint64, until instant) {
	if n := d.kid(name); n != nil {
		if n.changed > began || n.key != keyOf(c.Attr.QID) {
			return
		}
		n.learn(&c.Attr, began, until)
	}
	if d.names == nil {
		return
	}
	if k := d.names.known[name]; k != nil && !k.absent && !k.stale && keyOf(k.attr.QID) == keyOf(c.Attr.QID) {
		s.dropContent(k)
		k.attr, k.began, k.until = c.Attr, began, until
		k.content = &content{c.Data, until}
		s.content += len(c.Data)
	}
}

// Bounds for listing directories in advance.
const (
	aheadDirs    = 64
	aheadBatches = 4 // batches of files that are fetched in advance from one directory
)

// walkAhead lists the other subdirectories of d's parent if d is the second one that is listed,
// because the program probably walks the tree. It also fetches files if the program reads files.
func (s *FileSystem) walkAhead(d *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	up := d.dir
	if up == nil || up.names == nil || len(up.names.listing) == 0 {
		return
	}
	c := up.names
	c.walked++
	deep := up.dir != nil && up.dir.names != nil && up.dir.names.walked > 1
	if c.walked < 2 && !deep || c.ahead {
		return
	}
	if deep && up.dir.names.reading {
		c.reading = true
	}
	c.ahead = s.conn.beside(func() {
		s.listAhead(up, c)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.ahead = false
	})
}

// listAhead lists subdirectories of a directory with cached names c.
func (s *FileSystem) listAhead(up *node, c *names) {
	s.mu.Lock()
	listing := c.listing
	s.mu.Unlock()
	done := 0
	for _, k := range listing {
		s.mu.Lock()
		var d *node
		now := s.now()
		if fs.Mode(k.attr.Mode).Type() == fs.Dir && !k.absent && now.Before(k.until) {
			if d = up.kid(k.name); d == nil {
				d = s.nodeOf(up, k.name, &k.attr)
			}
		}
		full := s.names > s.mostCached/2 || up.names != c || done == aheadDirs
		fresh := d != nil && d.names != nil && d.names.complete && now.Before(d.names.until)
		s.mu.Unlock()
		if full {
			return
		}
		if d == nil || fresh {
			continue
		}
		if s.fill(d) != nil {
			return
		}
		done++
		for b := s.nextBatch(c, d); len(b.files) > 0; b = s.nextBatch(c, d) {
			if s.fetch(b) != nil {
				return
			}
		}
	}
}

// nextBatch returns files of a directory whose content is not known, if files of its siblings are read.
func (s *FileSystem) nextBatch(up *names, d *node) batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := d.names
	if !up.reading || c == nil || c.fetches != nil || c.batches == aheadBatches || s.content > mostContent/2 {
		return batch{}
	}
	c.batches++
	c.opened = max(c.opened, 1)
	return s.batch(d, 0, false)
}
