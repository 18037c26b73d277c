package ninep

import (
	"time"

	"loam/fs"
)

// Content of small files (mode Loose). When a second small file of a directory is opened for reading, the client
// fetches it together with those that follow it in the listing.

// content is the content of a file that is known completely.
type content struct {
	data  []byte
	until time.Time // it counts until then
}

// Sizes of a fetch in bytes, and its number of files.
const (
	fetchMost  = 16 << 10 // of one file
	fetchBytes = 256 << 10
	fetchFiles = 64
)

// known returns the content if the handle knows it and it counts.
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

// forgetContent forgets the content of a file that changes. The caller holds mu.
func (n *node) forgetContent() {
	if k := n.entry(); k != nil {
		n.s.dropContent(k)
	}
	for _, h := range n.handles {
		h.cached = nil
	}
}

// dropContent forgets the content of a cached name. The caller holds mu.
func (s *FileSystem) dropContent(k *known) {
	if k.content != nil {
		s.content -= len(k.content.data)
		k.content = nil
	}
}

// entry returns what is known of the name at which the file was found, if it is this file. The caller holds mu.
func (n *node) entry() *known {
	if n.gone || n.dir == nil || n.dir.names == nil {
		return nil
	}
	if k := n.dir.names.known[n.name]; k != nil && !k.absent && keyOf(k.attr.QID) == n.key {
		return k
	}
	return nil
}

// takeContent opens h without the server if the content is known, or can be fetched with that of others.
func (s *FileSystem) takeContent(h *handle) bool {
	if s.valid == 0 || !s.conn.loam {
		return false
	}
	if h.takeKnown() {
		return true
	}
	dir, names := s.following(h.node)
	if len(names) == 0 || s.fetch(dir, names) != nil {
		return false
	}
	return h.takeKnown()
}

// takeKnown opens h if the content of the file is known.
func (h *handle) takeKnown() bool {
	s := h.s
	s.mu.Lock()
	defer s.mu.Unlock()
	k := h.node.entry()
	if k == nil || k.content == nil {
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

// following returns the names of small files, n first and then those behind it in the listing of its directory. It
// returns none if n is the first file that is read in the directory.
func (s *FileSystem) following(n *node) (dir *node, all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.gone || n.dir == nil || n.dir.names == nil {
		return nil, nil
	}
	c := n.dir.names
	now := s.now()
	at := c.find(n.name)
	if at < 0 || !now.Before(c.until) {
		return nil, nil
	}
	first := c.readAt == 0
	c.readAt = at + 1
	if first || !small(c.listing[at]) {
		return nil, nil
	}
	size := 0
	for _, k := range c.listing[at:] {
		if !small(k) || k.absent || k.stale {
			continue
		}
		size += int(k.attr.Size)
		if len(all) > 0 && (size > fetchBytes || len(all) == fetchFiles || s.content+size > mostContent) {
			break
		}
		all = append(all, k.name)
	}
	return n.dir, all
}

// small reports whether the content of a file is fetched. One with several names can change by another name.
func small(k *known) bool {
	return fs.Mode(k.attr.Mode).Type() == fs.Regular && k.attr.Size <= fetchMost && k.attr.Links == 1
}

// find returns the place of a name in the listing, or -1. Files are mostly read in the order of the listing, or of
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

// fetch stores the content of files in a directory.
func (s *FileSystem) fetch(d *node, names []string) error {
	fid, release, err := s.dirFID(d)
	if err != nil {
		return err
	}
	defer release()
	began, until := s.begin()
	var data Data
	const room = 128 // for attributes and lengths
	m := Fetch{fid, fetchMost, fetchBytes + fetchFiles*2*room, names}
	if err := s.conn.call(TypeFetch, &m, &data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := data.Data
	for _, name := range names {
		if len(rest) == 0 {
			break
		}
		var c Content
		if rest, err = c.Next(rest); err != nil {
			return err
		}
		if c.Errno != 0 || d.changed > began || uint64(len(c.Data)) != c.Attr.Size {
			continue
		}
		if n := d.kid(name); n != nil {
			if n.changed > began || n.key != keyOf(c.Attr.QID) {
				continue
			}
			n.learn(&c.Attr, began, until)
		}
		s.remember(d, name, &c.Attr, began, until)
		if d.names != nil && d.names.known[name] != nil {
			d.names.known[name].content = &content{c.Data, until}
			s.content += len(c.Data)
		}
	}
	return nil
}
