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

// entry returns the cached result for the name at which the file was found, if the name still refers to
// this file. The caller holds mu.
func (n *node) entry() *known {
	if n.gone || n.dir == nil || n.dir.names == nil {
		return nil
	}
	if k := n.dir.names.known[n.name]; k != nil && !k.absent && k.attr.key == n.key {
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

// reads records that the program reads files below the two directories above the file's own. The caller holds mu.
func (n *node) reads() {
	up := n.dir
	for range 2 {
		if up = up.dir; up == nil || up.names == nil {
			return
		}
		up.names.reading = true
	}
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
	h.node.reads()
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
		n.reads()
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
	return k.attr.Mode.Type() == fs.Regular && 0 <= k.attr.Size && k.attr.Size <= fetchMost && k.attr.Links == 1
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
	dir, err := s.dirFID(b.dir)
	if err != nil {
		return err
	}
	defer dir.release()
	began, until := s.begin()
	var data Data
	const room = 256 // bytes of a reply for the attributes and lengths of one file
	m := Fetch{dir.fid, fetchMost, fetchBytes + fetchFiles*room, b.files}
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
	r := recordOf(&c.Attr)
	if n := d.kid(name); n != nil {
		if n.changed > began || n.key != r.key {
			return
		}
		n.learn(&r, began, until)
	}
	if d.names == nil {
		return
	}
	if k := d.names.known[name]; k != nil && !k.absent && !k.stale && k.attr.key == r.key {
		s.dropContent(k)
		k.attr, k.began, k.until = r, began, until
		k.content = &content{c.Data, until}
		s.content += len(c.Data)
	}
}
