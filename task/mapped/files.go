// Package mapped keeps the pages of files that processes map or execute, and pairs them with the page cache.
package mapped

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/mem/cache"
	"loam/posix"
)

// Files holds the pages of files that processes map or execute. The content of a file of the tree in memory (fs/memfs)
// is a cache.File itself. A file on storage (fs.Stored: a disk, a folder of the host) gets a cache.File when it is mapped for
// the first time, and its file system passes read(2) and write(2) through that. In both cases, read, write and mmap
// see the same content. Changed pages are written back by age and pressure, and by msync(2), fsync(2) and sync(2).
//
// Other file systems are read-only, or have no content that a program changes. There a file has one cache.File as
// long as its attributes are unchanged.
type Files struct {
	cache *cache.Cache

	mu    sync.Mutex
	known map[fs.Node]*File
	old   []*File // files with an earlier content, or dropped from known
	added int     // number of calls of Object since the last release
}

// File is a file that can be mapped. own is set for a content that belongs to it; modify and size are
// then those at which its pages were read. Files.mu guards all but the File and the pager.
type File struct {
	*cache.File
	node   fs.Node
	pager  *pager // the pager of own
	handle fs.Handle
	more   []fs.Handle // handles that handle has replaced
	own    bool
	stored fs.Stored // handle as a fs.Stored, if the file can share pages with its file system
	writes bool      // handle permits writing
	modify fs.Time
	size   int64
	held   int // number of calls that are about to map the file
}

// New returns the files whose pages are in a cache.
func New(c *cache.Cache) *Files { return &Files{cache: c, known: map[fs.Node]*File{}} }

// pager reads and writes pages of a file of the tree.
type pager struct{ handle atomic.Pointer[fs.Handle] }

func newPager(h fs.Handle) *pager {
	p := &pager{}
	p.handle.Store(&h)
	return p
}

// ReadPage implements cache.Pager.
func (p *pager) ReadPage(index uint64, page []byte) error {
	h := *p.handle.Load()
	read := h.ReadAt
	if s, ok := h.(fs.Stored); ok {
		read = s.ReadStorage
	}
	for done := 0; done < len(page); {
		n, err := read(page[done:], int64(index)<<mem.PageShift+int64(done))
		if err != nil && err != io.EOF {
			return err
		}
		if n == 0 {
			clear(page[done:])
			break
		}
		done += n
	}
	return nil
}

