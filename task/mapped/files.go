// Package mapped keeps the pages of files that processes map or execute, and pairs them with the page cache.
package mapped

import (
	"fmt"
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
	cache  *cache.Cache
	memory mem.Memory

	mu    sync.Mutex
	known map[fs.Node]*File
	old   []*File // files whose content was replaced, or that were removed from known
	added int     // number of calls of Object since the last release
}

// File is a file that can be mapped. own is set if the pages belong to this File; modify and size are then the attributes at
// the time when the pages were read. Files.mu guards all fields except the embedded File and the pager.
type File struct {
	*cache.File
	node   fs.Node
	pager  *pager // reads and writes the pages if own is set
	handle fs.Handle
	more   []fs.Handle // earlier handles of the file
	own    bool
	stored fs.Stored // handle as an fs.Stored, if the file system can share its pages; otherwise nil
	writes bool      // handle is open for writing
	modify fs.Time
	size   int64
	held   int // number of calls that are about to map the file, so that it must not be released
}

// New returns the Files whose pages are in the page cache c. Rings of packet sockets get pages of m.
func New(c *cache.Cache, m mem.Memory) *Files {
	return &Files{cache: c, memory: m, known: map[fs.Node]*File{}}
}

// pager reads and writes pages of a file through a handle of its file system.
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
	if len(pages) > 1 { // a single write for all pages, so that the file system makes one change
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

// releaseEvery is the number of calls of Object between two searches for files that can be released.
const releaseEvery = 64

// mostKnown is the maximum number of files whose pages are kept although no process maps them.
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
			m.Renew(f.Node.Attr().Size) // the size may have changed since f.Attr was read; later changes are reported to m
		}
	}
	m.SetLabel(label)
	s.known[f.Node] = m
	return m
}

// hold keeps the content of the file, which is a file in memory, in the page cache until it is released. It returns false if
// the content is not in the page cache any more: it leaves the cache when the program in ring 0 maps the file.
func (m *File) hold() bool { return m.own || m.File.Hold() }

// same reports whether m has the content of the open file f.
func (m *File) same(f posix.Mapped) bool {
	return !m.own || m.stored != nil || m.modify == f.Attr.Modify && m.size == f.Attr.Size
}

// join uses the handle of a file that was opened again for m, if this handle permits writing and the present one does not.
// If other programs have changed the file, its pages are read again. The caller holds Files.mu.
func (m *File) join(f posix.Mapped) {
	if m.stored != nil && m.stored.Foreign() && (m.modify != f.Attr.Modify || m.size != f.Attr.Size) {
		m.modify, m.size = f.Attr.Modify, f.Attr.Size
		m.Renew(f.Attr.Size)
	}
	if !m.own || m.writes || !f.Flags.MayWrite() {
		f.Handle.Close()
		return
	}
	m.more = append(m.more, m.handle) // pages may still be read through the old handle
	m.handle, m.writes = f.Handle, true
	m.stored, _ = f.Handle.(fs.Stored)
	m.pager.handle.Store(&f.Handle)
}

// close releases the pages and the handles. If the file still has a name, its changed pages are first written
// back.
func (m *File) close() {
	if m.own {
		if m.node.Attr().Links > 0 {
			m.Flush() // there is no caller to report an error to
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

// contentOf returns the cached pages that are the content of a file in memory, or nil for a file of another
// file system.
func contentOf(h fs.Handle) *cache.File {
	if p, ok := h.(fs.Paged); ok {
		f, _ := p.Content().(*cache.File)
		return f
	}
	return nil
}

// Unhold allows the release of files that Object has returned. The caller has mapped them, or does not need
// them any more.
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
		if node.Attr().Links == 0 && !(m.stored != nil && inUse) { // a file on storage that is in use keeps its File, even without a name
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

// Request sets the fields of q, a request of mmap(2), that depend on the file or the packet socket open at fd. The caller
// maps the file, and then calls release. Errors: EBADF, EACCES, ENODEV; EINVAL and ENOMEM for a socket.
func (s *Files) Request(q *mem.Request, p *posix.Process, fd int) (release func(), errno linux.Errno) {
	if r, inode, errno := p.RingAt(fd, int(q.Flags), int64(q.Offset)); errno != linux.ENODEV {
		if errno != 0 {
			return nil, errno
		}
		const socketDevice = 8 // minor number of the file system of sockets
		return s.requestRing(q, r, mem.Label{Path: fmt.Sprintf("socket:[%d]", inode), Inode: inode, Minor: socketDevice})
	}
	f, errno := p.ForMapping(fd)
	if errno != 0 {
		return nil, errno
	}
	q.Unreadable = !f.Flags.MayRead()
	if !f.Flags.MayWrite() {
		q.Deny = mem.MayNotWrite
	}
	if f.NoExec {
		q.Deny |= mem.MayNotExec
	}
	if f.Node == nil { // /dev/zero is mapped as anonymous memory
		q.Offset = 0
		return func() {}, 0
	}
	m := s.Object(f)
	if n, ok := f.Node.(fs.Sealable); ok { // after Object: as long as the file is held, AddSeals does not forbid to write
		q.Sealed = n.Seals()&(fs.SealWrite|fs.SealFutureWrite) != 0
	}
	q.Object = m.File
	return func() { s.Unhold(m) }, 0
}

// Flush writes all changed pages back, and releases unused files. It runs at the end of a process.
func (s *Files) Flush() {
	defer s.release()
	if _, dirty := s.cache.Pages(); dirty > 0 {
		const later = time.Hour // a time that makes all pages older than the age at which they are written back
		s.cache.Step(time.Now().Add(later))
		s.cache.Step(time.Now())
	}
}

// Drop releases all pages without writing them back. No process exists any more.
func (s *Files) Drop() {
	for _, f := range s.known {
		f.Drop()
	}
}
