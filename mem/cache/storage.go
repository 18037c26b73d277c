package cache

import (
	"sync"

	"loam/mem"
)

// Files on storage whose file system passes its own accesses through the pages (fs.Pages). Storage is changed by write(2)
// at once, so a clean page equals storage at all times. Each method that changes storage holds File.writer: a write-back
// neither overwrites newer content with older, nor extends a file that has just become shorter.

// tmp has buffers of a page for refresh.
var tmp = sync.Pool{New: func() any { return new([mem.PageSize]byte) }}

// Read reads from pages that differ from storage, and by read what these do not cover. read has the meaning of
// fs.Handle.ReadAt.
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

// differs reports whether a page differs from storage.
func (f *File) differs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsaved > 0
}

// piece returns how many of the n bytes at an offset can be read from one source. The source is the page of the returned
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

// Write calls write, which writes n bytes of p to storage, up to the offset end, and copies them into present pages.
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

// zero clears the page in which the file ends, behind the end: stores through mappings can have changed it, and it
// becomes visible when the file grows. Storage has zeros there.
func (f *File) zero(size int64) {
	if size%mem.PageSize != 0 {
		f.alter(uint64(size)>>mem.PageShift, func(page []byte) { clear(page[size%mem.PageSize:]) })
	}
}

// alter changes a page if it is present, without making it dirty: storage has the same content already.
func (f *File) alter(index uint64, change func(page []byte)) {
	if e := f.present(index); e != nil {
		change(f.cache.memory.Bytes(e.page))
		f.unhold(e)
	}
}

// present returns a page with a reference if it is present. It waits while the page is being loaded: the loader may have
// read storage before the change.
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

// Resize calls resize, which sets the size on storage. Pages beyond the end leave all mappings.
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

// Rewrite calls change, which changes the content in [from, to) on storage and returns the new size of the file. Changed
// pages of the range are lost, unless flush is set: then they are written back before. If change returns an error, the
// pages are read again, too: part of the change can have been done.
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

// refresh reads part of a page from storage again, if the page is present. Stores into the rest of it are kept. If storage
// cannot be read, the part becomes zeros.
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

// Flush writes changed pages back. The error of an earlier write-back is returned once.
func (f *File) Flush() error {
	f.writeBack(0, ^uint64(0))
	return f.failure()
}

// Renew drops all pages that equal storage, and sets the size: others have changed the file. Mappings read it again.
func (f *File) Renew(size int64) {
	f.writer.Lock()
	defer f.writer.Unlock()
	f.setSize(size)
	f.discardIf(0, ^uint64(0), func(e *entry) bool { return !e.dirty && !e.writing || e.index >= f.end() })
}