// WritePages implements cache.Pager.
func (p *pager) WritePages(first uint64, pages [][]byte, size int64) error {
	h := *p.handle.Load()
	write := h.WriteAt
	if s, ok := h.(fs.Stored); ok {
		write = s.WriteStorage
	}
	at := int64(first) << mem.PageShift
	left := min(int64(len(pages))<<mem.PageShift, size-at)
	if left <= 0 {
		return nil
	}
	b := pages[0]
	if len(pages) > 1 { // one write for all pages, so that the file system makes one change
		b = slices.Concat(pages...)
	}
	for b = b[:left]; len(b) > 0; {
		n, err := write(b, at)
		if err == nil && n == 0 {
			err = linux.EIO
		}
		if err != nil {
			return err
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// Sync implements cache.Syncer.
func (p *pager) Sync() error {
	if s, ok := (*p.handle.Load()).(fs.Stored); ok {
		return s.SyncStorage()
	}
	return nil
}

// releaseEvery is the number of calls of Object after which removed files are searched.
const releaseEvery = 64

// mostKnown bounds the files whose pages are kept without a mapping.
const mostKnown = 4096

// Object returns the pages of a file that is open for mapping. The caller maps them, and then calls Unhold.
func (s *Files) Object(f posix.Mapped) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.added++; s.added >= releaseEvery {
		s.releaseUnused()
	}
	if m := s.known[f.Node]; m != nil && m.same(f) && m.hold() {
		m.held++
		m.join(f)
		return m
	}
	if m := s.known[f.Node]; m != nil {
		s.old = append(s.old, m)
	} else if len(s.known) >= mostKnown {
		for node, m := range s.known {
			if m.held == 0 && !m.Mapped() {
				delete(s.known, node)
				m.close()
			}
		}
	}
	label := mem.Label{Path: f.Path, Inode: f.Attr.Inode, Major: f.Device.Major, Minor: f.Device.Minor}
	m := &File{
		File: contentOf(f.Handle), node: f.Node, handle: f.Handle, writes: f.Flags.MayWrite(), modify: f.Attr.Modify, size: f.Attr.Size, held: 1,
	}
	if m.own = m.File == nil || !m.File.Hold(); m.own {
		m.stored, _ = f.Handle.(fs.Stored)
		m.pager = newPager(f.Handle)
		m.File = s.cache.NewFile(m.pager, f.Attr.Size, label)
		if m.stored != nil {
			m.stored.SetPages(m.File)
			m.Renew(f.Node.Attr().Size) // the size may have changed since f.Attr; later changes go through m
		}
	}
	m.SetLabel(label)
	s.known[f.Node] = m
	return m
}

// hold keeps the content of a file in memory in the page cache while the file is held. It returns false if the content
// has left the page cache, because the program in ring 0 maps the file.
func (m *File) hold() bool { return m.own || m.File.Hold() }

// same reports whether m is the content of the open file f.
func (m *File) same(f posix.Mapped) bool {
	return !m.own || m.stored != nil || m.modify == f.Attr.Modify && m.size == f.Attr.Size
}

// join passes the handle of a file that was opened again to m, if it permits writing and the
// present handle does not. A file that other programs have changed is read again. The caller holds
// Files.mu.
func (m *File) join(f posix.Mapped) {
	if m.stored != nil && m.stored.Foreign() && (m.modify != f.Attr.Modify || m.size != f.Attr.Size) {
		m.modify, m.size = f.Attr.Modify, f.Attr.Size
		m.Renew(f.Attr.Size)
	}
	if !m.own || m.writes || !f.Flags.MayWrite() {
		f.Handle.Close()
		return
	}
	m.more = append(m.more, m.handle) // pages may be being read through the old handle
	m.handle, m.writes = f.Handle, true
	m.stored, _ = f.Handle.(fs.Stored)
	m.pager.handle.Store(&f.Handle)
}

// close releases the pages and the handles. Changed pages of a file that has a name are written
// back.
func (m *File) close() {
	if m.own {
		if m.node.Attr().Links > 0 {
			m.Flush() // no caller waits for the error
		}
		if m.stored != nil {
			m.stored.SetPages(nil)
		}
		m.Drop()
	}
	for _, h := range append(m.more, m.handle) {
		h.Close()
	}
}

// contentOf returns the content of a file that has its content in a page cache, or nil.
func contentOf(h fs.Handle) *cache.File {
	if p, ok := h.(fs.Paged); ok {
		f, _ := p.Content().(*cache.File)
		return f
	}
	return nil
}

// Unhold ends earlier calls of Object for these files.
func (s *Files) Unhold(all ...*File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		m.held--
		if !m.own {
			m.File.Unhold()
		}
	}
}

// release frees the pages and handles of files that no process maps and that can no longer be mapped: files whose content was
// replaced, and files without a name.
func (s *Files) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseUnused()
}

// releaseUnused does the work of release. The caller holds mu.
func (s *Files) releaseUnused() {
	s.added = 0
	for node, m := range s.known {
		inUse := m.held > 0 || m.Mapped()
		if node.Attr().Links == 0 && !(m.stored != nil && inUse) { // a file on storage has one File
			delete(s.known, node)
			s.old = append(s.old, m)
		}
	}
	s.old = slices.DeleteFunc(s.old, func(m *File) bool {
		if m.held > 0 || m.Mapped() {
			return false
		}
		m.close()
		return true
	})
}

// Request sets the fields of q, a request of mmap(2), that depend on the file open at fd. It returns the file with a
// reference, which Unhold drops. Errors: EBADF, EACCES, ENODEV.
func (s *Files) Request(q *mem.Request, p *posix.Process, fd int) (*File, linux.Errno) {
	f, errno := p.ForMapping(fd)
	if errno != 0 {
		return nil, errno
	}
	q.Unreadable = !f.Flags.MayRead()
	if !f.Flags.MayWrite() {
		q.Deny = mem.MayNotWrite
	}
	m := s.Object(f)
	q.Object = m.File
	return m, 0
}

// Flush writes all changed pages back, and releases unused files. It runs at the end of a process.
func (s *Files) Flush() {
	defer s.release()
	if _, dirty := s.cache.Pages(); dirty > 0 {
		const later = time.Hour // longer than the age at which a page is written back
		s.cache.Step(time.Now().Add(later))
		s.cache.Step(time.Now())
	}
}

// Drop gives up all pages that are kept, without writing any back. No process is left.
func (s *Files) Drop() {
	for _, f := range s.known {
		f.Drop()
	}
}
