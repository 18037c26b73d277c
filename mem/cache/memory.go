package cache

import (
	"loam/abi/linux"
	"loam/mem"
)

// Files in memory: files without a Pager, such as the files of a tmpfs. A page that is present holds the content at its
// index. Where no page is present, the content is the base of the file, followed by zeros. The base is read-only bytes
// that stay valid, such as a part of an archive; it may be empty.
//
//	absent:  the content is a page of the base, or zeros; read(2) does not create a page
//	clean:   a copy of a page of the base, made for a mapping; in the ring, since it can be made again
//	dirty:   the page holds the only copy; counted by charge, not in the ring, and kept until truncated
//
// A page is created with the file's lock held: this copies 4 KiB and never waits for storage.

// NewMemory returns a file in memory whose initial content is base. The file uses base without copying or changing it.
// charge is called when the file needs n more pages, or releases -n pages if n is negative. An error refuses the pages;
// charge must not return one for a negative n. charge is called with locks held and must not block. If charge is nil,
// pages are not counted.
func (c *Cache) NewMemory(base []byte, charge func(n int64) error) *File {
	f := c.NewFile(nil, int64(len(base)), mem.Label{})
	f.base, f.charge = base, charge
	return f
}

// SetLabel sets the description of a file that has none yet.
func (f *File) SetLabel(l mem.Label) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.label == (mem.Label{}) {
		f.label = l
	}
}

// Allocated returns the number of pages that hold content of a file in memory: the dirty pages.
func (f *File) Allocated() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owned + int64(f.based()) - f.hiding
}

// based returns the number of pages that the base covers. The caller holds mu.
func (f *File) based() uint64 { return (uint64(len(f.base)) + mem.PageSize - 1) >> mem.PageShift }

// Next returns the first offset at or after offset that is data, or that is in a hole (lseek(2)). It returns false at the
// end of the file.
func (f *File) Next(offset int64, data bool) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	based := f.based()
	isData := func(i uint64) bool { return i < based || f.pages[i] != nil }
	first := uint64(offset) >> mem.PageShift
	i := first
	if !data {
		for i < f.end() && isData(i) {
			i++
		}
	} else if !isData(i) {
		i = f.end()
		for have := range f.pages {
			if have > first {
				i = min(i, have)
			}
		}
	}
	at := max(offset, int64(i)<<mem.PageShift)
	return at, at < f.size
}

// account adds n to the number of pages that charge counts. It returns errors of charge.
func (f *File) account(n int64) error {
	if f.charge == nil {
		return nil
	}
	return f.charge(n)
}

// own marks a page of a file in memory as dirty, and counts it. The caller holds mu. It returns errors of charge.
func (f *File) own(e *entry) error {
	if err := f.account(1); err != nil {
		return err
	}
	f.cache.left(e)
	e.dirty = true
	f.owned++
	if e.hides = e.index < f.based(); e.hides {
		f.hiding++
	}
	return nil
}

// disown reverses the counting of own, when the page is released. The caller holds mu.
func (f *File) disown(e *entry) {
	f.account(-1)
	f.owned--
	if e.hides {
		f.hiding--
	}
}

// add creates an absent page. With fill, its content is copied from the base, or is zeros beyond it. Without fill, it is
// zeros, and the caller writes it. The caller holds mu. Errors: ENOMEM, errors of charge.
func (f *File) add(index uint64, fill bool) (*entry, error) {
	p := f.cache.memory.Allocate()
	if p == 0 {
		return nil, linux.ENOMEM
	}
	b := f.cache.memory.Bytes(p)
	e := &entry{file: f, index: index, page: p}
	at := index << mem.PageShift
	if n := 0; at < uint64(len(f.base)) {
		if fill {
			n = copy(b, f.base[at:])
		}
		clear(b[n:])
		f.cache.entered(e)
	} else if err := f.own(e); err != nil {
		mem.Release(f.cache.memory, p)
		return nil, err
	} else {
		clear(b)
	}
	f.pages[index] = e
	return e, nil
}

// supply creates an absent page for a mapping. The caller holds mu.
func (f *File) supply(index uint64) (*entry, mem.Supply) {
	e, err := f.add(index, true)
	switch {
	case err == linux.ENOMEM:
		return nil, mem.Exhausted
	case err != nil:
		return nil, mem.Beyond
	}
	return e, mem.Supplied
}

// readAbsent reads content of a page if that page is absent. It returns false if the page is present.
func (f *File) readAbsent(index uint64, b []byte, offset int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[index] != nil {
		return false
	}
	n := 0
	if offset < int64(len(f.base)) {
		n = copy(b, f.base[offset:])
	}
	clear(b[n:])
	return true
}
