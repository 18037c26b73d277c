package task

import (
	"io"
	"slices"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/mem/cache"
	"loam/posix"
)

// files holds the pages of files that processes map or execute. The content of a file of the tree in memory (fs/memfs)
// is a cache.File itself: read, write and mmap see the same pages.
//
// Other file systems keep contents of their own. There a file has one cache.File as long as its content is
// unchanged, so that processes share pages. A page that is mapped is a copy, read at the first access; a
// changed page of a shared mapping is written back by msync(2), at the end of a process, and by age. Writes by write(2)
// are seen by mappings that are made after them. CAVEATS.md says so.
type files struct {
	cache *cache.Cache

	mu    sync.Mutex
	known map[fs.Node]*mappedFile
	old   []*mappedFile // with an earlier content, or of a file that has been dropped from known
	added int           // calls of object since the last release
}

// mappedFile is a file that can be mapped. own is set for a content that is no cache.File itself; modify and size are
// then those at which its pages were read.
type mappedFile struct {
	*cache.File
	handle fs.Handle
	own    bool
	modify fs.Time
	size   int64
	held   int // calls that are about to map it; guarded by files.mu
}

func newFiles(c *cache.Cache) *files { return &files{cache: c, known: map[fs.Node]*mappedFile{}} }

// pager reads and writes pages of a file of the tree.
type pager struct{ handle fs.Handle }

// ReadPage implements cache.Pager.
func (p pager) ReadPage(index uint64, page []byte) error {
	for done := 0; done < len(page); {
		n, err := p.handle.ReadAt(page[done:], int64(index)<<mem.PageShift+int64(done))
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
func (p pager) WritePages(first uint64, pages [][]byte, size int64) error {
	for i, page := range pages {
		at := int64(first+uint64(i)) << mem.PageShift
		if at >= size {
			break
		}
		if _, err := p.handle.WriteAt(page[:min(int64(len(page)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// releaseEvery is the number of calls of object after which files that have been removed are looked for.
const releaseEvery = 64

// mostKnown bounds the files whose pages are kept without a mapping.
const mostKnown = 4096

// object returns the pages of a file that is open for mapping. The caller maps them, and then calls unhold.
func (s *files) object(f posix.Mapped) *mappedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.added++; s.added >= releaseEvery {
		s.releaseUnused()
	}
	if m := s.known[f.Node]; m != nil && (!m.own || m.modify == f.Attr.Modify && m.size == f.Attr.Size) {
		f.Handle.Close()
		m.held++
		return m
	}
	if m := s.known[f.Node]; m != nil {
		s.old = append(s.old, m)
	} else if len(s.known) >= mostKnown {
		for node, m := range s.known {
			delete(s.known, node)
			s.old = append(s.old, m)
		}
	}
	label := mem.Label{Path: f.Path, Inode: f.Attr.Inode, Major: f.Device.Major, Minor: f.Device.Minor}
	m := &mappedFile{File: contentOf(f.Handle), handle: f.Handle, modify: f.Attr.Modify, size: f.Attr.Size, held: 1}
	if m.own = m.File == nil; m.own {
		m.File = s.cache.NewFile(pager{f.Handle}, f.Attr.Size, label)
	}
	m.SetLabel(label)
	s.known[f.Node] = m
	return m
}

// contentOf returns the content of a file that has its content in a page cache, or nil.
func contentOf(h fs.Handle) *cache.File {
	if p, ok := h.(fs.Paged); ok {
		f, _ := p.Content().(*cache.File)
		return f
	}
	return nil
}

// NewContent returns a content for a file in memory (fs.Contents).
func (s *System) NewContent(base []byte, charge func(pages int64) error) fs.Content {
	return s.files.cache.NewMemory(base, charge)
}

// unhold ends calls of object.
func (s *files) unhold(all ...*mappedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		m.held--
	}
}

// release frees the pages and handles of files that cannot be mapped any more, once no process maps them: files with an
// earlier content, and those without a name.
func (s *files) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseUnused()
}

// releaseUnused is release for a caller that holds mu.
func (s *files) releaseUnused() {
	s.added = 0
	for node, m := range s.known {
		if node.Attr().Links == 0 {
			delete(s.known, node)
			s.old = append(s.old, m)
		}
	}
	s.old = slices.DeleteFunc(s.old, func(m *mappedFile) bool {
		if m.held > 0 || m.Mapped() {
			return false
		}
		if m.own {
			m.Drop()
		}
		m.handle.Close()
		return true
	})
}

// request completes a request of mmap(2) for a descriptor, and returns the file for unhold. Errors: EBADF, EACCES, ENODEV.
func (s *files) request(q *mem.Request, p *posix.Process, fd int) (*mappedFile, linux.Errno) {
	f, errno := p.ForMapping(fd)
	if errno != 0 {
		return nil, errno
	}
	q.Unreadable = !f.Flags.MayRead()
	if !f.Flags.MayWrite() {
		q.Deny = mem.MayNotWrite
	}
	m := s.object(f)
	q.Object = m.File
	return m, 0
}

// flush writes all changed pages back, and releases files that are not needed any more. It runs at the end of a process.
func (s *files) flush() {
	defer s.release()
	if _, dirty := s.cache.Pages(); dirty > 0 {
		const later = time.Hour // more than the age at which a page is written back
		s.cache.Step(time.Now().Add(later))
		s.cache.Step(time.Now())
	}
}
