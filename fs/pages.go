package fs

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Pages are the pages of a file on storage that a page cache keeps for mappings (mem/cache.File). While a file has
// Pages, its file system passes each access to the content through them, so that read, write and mmap see the same
// content. Writes go to storage at once; stores into a shared mapping stay in the pages until they are written back.
// Write-back and the methods that change the content exclude each other.
type Pages interface {
	// Read copies content from the changed pages. For the rest it calls read, which reads from storage as
	// Handle.ReadAt does.
	Read(p []byte, offset int64, read func(p []byte, offset int64) (int, error)) (int, error)
	// Write calls write, which writes n bytes of p to storage, up to the offset end, and copies them into present pages.
	Write(p []byte, write func() (n int, end int64, err error)) (n int, end int64, err error)
	// Resize calls resize, which sets the size on storage. Pages beyond the end leave all mappings.
	Resize(size int64, resize func() error) error
	// Rewrite calls change, which changes the content in [from, to) on storage and returns the new size of the file.
	// Changed pages of the range are lost, unless flush is set: then they are written back before.
	Rewrite(from, to int64, flush bool, change func() (size int64, err error)) error
	// Flush writes changed pages back. The error of an earlier write-back is returned once.
	Flush() error
}

// Stored is a Handle of a file on storage that can have Pages. The methods whose names end in Storage bypass them.
type Stored interface {
	Handle
	ReadStorage(p []byte, offset int64) (int, error)
	WriteStorage(p []byte, offset int64) (int, error)
	// SyncStorage makes durable what storage has of the file, as fdatasync(2) does.
	SyncStorage() error
	// SetPages gives pages to a file that has none, or takes away the file's pages if p is nil.
	SetPages(p Pages)
	// Foreign reports whether others than this file system can change the file.
	Foreign() bool
}

// PageTable has the Pages of a file system's files. K identifies a file. The zero value is an empty table.
type PageTable[K comparable] struct {
	count atomic.Int32
	mu    sync.RWMutex // held shared during a change of content, so that none is under way while pages are set
	pages map[K]Pages
}

// Set is Stored.SetPages for a file. It waits for changes that are under way.
func (t *PageTable[K]) Set(file K, p Pages) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == nil {
		delete(t.pages, file)
	} else {
		if t.pages == nil {
			t.pages = map[K]Pages{}
		}
		t.pages[file] = p
	}
	t.count.Store(int32(len(t.pages)))
}

// Get returns the pages of a file, or nil.
func (t *PageTable[K]) Get(file K) Pages {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.pages[file]
}

// Change calls the function change with the pages of a file, or nil. The file neither gets nor loses pages meanwhile.
func (t *PageTable[K]) Change(file K, change func(Pages) error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return change(t.pages[file])
}

// Flush writes the changed pages of all files back. It returns the first error.
func (t *PageTable[K]) Flush() error {
	if t.count.Load() == 0 {
		return nil
	}
	t.mu.RLock()
	all := slices.Collect(maps.Values(t.pages))
	t.mu.RUnlock()
	var first error
	for _, p := range all {
		if err := p.Flush(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Enter begins a change of content, and returns the pages of the file, or nil: see Change. It allocates nothing, for writes.
// The caller calls Leave at the end.
func (t *PageTable[K]) Enter(file K) Pages {
	t.mu.RLock()
	return t.pages[file]
}

// Leave ends a change that Enter has begun.
func (t *PageTable[K]) Leave() { t.mu.RUnlock() }

// Write calls write, which writes n bytes of p up to the offset end, through the pages of a file if it has any.
func (t *PageTable[K]) Write(file K, p []byte, write func() (n int, end int64, err error)) (n int, end int64, err error) {
	pages := t.Enter(file)
	defer t.Leave()
	if pages == nil {
		return write()
	}
	return pages.Write(p, write)
}

// Resize sets the size of a file by resize.
func (t *PageTable[K]) Resize(file K, size int64, resize func() error) error {
	return t.Change(file, func(p Pages) error {
		if p == nil {
			return resize()
		}
		return p.Resize(size, resize)
	})
}

// Allocate changes a file by the function change, which implements fallocate(2). The
// function size returns the size of the file on storage.
func (t *PageTable[K]) Allocate(file K, mode AllocateMode, offset, length int64, change func() error, size func() int64) error {
	return t.Change(file, func(p Pages) error {
		if p == nil {
			return change()
		}
		from, to, flush := offset, offset+length, false
		switch {
		case to < from:
			return change() // fails
		case mode&(CollapseRange|InsertRange) != 0:
			to, flush = endOfFiles, true
		case mode&(PunchHole|ZeroRange) == 0:
			from, to = offset, offset
		}
		return p.Rewrite(from, to, flush, func() (int64, error) {
			err := change()
			return size(), err
		})
	})
}

// endOfFiles is an offset behind the end of every file.
const endOfFiles = 1<<63 - 1
