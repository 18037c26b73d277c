package task

import (
	"io"
	"sync"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/mem/cache"
	"loam/posix"
)

// files holds the pages of files that processes map or execute. A file has one cache.File as long as its content is
// unchanged, so that processes share pages.
//
// The file system of Loam keeps contents of its own. A page that is mapped is a copy, read at the first access; a
// changed page of a shared mapping is written back by msync(2), at the end of a process, and by age. Writes by write(2)
// are seen by mappings that are made after them. CAVEATS.md says so.
type files struct {
	cache *cache.Cache

	mu    sync.Mutex
	known map[fs.Node]*mappedFile
}

// mappedFile is a file with the time and size at which its pages were read.
type mappedFile struct {
	*cache.File
	modify fs.Time
	size   int64
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

// mostKnown bounds the files whose pages are kept when nobody maps them.
const mostKnown = 4096

// object returns the pages of a file that is open for mapping.
func (s *files) object(f posix.Mapped) *cache.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.known[f.Node]; m != nil && m.modify == f.Attr.Modify && m.size == f.Attr.Size {
		f.Handle.Close()
		return m.File
	}
	if len(s.known) >= mostKnown {
		clear(s.known) // mapped pages stay with their mappings
	}
	label := mem.Label{Path: f.Path, Inode: f.Attr.Inode}
	m := &mappedFile{s.cache.NewFile(pager{f.Handle}, f.Attr.Size, label), f.Attr.Modify, f.Attr.Size}
	s.known[f.Node] = m
	return m.File
}

// request completes a request of mmap(2) for a descriptor. Errors: EBADF, EACCES, ENODEV.
func (s *files) request(q *mem.Request, p *posix.Process, fd int) linux.Errno {
	f, errno := p.ForMapping(fd)
	if errno != 0 {
		return errno
	}
	q.Unreadable = !f.Flags.MayRead()
	if !f.Flags.MayWrite() {
		q.Deny = mem.MayNotWrite
	}
	q.Object = s.object(f)
	return 0
}

// flush writes all changed pages back.
func (s *files) flush() {
	if _, dirty := s.cache.Pages(); dirty > 0 {
		const later = time.Hour // more than the age at which a page is written back
		s.cache.Step(time.Now().Add(later))
		s.cache.Step(time.Now())
	}
}
