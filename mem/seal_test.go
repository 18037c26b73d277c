package mem_test

import (
	"testing"

	"loam/abi/linux"
	"loam/mem"
	"loam/mem/memtest"
)

// Sealed memory stays, also in a child and below a smaller heap. A call that fails for it has no effect on other regions.
func TestSeal(t *testing.T) {
	const start, page = 0x55555000, mem.PageSize
	m, tables := limited(noLimits(), &mem.Account{Total: 1 << 20})
	m.SetBreak(start)
	m.Brk(start + 4*page)
	tables.Store(m, start+2*page, 7)
	if err := m.Seal(start+3*page, 2*page, 0); err != linux.ENOMEM {
		t.Errorf("seal beyond the heap: %v", err)
	}
	if err := m.Munmap(start+3*page, page); err != nil {
		t.Errorf("munmap after a seal that failed: %v", err)
	}
	if err := m.Seal(start+2*page, page, 0); err != nil {
		t.Fatal(err)
	}
	if got := m.Brk(start + page); got != start+4*page {
		t.Errorf("the end of the heap is %x", got)
	}
	child, err := m.Fork(memtest.NewTables(memtest.NewMemory(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*mem.Map{m, child} {
		if err := m.Munmap(start, 4*page); err != linux.EPERM {
			t.Errorf("munmap: %v", err)
		}
		if err := m.Mprotect(start+2*page, page, uint32(mem.Read)); err != linux.EPERM {
			t.Errorf("mprotect: %v", err)
		}
		if _, err := m.Mmap(mem.Request{Addr: start + page, Length: 2 * page, Flags: mem.MapPrivate | mem.MapFixed}); err != linux.EPERM {
			t.Errorf("mmap: %v", err)
		}
	}
	if b, r := tables.Load(m, start+2*page); b != 7 || r != mem.Mapped {
		t.Errorf("content %d, %v", b, r)
	}
	child.Destroy()
	m.Destroy()
}
