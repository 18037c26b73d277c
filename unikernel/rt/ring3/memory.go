package ring3

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel"
	"loam/kernel/user"
	"loam/mem"
)

// memory implements mem.Memory with the machine's physical pages. It has a reference count of four bytes for each page
// of physical memory.
type memory struct {
	pages *user.Pages
	refs  []atomic.Int32 // reference count of each page, by page number
	zero  mem.Page
}

// newMemory returns the memory of the machine. It returns false if no page is free.
func newMemory() (*memory, bool) {
	end := uint64(0)
	for _, r := range kernel.UsableMemory() {
		end = max(end, r.End)
	}
	m := &memory{pages: user.Shared(), refs: make([]atomic.Int32, end/amd64.PageSize)}
	pa, ok := m.pages.TakeZeroed()
	m.zero = pageOf(pa)
	return m, ok
}

// clock returns a page in which the kernel keeps its clocks, or 0.
func (m *memory) clock() mem.Page {
	p := m.Allocate()
	if p != 0 {
		clear(m.Bytes(p))
		user.ShareClock(addressOf(p))
	}
	return p
}

// pageOf and addressOf convert between numbers of pages and physical addresses.
func pageOf(pa uint64) mem.Page   { return mem.Page(pa / amd64.PageSize) }
func addressOf(p mem.Page) uint64 { return uint64(p) * amd64.PageSize }
func (m *memory) Zero() mem.Page  { return m.zero }

// Allocate implements mem.Memory.
func (m *memory) Allocate() mem.Page {
	pa, ok := m.pages.Take()
	if !ok {
		return 0
	}
	p := pageOf(pa)
	m.refs[p].Store(1)
	return p
}

// AllocateBlock implements mem.Memory.
func (m *memory) AllocateBlock() mem.Page {
	pa, ok := m.pages.TakeBlock()
	if !ok {
		return 0
	}
	first := pageOf(pa)
	for i := range mem.Page(mem.BlockPages) {
		m.refs[first+i].Store(1)
	}
	return first
}

// FreeBlock implements mem.Memory.
func (m *memory) FreeBlock(first mem.Page) { m.pages.GiveBlock(addressOf(first)) }

// Free implements mem.Memory.
func (m *memory) Free(p mem.Page) { m.pages.Give(addressOf(p)) }

// Bytes implements mem.Memory.
func (m *memory) Bytes(p mem.Page) []byte { return m.pages.Bytes(addressOf(p)) }

// References implements mem.Memory.
func (m *memory) References(p mem.Page) *atomic.Int32 { return &m.refs[p] }
