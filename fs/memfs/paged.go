package memfs

import (
	"sync/atomic"

	"loam/fs"
)

// Source supplies the contents of files from a page cache, if there is one. The content of a file that is opened
// after Set is in the page cache; content in the Go heap moves there. A Source may serve several file systems.
type Source struct{ contents atomic.Pointer[fs.Contents] }

// Set sets the page cache.
func (s *Source) Set(c fs.Contents) { s.contents.Store(&c) }

// Content implements fs.Paged.
func (h handle) Content() fs.Content {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.paged
}

// enterCache moves the content to the page cache, if there is one, unless a program has mapped the file. If that fails, the
// content stays where it is. The caller holds mu.
func (f *file) enterCache() {
	s := f.system.config.Source
	if s == nil || f.paged != nil || f.mapped.memory != nil {
		return
	}
	contents := s.contents.Load()
	if contents == nil {
		return
	}
	c := (*contents)(f.base, f.system.takePages)
	err := c.Truncate(f.attr.Size)
	for i, leaf := range f.leaves {
		for j, p := range leaf {
			at := int64(i*leafPages+j) * pageSize
			if p != nil && at < f.attr.Size && err == nil {
				_, err = c.WriteAt(p[:min(pageSize, f.attr.Size-at)], at)
			}
		}
	}
	if err != nil {
		c.Drop()
		return
	}
	f.release()
	f.paged = c
}
