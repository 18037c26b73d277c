package mem_test

import (
	"sync"
	"testing"

	"loam/mem"
	"loam/mem/memtest"
)

// newMap returns a map over its own memory, with Linux's default limits.
func newMap(t testing.TB, blocks int) (*mem.Map, *memtest.Memory, *memtest.Tables) {
	memory := memtest.NewMemory(blocks)
	tables := memtest.NewTables(memory)
	return mem.New(mem.Config{
		Memory: memory, Tables: tables, Account: &mem.Account{Total: 1 << 20},
		Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20, Memlock: 8 << 20},
	}), memory, tables
}

func mustMap(t testing.TB, m *mem.Map, q mem.Request) uint64 {
	t.Helper()
	addr, err := m.Mmap(q)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

const rw = mem.Read | mem.Write

// TestStack: a stack grows to its limit, and keeps the required distance from the mapping below it.
func TestStack(t *testing.T) {
	const top = 0x7000_0000_0000
	m, _, tables := newMap(t, 8)
	mustMap(t, m, mem.Request{Addr: top - 0x21000, Length: 0x21000, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed | mem.MapGrowsDown})
	for _, test := range []struct {
		addr uint64
		want mem.Result
	}{
		{top - 1, mem.Mapped},
		{top, mem.MapError},
		{top - 0x30000, mem.Mapped},
		{top - 8<<20, mem.Mapped},
		{top - 8<<20 - 1, mem.MapError},
	} {
		if got := tables.Store(m, test.addr, 1); got != test.want {
			t.Errorf("store at top-%x: %v, want %v", top-test.addr, got, test.want)
		}
	}
	m, _, tables = newMap(t, 8)
	mustMap(t, m, mem.Request{Addr: top - 0x200000, Length: 0x1000, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	mustMap(t, m, mem.Request{Addr: top - 0x1000, Length: 0x1000, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed | mem.MapGrowsDown})
	if got := tables.Store(m, top-0xff000, 1); got != mem.Mapped {
		t.Errorf("store in front of the guard gap: %v", got)
	}
	if got := tables.Store(m, top-0x100000, 1); got != mem.MapError {
		t.Errorf("store in the guard gap: %v", got)
	}
}

// TestBlocks: with MADV_HUGEPAGE one fault maps 2 MiB, which fork shares and a store splits.
func TestBlocks(t *testing.T) {
	const addr = 0x40000000
	m, memory, tables := newMap(t, 8)
	mustMap(t, m, mem.Request{Addr: addr, Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	if err := m.Madvise(addr, mem.BlockSize, mem.AdviseHugePage); err != nil {
		t.Fatal(err)
	}
	tables.Store(m, addr+5, 1)
	if tables.Applied[mem.Install] != 1 || memory.Used() != mem.BlockPages {
		t.Fatalf("%d translations, %d pages", tables.Applied[mem.Install], memory.Used())
	}
	if p, _ := tables.Entry(addr + mem.BlockSize - 1); p%mem.BlockPages != mem.BlockPages-1 {
		t.Errorf("the last page is number %d", p)
	}
	childTables := memtest.NewTables(memory)
	child, err := m.Fork(childTables)
	if err != nil {
		t.Fatal(err)
	}
	childTables.Store(child, addr+5, 2)
	if memory.Used() != mem.BlockPages+1 {
		t.Errorf("%d pages after one was copied", memory.Used())
	}
	if v, _ := tables.Load(m, addr+5); v != 1 {
		t.Errorf("parent loads %d", v)
	}
	child.Destroy()
	m.Destroy()
	if memory.Used() != 0 {
		t.Errorf("%d pages left", memory.Used())
	}
}

// TestNoMemory: if no page is free, a fault returns an error and changes nothing.
func TestNoMemory(t *testing.T) {
	m, memory, tables := newMap(t, 1)
	addr := mustMap(t, m, mem.Request{Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate})
	n := uint64(0)
	for tables.Store(m, addr+n*mem.PageSize, 1) == mem.Mapped {
		n++
	}
	if n != mem.BlockPages-2 {
		t.Errorf("%d pages before memory ran out", n)
	}
	if err := m.Munmap(addr, mem.PageSize); err != nil {
		t.Fatal(err)
	}
	if got := tables.Store(m, addr+n*mem.PageSize, 1); got != mem.Mapped {
		t.Errorf("after a page was freed: %v", got)
	}
	m.Destroy()
	if memory.Used() != 0 {
		t.Errorf("%d pages left", memory.Used())
	}
}

// TestThreads: threads of one process fault, map, protect, fork and unmap at once; no page is lost, and none belongs
// to two owners.
func TestThreads(t *testing.T) {
	m, memory, tables := newMap(t, 24)
	const pages = 64
	var group sync.WaitGroup
	for thread := range uint64(4) {
		group.Go(func() {
			for round := range 60 {
				addr := mustMap(t, m, mem.Request{Length: pages * mem.PageSize, Prot: rw, Flags: mem.MapPrivate})
				for n := range uint64(pages) {
					tables.Store(m, addr+n*mem.PageSize, byte(thread))
				}
				if round%8 == 0 {
					forkAndExit(t, m, memory, addr, byte(thread))
				}
				for n := range uint64(pages) {
					if v, r := tables.Load(m, addr+n*mem.PageSize); v != byte(thread) || r != mem.Mapped {
						t.Errorf("thread %d loads %d, %v", thread, v, r)
						return
					}
				}
				if err := m.Munmap(addr, pages*mem.PageSize); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if err := mem.CheckReferences(memory, memory.Used(), m); err != nil {
		t.Error(err)
	}
	m.Destroy()
	if memory.Used() != 0 {
		t.Errorf("%d pages left", memory.Used())
	}
}

func forkAndExit(t *testing.T, m *mem.Map, memory *memtest.Memory, addr uint64, want byte) {
	tables := memtest.NewTables(memory)
	child, err := m.Fork(tables)
	if err != nil {
		t.Error(err)
		return
	}
	defer child.Destroy()
	if v, _ := tables.Load(child, addr); v != want {
		t.Errorf("child loads %d, want %d", v, want)
	}
	tables.Store(child, addr, want+1)
}

// TestLocate: shared memory has the same location (the key of a futex) in parent and child, private memory a
// different one in each.
func TestLocate(t *testing.T) {
	m, memory, _ := newMap(t, 2)
	shared := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: rw, Flags: mem.MapShared})
	private := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: rw, Flags: mem.MapPrivate})
	child, err := m.Fork(memtest.NewTables(memory))
	if err != nil {
		t.Fatal(err)
	}
	same := func(addr uint64, flag bool) bool {
		a, ok1 := m.Locate(addr, flag)
		b, ok2 := child.Locate(addr, flag)
		return ok1 && ok2 && a == b
	}
	if !same(shared+8, false) || same(private+8, false) || same(shared+8, true) {
		t.Error("locations are equal wrongly")
	}
	if a, _ := m.Locate(shared, false); a == (mem.Location{}) {
		t.Error("empty location")
	}
	if _, ok := m.Locate(1<<30, false); ok {
		t.Error("a hole has a location")
	}
}

// nothing implements page tables without any work, for measurements of the map alone.
type nothing struct{}

func (nothing) Apply([]mem.Effect) bool { return true }
func (nothing) Size() int64             { return 0 }

func benchMap(b testing.TB, blocks int) (*mem.Map, *memtest.Memory) {
	memory := memtest.NewMemory(blocks)
	memory.Poisoned = false
	return mem.New(mem.Config{
		Memory: memory, Tables: nothing{}, Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20, Memlock: mem.Infinite},
	}), memory
}

// TestFaultAllocatesNothing: a fault of a present page takes nothing from the heap.
func TestFaultAllocatesNothing(t *testing.T) {
	m, _ := benchMap(t, 2)
	addr := mustMap(t, m, mem.Request{Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapPopulate})
	if n := testing.AllocsPerRun(1000, func() { m.Fault(addr+64*mem.PageSize, mem.Store) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFaultPresent(b *testing.B) {
	m, _ := benchMap(b, 3)
	addr := mustMap(b, m, mem.Request{Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapPopulate})
	for i := 0; b.Loop(); i++ {
		m.Fault(addr+uint64(i)%512*mem.PageSize, mem.Store)
	}
}

// BenchmarkFaultZero includes the zeroing of the page, and its release.
func BenchmarkFaultZero(b *testing.B) {
	m, _ := benchMap(b, 3)
	addr := mustMap(b, m, mem.Request{Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate})
	for i := 0; b.Loop(); i++ {
		if i%512 == 0 {
			if err := m.Madvise(addr, mem.BlockSize, mem.AdviseDontNeed); err != nil {
				b.Fatal(err)
			}
		}
		m.Fault(addr+uint64(i)%512*mem.PageSize, mem.Store)
	}
}

// BenchmarkMapUnmap maps and unmaps 64 KiB among a thousand regions.
func BenchmarkMapUnmap(b *testing.B) {
	m, _ := benchMap(b, 1)
	for i := range uint64(1000) {
		mustMap(b, m, mem.Request{Addr: 1<<40 + i*2*mem.PageSize, Length: mem.PageSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	}
	for b.Loop() {
		addr := mustMap(b, m, mem.Request{Length: 64 << 10, Prot: rw, Flags: mem.MapPrivate})
		if err := m.Munmap(addr, 64<<10); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFork10000 forks a process with 10,000 private pages and ends the child.
func BenchmarkFork10000(b *testing.B) {
	m, _ := benchMap(b, 24)
	mustMap(b, m, mem.Request{Length: 10000 * mem.PageSize, Prot: rw, Flags: mem.MapPrivate | mem.MapPopulate})
	for b.Loop() {
		child, err := m.Fork(nothing{})
		if err != nil {
			b.Fatal(err)
		}
		child.Destroy()
	}
}

// BenchmarkFork10000Touch also stores to every page of the child.
func BenchmarkFork10000Touch(b *testing.B) {
	m, _ := benchMap(b, 48)
	addr := mustMap(b, m, mem.Request{Length: 10000 * mem.PageSize, Prot: rw, Flags: mem.MapPrivate | mem.MapPopulate})
	for b.Loop() {
		child, err := m.Fork(nothing{})
		if err != nil {
			b.Fatal(err)
		}
		for n := range uint64(10000) {
			child.Fault(addr+n*mem.PageSize, mem.Store)
		}
		child.Destroy()
	}
}

// TestNoPageTable: if no page is free for a page table, a fault reports that, and can be repeated later. The tables count as
// memory of the process.
func TestNoPageTable(t *testing.T) {
	m, memory, tables := newMap(t, 4)
	addr := mustMap(t, m, mem.Request{Length: 8 * mem.BlockSize, Prot: rw, Flags: mem.MapPrivate})
	tables.Full = true
	if load, store := m.Fault(addr, mem.Load).Result, m.Fault(addr+mem.PageSize, mem.Store).Result; load != mem.NoMemory || store != mem.NoMemory {
		t.Errorf("load: %v, store: %v", load, store)
	}
	tables.Full = false
	for n := range uint64(8) {
		if v, got := tables.Load(m, addr+n*mem.BlockSize); v != 0 || got != mem.Mapped {
			t.Errorf("%d, %v", v, got)
		}
	}
	if got := tables.Store(m, addr+mem.PageSize, 7); got != mem.Mapped {
		t.Error(got)
	}
	if u := m.Usage(); u.Private != mem.PageSize || u.Tables < 8*mem.PageSize || u.Pages() < 9 {
		t.Errorf("%+v", u)
	}
	if err := mem.CheckReferences(memory, memory.Used(), m); err != nil {
		t.Error(err)
	}
}
