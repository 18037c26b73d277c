package cache

import (
	"container/list"
	"slices"
	"sync"

	"loam/abi/linux"
	"loam/mem"
)

// Pager reads and writes the pages of one file on its storage. It may block.
type Pager interface {
	// ReadPage fills a page. Bytes beyond the end of the file are zeros.
	ReadPage(index uint64, page []byte) error
	// WritePages stores consecutive pages. size is the file's size in bytes: the last page may
	// extend beyond it.
	WritePages(first uint64, pages [][]byte, size int64) error
}

// Syncer is a Pager whose storage has a cache of its own. Sync makes durable what WritePages has stored.
type Syncer interface {
	Pager
	Sync() error
}

// File is the content of one file. It implements mem.Object.
type File struct {
	cache *Cache
	pager Pager // nil: the file is in memory only, see memory.go

	writer sync.Mutex // serialises write-back

	mu            sync.Mutex
	label         mem.Label
	base          []byte            // for a file in memory: content of absent pages; beyond its end, absent pages are zeros
	charge        func(int64) error // for a file in memory: called when pages are added or released; nil: pages are not counted
	owned, hiding int64             // for a file in memory: numbers of dirty pages and of those that replace a page of base
	size          int64
	pages         map[uint64]*entry
	unsaved       int // number of pages that differ from storage or are being written to it
	mappers       mem.Mappers
	held          int   // number of calls of Hold without an Unhold
	retired       bool  // Retire has succeeded: Hold fails from then on
	failed        error // error of a write-back for which no caller waited
}

// entry is one page of a file. File.mu guards it.
type entry struct {
	file           *File
	index          uint64
	page           mem.Page
	loading        chan struct{} // closed by the goroutine that loads the page when the page is loaded; nil afterwards
	hides          bool          // the page is counted in File.hiding: it replaces a page of base
	dirty, writing bool          // dirty: the content differs from storage, or in a file in memory from base
	used           bool          // accessed since the clock algorithm last examined the page
	ring           *list.Element // guarded by Cache.mu; nil for a dirty page of a file in memory
}

// NewFile returns a file of size bytes. pager reads and writes its storage; nil means that the file is in memory only.
func (c *Cache) NewFile(pager Pager, size int64, label mem.Label) *File {
	return &File{cache: c, pager: pager, label: label, size: size, pages: map[uint64]*entry{}}
}

// Size returns the size in bytes.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// Label implements mem.Object.
func (f *File) Label() mem.Label {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.label
	l.Memory = f.pager == nil
	return l
}

// Attach implements mem.Object.
func (f *File) Attach(m *mem.Map) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mappers.Add(m)
}

// Detach implements mem.Object. The pages stay after the last Detach: see Drop.
func (f *File) Detach(m *mem.Map) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mappers.Remove(m)
}

// Mapped reports whether any map has a region that maps the file.
func (f *File) Mapped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.mappers.None()
}

// Hold prevents the file from being retired until Unhold is called. It returns false if the file has been retired
// already.
func (f *File) Hold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.retired {
		return false
	}
	f.held++
	return true
}

// Unhold ends the effect of one call of Hold.
func (f *File) Unhold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held--
}

// Retire implements fs.Content.
func (f *File) Retire() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.retired = f.retired || f.held == 0 && f.mappers.None()
	return f.retired
}

// Storable implements fs.Content.
func (f *File) Storable() bool {
	f.mu.Lock()
	held, maps := f.held > 0, f.mappers.List()
	f.mu.Unlock()
	return held || slices.ContainsFunc(maps, func(m *mem.Map) bool { return m.MayStore(f) })
}

// Page implements mem.Object.
func (f *File) Page(index uint64, store bool) (mem.Page, bool, mem.Supply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if index >= f.end() {
		return 0, false, mem.Beyond
	}
	e := f.pages[index]
	if e == nil && f.pager == nil {
		var s mem.Supply
		if e, s = f.supply(index); s != mem.Supplied {
			return 0, false, s
		}
	}
	if e == nil || e.loading != nil {
		return 0, false, mem.Loading
	}
	e.used = true
	if store && f.soil(e) != nil {
		return 0, false, mem.Beyond
	}
	return e.page, e.dirty, mem.Supplied
}

// end returns the number of pages that the file's size covers.
func (f *File) end() uint64 { return uint64(f.size+mem.PageSize-1) >> mem.PageShift }

// soil makes a page dirty. The caller holds mu. It returns errors of charge.
func (f *File) soil(e *entry) error {
	switch {
	case e.dirty:
		return nil
	case f.pager == nil:
		return f.own(e)
	}
	e.dirty = true
	if !e.writing {
		f.unsaved++
	}
	f.cache.soiled(f)
	return nil
}

// Peek implements mem.Object.
func (f *File) Peek(index uint64) mem.Page {
	var p mem.Page
	f.mu.Lock()
	if e := f.pages[index]; e != nil && e.loading == nil && index < f.end() {
		p = e.page
	}
	f.mu.Unlock()
	return p
}

