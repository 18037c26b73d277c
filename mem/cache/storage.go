package cache

import (
	"sync"

	"loam/mem"
)

// Files on storage whose file system passes its own reads and writes through the pages (fs.Pages). write(2) changes
// storage immediately, so a clean page equals storage at all times. Each method that changes storage holds File.writer.
// So a write-back neither overwrites newer content with older content, nor extends a file that has just been truncated.

// tmp is a pool of buffers, each the size of a page, for refresh.
var tmp = sync.Pool{New: func() any { return new([mem.PageSize]byte) }}

// Read reads content from the pages that differ from storage. For the rest it calls the
// function read, which reads storage and has the meaning of fs.Handle.ReadAt.
func (f *File) Read(p []byte, offset int64, read func(p []byte, offset int64) (int, error)) (int, error) {
	if offset < 0 || !f.differs() {
		return read(p, offset)
	}
	done := 0
	for done < len(p) {
		at := offset + int64(done)
		n, e, size := f.piece(at, len(p)-done)
		if e == nil {
			got, err := read(p[done:done+n], at)
			done += got
			if err != nil && done > 0 {
				err = nil
			}
			if err != nil || got < n {
				return done, err
			}
			continue
		}
		got := copy(p[done:done+n], f.cache.memory.Bytes(e.page)[at%mem.PageSize:][:max(0, min(int64(n), size-at))])
		f.unhold(e)
		done += got
		if got < n {
			break
		}
	}
	return done, nil
}

// differs reports whether some page differs from storage.
func (f *File) differs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved > 0
}

// piece returns how many of the n bytes at offset at come from the same source. The source is the page of the returned
// entry, to which piece takes a reference, or storage if the entry is nil.
func (f *File) piece(at int64, n int) (int, *entry, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	differing := func(i uint64) *entry {
		if e := f.pages[i]; e != nil && (e.dirty || e.writing) {
			return e
		}
		return nil
	}
	i := uint64(at) >> mem.PageShift
	within := int(mem.PageSize - at%mem.PageSize)
	if e := differing(i); e != nil {
		e.used = true
		mem.Retain(f.cache.memory, e.page)
		return min(n, within), e, f.size
	}
	have := within
	for have < n && differing(i+1) == nil {
		i++
		have += mem.PageSize
	}
	return min(n, have), nil, f.size
}

// Write calls the function write, which writes the first n bytes of p to storage and returns the file offset at which
// they end. Write then copies these bytes to the present pages.
func (f *File) Write(p []byte, write func() (n int, end int64, err error)) (n int, end int64, err error) {
	f.writer.Lock()
	defer f.writer.Unlock()
	n, end, err = write()
	if n <= 0 {
		return n, end, err
	}
	from := end - int64(n)
	old := f.Size()
	if end > old {
		f.zero(old)
	}
	for done := 0; done < n; {
		at := from + int64(done)
		part := min(n-done, int(mem.PageSize-at%mem.PageSize))
		f.alter(uint64(at)>>mem.PageShift, func(page []byte) { copy(page[at%mem.PageSize:], p[done:done+part]) })
		done += part
	}
	if end > old {
		f.setSize(end)
	}
	return n, end, err
}

// zero clears the last page beyond the end of the file. Stores through mappings may have changed that part, and it
// would become visible if the file grew. Storage has zeros there.
func (f *File) zero(size int64) {
	if size%mem.PageSize != 0 {
		f.alter(uint64(size)>>mem.PageShift, func(page []byte) { clear(page[size%mem.PageSize:]) })
	}
}

// alter changes the content of a page if the page is present. It does not make the page dirty, because storage already
// has the new content.
func (f *File) alter(index uint64, change func(page []byte)) {
	if e := f.present(index); e != nil {
		change(f.cache.memory.Bytes(e.page))
		f.unhold(e)
	}
}

// present returns a page and takes a reference to it, if the page is present. If the page is being loaded, present
// waits, because the old content may have been read from storage before the caller changed it.
func (f *File) present(index uint64) *entry {
	for {
		f.mu.Lock()
		e := f.pages[index]
		if e == nil || e.loading == nil {
			if e != nil {
				mem.Retain(f.cache.memory, e.page)
			}
			f.mu.Unlock()
			return e
		}
		loading := e.loading
		f.mu.Unlock()
		<-loading
	}
}

func (f *File) setSize(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size = size
}

// Resize calls resize, which sets the size of the file on storage. It removes pages beyond the new end from all
// mappings.
func (f *File) Resize(size int64, resize func() error) error {
	f.writer.Lock()
	defer f.writer.Unlock()
	if err := resize(); err != nil {
		return err
	}
	old := f.Size()
	if size >= old {
		f.zero(old)
		f.setSize(size)
		return nil
	}
	f.setSize(size)
	f.discard(f.end(), ^uint64(0))
	f.zero(size)
	return nil
}

// Rewrite calls the function change, which changes the content of [from, to) on storage and returns the new size of
// the file. Dirty pages in the range lose their content; if flush is set, they are written back first. Rewrite then
// reads the present pages of the range again. It does so even if change returns an error, since a part of the change
// may have been made.
func (f *File) Rewrite(from, to int64, flush bool, change func() (size int64, err error)) error {
	f.writer.Lock()
	defer f.writer.Unlock()
	first, last := uint64(from)>>mem.PageShift, uint64(to)>>mem.PageShift
	if flush {
		if err := f.writeDirty(first, ^uint64(0)); err != nil {
			return err
		}
	}
	size, err := change()
	old := f.Size()
	if size > old {
		f.zero(old)
	}
	f.setSize(size)
	if from%mem.PageSize != 0 {
		f.refresh(first, from, min(to, int64(first+1)<<mem.PageShift))
		first++
	}
	if last >= first && to%mem.PageSize != 0 {
		f.refresh(last, int64(last)<<mem.PageShift, to)
	}
	if first < last {
		f.discard(first, last)
	}
	if size < old {
		f.discard(f.end(), ^uint64(0))
		f.zero(size)
	}
	return err
}

// refresh reads the part [from, to) of a page from storage again, if the page is present. The rest of the page keeps
// its content. If storage cannot be read, the part becomes zeros.
func (f *File) refresh(index uint64, from, to int64) {
	e := f.present(index)
	if e == nil {
		return
	}
	defer f.unhold(e)
	b := tmp.Get().(*[mem.PageSize]byte)
	defer tmp.Put(b)
	if err := f.pager.ReadPage(index, b[:]); err != nil {
		clear(b[:])
	}
	start := int64(index) << mem.PageShift
	copy(f.cache.memory.Bytes(e.page)[from-start:to-start], b[from-start:to-start])
}

// Flush writes dirty pages back. It returns the error of an earlier write-back, once.
func (f *File) Flush() error {
	f.writeBack(0, ^uint64(0))
	return f.failure()
}

// Renew is called after another system has changed the file. It drops all pages that equal storage, so that mappings
// read storage again, and sets the size.
func (f *File) Renew(size int64) {
	f.writer.Lock()
	defer f.writer.Unlock()
	f.setSize(size)
	f.discardIf(0, ^uint64(0), func(e *entry) bool { return !e.dirty && !e.writing || e.index >= f.end() })
}
