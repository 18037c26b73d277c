package cache

import (
	"cmp"
	"io"
	"slices"

	"loam/mem"
)

// ReadAt reads from the file's pages. It returns io.EOF at the end of the file.
func (f *File) ReadAt(b []byte, offset int64) (int, error) {
	size := f.Size()
	if offset >= size {
		return 0, io.EOF
	}
	want := int(min(int64(len(b)), size-offset))
	n, err := f.transfer(b[:want], offset, func(piece, page []byte) { copy(piece, page) }, false)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes to the file's pages, and extends the file if necessary. If too many pages are dirty, it first writes
// this file's dirty pages back.
func (f *File) WriteAt(b []byte, offset int64) (int, error) {
	if f.pager != nil && f.cache.crowded() {
		f.writeBack(0, ^uint64(0))
	}
	if size := f.Size(); offset > size {
		if err := f.blank(size); err != nil {
			return 0, err
		}
	}
	return f.transfer(b, offset, func(piece, page []byte) { copy(page, piece) }, true)
}

// transfer copies bytes page by page. It holds a reference to each page while it copies.
func (f *File) transfer(b []byte, offset int64, move func(piece, page []byte), store bool) (done int, err error) {
	for done < len(b) {
		at := offset + int64(done)
		n := min(len(b)-done, int(mem.PageSize-at%mem.PageSize))
		whole := store && (n == mem.PageSize || at-at%mem.PageSize >= f.Size())
		index := uint64(at) >> mem.PageShift
		if !store && f.pager == nil && f.readAbsent(index, b[done:done+n], at) {
			done += n
			continue
		}
		e, err := f.hold(index, !whole)
		if err != nil {
			return done, err
		}
		if store {
			if err := f.storing(e, at+int64(n)); err != nil {
				f.unhold(e)
				return done, err
			}
		}
		move(b[done:done+n], f.cache.memory.Bytes(e.page)[at%mem.PageSize:][:n])
		f.unhold(e)
		done += n
	}
	return done, nil
}

// storing prepares a write that ends at file offset end. It makes the page dirty before the content changes, because
// otherwise a concurrent write-back could miss the change.
func (f *File) storing(e *entry, end int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[e.index] == e {
		if err := f.soil(e); err != nil {
			return err
		}
	}
	f.size = max(f.size, end)
	return nil
}

// Truncate sets the size of the file. It releases pages beyond the end, removes them from mappings, and fills the rest
// of the last page with zeros. The caller must not call WriteAt and Truncate of one file concurrently. The caller has
// already truncated the storage, so the Pager returns zeros beyond the end.
func (f *File) Truncate(size int64) error {
	f.mu.Lock()
	old := f.size
	f.size = size
	end := f.end()
	f.base = f.base[:min(int64(len(f.base)), size)]
	f.mu.Unlock()
	f.discard(end, ^uint64(0))
	return f.blank(min(old, size))
}

// blank fills the last page with zeros beyond the end of the file, which is at size. Stores through mappings may have
// changed that part of the page, and it would become visible if the file grew.
func (f *File) blank(size int64) error {
	tail := size % mem.PageSize
	if tail == 0 || f.pager == nil && f.Peek(uint64(size)>>mem.PageShift) == 0 {
		return nil
	}
	e, err := f.hold(uint64(size)>>mem.PageShift, true)
	if err != nil {
		return err
	}
	defer f.unhold(e)
	if err := f.storing(e, 0); err != nil {
		return err
	}
	clear(f.cache.memory.Bytes(e.page)[tail:])
	return nil
}

// Punch implements mem.Object. Afterwards the pages read as zeros.
func (f *File) Punch(from, to uint64) error {
	f.mu.Lock()
	to = min(to, f.end())
	based := f.based()
	f.mu.Unlock()
	if f.pager == nil && from < to {
		f.discard(max(from, based), to)
		to = min(to, based) // dirty pages of zeros, which replace the pages of base
	}
	for i := from; i < to; i++ {
		e, err := f.hold(i, false)
		if err != nil {
			return err
		}
		if err := f.storing(e, 0); err != nil {
			f.unhold(e)
			return err
		}
		clear(f.cache.memory.Bytes(e.page))
		f.unhold(e)
	}
	return nil
}

// Sync implements mem.Object. It writes dirty pages back and makes them durable. It also returns the error of an
// earlier write-back, once.
func (f *File) Sync(from, to uint64) error {
	f.writeBack(from, to)
	if err := f.failure(); err != nil {
		return err
	}
	if s, ok := f.pager.(Syncer); ok {
		return s.Sync()
	}
	return nil
}

// failure returns the stored error of a write-back and clears it.
func (f *File) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.failed
	f.failed = nil
	return err
}

// writeBack writes the dirty pages whose indices are in [from, to). Pages that cannot be written stay
// dirty.
func (f *File) writeBack(from, to uint64) {
	if f.pager == nil {
		return
	}
	f.writer.Lock()
	defer f.writer.Unlock()
	f.writeDirty(from, to)
}

// writeDirty does the work of writeBack. The caller holds writer. It returns the first error, and also stores it in
// File.failed.
func (f *File) writeDirty(from, to uint64) (first error) {
	batch, maps, size := f.begin(from, to)
	if len(batch) > 0 {
		for _, m := range maps {
			m.Revoke(f, batch[0].index, batch[len(batch)-1].index+1, true)
		}
	}
	for len(batch) > 0 {
		n := run(batch)
		err := f.pager.WritePages(batch[0].index, f.contents(batch[:n]), size)
		f.finish(batch[:n], err)
		if err != nil && first == nil {
			first = err
		}
		batch = batch[n:]
	}
	return first
}

// begin returns the dirty pages of a range, in order, after marking them as clean and as being written.
func (f *File) begin(from, to uint64) (batch []*entry, maps []*mem.Map, size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := false
	if f.unsaved == 0 {
		f.cache.forget(f)
		return nil, nil, f.size
	}
	for i, e := range f.pages {
		switch {
		case !e.dirty:
		case i < from || i >= to:
			left = true
		default:
			e.dirty, e.writing = false, true
			mem.Retain(f.cache.memory, e.page)
			batch = append(batch, e)
		}
	}
	slices.SortFunc(batch, func(a, b *entry) int { return cmp.Compare(a.index, b.index) })
	f.cache.cleaned(int64(len(batch)))
	if !left {
		f.cache.forget(f)
	}
	return batch, f.mappers.List(), f.size
}

// maxRun is the maximum number of pages in one call of WritePages: 1 MiB.
const maxRun = 256

// run returns the number of consecutive pages at the front of a batch, at most maxRun.
func run(batch []*entry) int {
	n := 1
	for n < min(len(batch), maxRun) && batch[n].index == batch[0].index+uint64(n) {
		n++
	}
	return n
}

func (f *File) contents(batch []*entry) (pages [][]byte) {
	for _, e := range batch {
		pages = append(pages, f.cache.memory.Bytes(e.page))
	}
	return pages
}

// finish ends the write-back of some pages. If err is not nil, they become dirty again.
func (f *File) finish(batch []*entry, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range batch {
		if f.pages[e.index] == e {
			if err != nil {
				f.soil(e)
			} else if !e.dirty {
				f.unsaved--
			}
		}
		e.writing = false
		mem.Release(f.cache.memory, e.page)
	}
	if err != nil {
		f.failed = err
	}
}
