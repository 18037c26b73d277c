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

// Advice that discards content fails only for sealed private memory that the program cannot write, as on Linux 6.18.
func TestAdviceForSealed(t *testing.T) {
	const page = mem.PageSize
	advice := []int{mem.AdviseNormal, mem.AdviseDontFork, mem.AdviseWipeOnFork, mem.AdviseFree, mem.AdviseDontNeed, mem.AdviseDontNeedLocked, mem.AdviseRemove}
	for _, test := range []struct {
		name  string
		prot  mem.Prot
		flags uint32
		want  [7]error
	}{
		{"private, read-only", mem.Read, mem.MapPrivate, [7]error{nil, linux.EPERM, linux.EPERM, linux.EPERM, linux.EPERM, linux.EPERM, linux.EPERM}},
		{"private", mem.Read | mem.Write, mem.MapPrivate, [7]error{nil, nil, nil, nil, nil, nil, linux.EINVAL}},
		{"shared, read-only", mem.Read, mem.MapShared, [7]error{nil, nil, linux.EINVAL, linux.EINVAL, nil, nil, nil}},
	} {
		m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
		at := mustMap(t, m, mem.Request{Length: page, Prot: test.prot, Flags: test.flags})
		if err := m.Seal(at, page, 0); err != nil {
			t.Fatal(err)
		}
		for i, a := range advice {
			if err := m.Madvise(at, page, a); err != test.want[i] {
				t.Errorf("%s, advice %d: %v, want %v", test.name, a, err, test.want[i])
			}
		}
		if _, err := m.Mremap(at, page, page, 0, 0); err != linux.EPERM {
			t.Errorf("%s, mremap without a change: %v", test.name, err)
		}
		if err := m.Mprotect(at, page, uint32(test.prot)); err != linux.EPERM {
			t.Errorf("%s, mprotect without a change: %v", test.name, err)
		}
		m.Destroy()
	}
}