// Load implements mem.Object. If too many pages are dirty, it first writes this file's dirty pages back.
func (f *File) Load(index uint64) error {
	if f.pager != nil && f.cache.crowded() {
		f.writeBack(0, ^uint64(0))
	}
	e, err := f.hold(index, true)
	if err == nil {
		f.unhold(e)
	}
	return err
}

// hold returns a page and takes a reference to it, which prevents its eviction; unhold drops the reference. If the page
// is absent, hold adds it: with fill, its content is read; without fill, its content is undefined, and the caller must
// write all of it. Errors: ENOMEM, errors of the Pager.
func (f *File) hold(index uint64, fill bool) (*entry, error) {
	for {
		e, mine, err := f.find(index, fill)
		switch {
		case err == linux.ENOMEM && f.cache.Free(reclaimed) > 0:
			continue
		case err != nil:
			return nil, err
		case mine:
			return e, f.load(e, fill)
		case e.loading == nil:
			return e, nil
		}
		<-e.loading
	}
}

// reclaimed is the number of pages to evict when no free page is left.
const reclaimed = 64

// find returns the entry of an index, and creates it if it does not exist. If find has created it, mine is true, and
// the caller must load the page. If another goroutine is loading the page, find takes no reference to it. A page of a
// file in memory is complete when it is created, so it is never being loaded.
func (f *File) find(index uint64, fill bool) (e *entry, mine bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e = f.pages[index]
	if e == nil && f.pager == nil {
		if e, err = f.add(index, fill); err != nil {
			return nil, false, err
		}
	}
	if e != nil {
		if e.loading != nil {
			return &entry{loading: e.loading}, false, nil
		}
		e.used = true
		mem.Retain(f.cache.memory, e.page)
		return e, false, nil
	}
	p := f.cache.memory.Allocate()
	if p == 0 {
		return nil, false, linux.ENOMEM
	}
	e = &entry{file: f, index: index, page: p, loading: make(chan struct{}), used: true}
	f.pages[index] = e
	return e, true, nil
}

// load reads a new page if fill is set, and takes a reference to it.
func (f *File) load(e *entry, fill bool) error {
	var err error
	b := f.cache.memory.Bytes(e.page)
	if fill {
		err = f.pager.ReadPage(e.index, b)
	} else {
		clear(b)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	close(e.loading)
	e.loading = nil
	if err != nil {
		if f.pages[e.index] == e {
			delete(f.pages, e.index)
		}
		mem.Release(f.cache.memory, e.page)
		return err
	}
	if f.pages[e.index] == e { // the page has not been truncated meanwhile
		mem.Retain(f.cache.memory, e.page)
		f.cache.entered(e)
	}
	return nil
}

func (f *File) unhold(e *entry) { mem.Release(f.cache.memory, e.page) }

// evict removes a page that is clean and not in use. It reports whether it has removed the page.
func (f *File) evict(e *entry) bool {
	f.mu.Lock()
	busy := e.loading != nil || e.dirty || e.writing || f.pages[e.index] != e ||
		f.cache.memory.References(e.page).Load() != 1
	spare := !busy && !e.used
	e.used = false
	if spare {
		f.remove(e)
	}
	maps := f.mappers.List()
	f.mu.Unlock()
	if busy {
		return false
	}
	for _, m := range maps {
		m.Revoke(f, e.index, e.index+1, false)
	}
	if spare {
		mem.Release(f.cache.memory, e.page)
	}
	return spare
}

// remove takes an entry out of the index and out of the ring. The caller revokes the page's translations and then
// releases the page. If the page is being loaded, the goroutine that loads it releases it.
func (f *File) remove(e *entry) {
	delete(f.pages, e.index)
	if f.pager != nil && (e.dirty || e.writing) {
		f.unsaved--
	}
	if f.pager == nil && e.dirty {
		f.disown(e)
	} else {
		f.cache.left(e)
	}
	e.dirty = false
}

// Drop releases all pages, including dirty pages. The caller makes sure that the file is not mapped and that no page is
// being copied.
func (f *File) Drop() { f.discard(0, ^uint64(0)) }

// discard removes the pages whose indices are in [from, to).
func (f *File) discard(from, to uint64) {
	f.discardIf(from, to, func(*entry) bool { return true })
}

// discardIf removes the pages of a range for which the function match returns true. It calls the function with mu held.
func (f *File) discardIf(from, to uint64, match func(*entry) bool) {
	f.mu.Lock()
	var gone []*entry
	check := func(e *entry) {
		if match(e) {
			f.remove(e)
			if e.loading == nil {
				gone = append(gone, e)
			}
		}
	}
	if to-from < uint64(len(f.pages)) { // fewer indices than pages
		for i := from; i < to; i++ {
			if e := f.pages[i]; e != nil {
				check(e)
			}
		}
	} else {
		for i, e := range f.pages {
			if from <= i && i < to {
				check(e)
			}
		}
	}
	maps := f.mappers.List()
	f.mu.Unlock()
	for _, m := range maps {
		m.Revoke(f, from, to, false)
	}
	for _, e := range gone {
		mem.Release(f.cache.memory, e.page)
	}
}
