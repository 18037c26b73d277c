package mem_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loam/abi/linux"
	"loam/mem"
	"loam/mem/memtest"
)

const blockAt = 0x40000000 // the start of a block

// blockMap returns a map with a private anonymous region of count blocks at blockAt, for which blocks are enabled.
func blockMap(t testing.TB, count, memory int) (*mem.Map, *memtest.Memory, *memtest.Tables) {
	t.Helper()
	m, pages, tables := newMap(t, memory)
	mustMap(t, m, mem.Request{Addr: blockAt, Length: uint64(count) * mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	advise(t, m, blockAt, uint64(count)*mem.BlockSize, mem.AdviseHugePage, nil)
	return m, pages, tables
}

func advise(t testing.TB, m *mem.Map, addr, length uint64, advice int, want error) {
	t.Helper()
	if err := m.Madvise(addr, length, advice); err != want {
		t.Errorf("madvise(%#x, %#x, %d): %v, want %v", addr, length, advice, err, want)
	}
}

// bigRows returns the values of AnonHugePages in smaps, in kB, separated by spaces.
func bigRows(m *mem.Map) (all string) {
	text, _ := m.Smaps(0, 1<<20)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "AnonHugePages:" {
			all += " " + f[1]
		}
	}
	return all
}

// TestBlockPolicy: whether a store is resolved by a block depends on the system's policy, the region's advice, and the
// map's own setting.
func TestBlockPolicy(t *testing.T) {
	for _, test := range []struct {
		policy mem.Policy
		advice int
		small  bool
		want   bool
	}{
		{mem.Advised, mem.AdviseNormal, false, false},
		{mem.Advised, mem.AdviseHugePage, false, true},
		{mem.Advised, mem.AdviseHugePage, true, false},
		{mem.Everyone, mem.AdviseNormal, false, true},
		{mem.Everyone, mem.AdviseNoHugePage, false, false},
		{mem.Everyone, mem.AdviseNormal, true, false},
		{mem.Nobody, mem.AdviseHugePage, false, false},
	} {
		memory, blocks := memtest.NewMemory(4), &mem.Blocks{}
		blocks.SetPolicy(test.policy)
		tables := memtest.NewTables(memory)
		m := mem.New(mem.Config{
			Memory: memory, Tables: tables, Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
			Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite}, Blocks: blocks, SmallPages: test.small,
		})
		mustMap(t, m, mem.Request{Addr: blockAt, Length: mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
		advise(t, m, blockAt, mem.BlockSize, test.advice, nil)
		tables.Load(m, blockAt) // maps the page of zeros, which does not prevent a block
		tables.Store(m, blockAt+5*mem.PageSize, 1)
		if got := blocks.Use().Now == 1; got != test.want || memory.Used() == mem.BlockPages != test.want {
			t.Errorf("%+v: a block: %v, %d pages", test, got, memory.Used())
		}
		if text, _ := m.Smaps(0, 1<<20); strings.Contains(string(text), "THPeligible:           1\n") != test.want {
			t.Errorf("%+v: %s", test, text)
		}
		m.Destroy()
		if blocks.Use().Now != 0 || memory.Used() != 0 {
			t.Errorf("%+v: %d blocks and %d pages are left", test, blocks.Use().Now, memory.Used())
		}
	}
}

// TestNoBlock: if no block is free, a single page resolves the fault.
func TestNoBlock(t *testing.T) {
	m, memory, tables := blockMap(t, 2, 2)
	tables.Store(m, blockAt, 1)
	if got := tables.Store(m, blockAt+mem.BlockSize, 2); got != mem.Mapped || memory.Used() != mem.BlockPages+1 {
		t.Errorf("%v, %d pages", got, memory.Used())
	}
	if got := bigRows(m); got != " 2048" {
		t.Errorf("AnonHugePages is%s", got)
	}
}

// TestPartOfBlock: an operation on a part of a block leaves the content of the rest, and makes its pages single pages if
// some of them are replaced or removed.
func TestPartOfBlock(t *testing.T) {
	const part, end = blockAt + 7*mem.PageSize, blockAt + mem.BlockSize
	for name, test := range map[string]struct {
		do         func(*mem.Map) error
		rows       string
		used       int
		part, rest mem.Result // of a store to the part, and to the other pages
	}{
		"munmap":         {func(m *mem.Map) error { return m.Munmap(part, mem.PageSize) }, " 0 0", mem.BlockPages - 1, mem.MapError, mem.Mapped},
		"mprotect":       {func(m *mem.Map) error { return m.Mprotect(part, mem.PageSize, 0) }, " 0 0 0", mem.BlockPages, mem.AccessError, mem.Mapped},
		"MADV_DONTNEED":  {func(m *mem.Map) error { return m.Madvise(part, mem.PageSize, mem.AdviseDontNeed) }, " 0", mem.BlockPages - 1, mem.Mapped, mem.Mapped},
		"MADV_DONTFORK":  {func(m *mem.Map) error { return m.Madvise(part, mem.PageSize, mem.AdviseDontFork) }, " 0 0 0", mem.BlockPages, mem.Mapped, mem.Mapped},
		"whole mprotect": {func(m *mem.Map) error { return m.Mprotect(blockAt, mem.BlockSize, uint32(mem.Read)) }, " 2048", mem.BlockPages, mem.AccessError, mem.AccessError},
		"mremap": {func(m *mem.Map) error {
			_, err := m.Mremap(part, mem.PageSize, mem.PageSize, mem.MremapMayMove|mem.MremapFixed, end+mem.BlockSize)
			return err
		}, " 0 0 0", mem.BlockPages, mem.MapError, mem.Mapped},
		"whole mremap": {func(m *mem.Map) error {
			_, err := m.Mremap(blockAt, mem.BlockSize, mem.BlockSize, mem.MremapMayMove|mem.MremapFixed, end+mem.BlockSize)
			return err
		}, " 2048", mem.BlockPages, mem.MapError, mem.MapError},
	} {
		t.Run(name, func(t *testing.T) {
			m, memory, tables := blockMap(t, 1, 4)
			for n := range uint64(mem.BlockPages) {
				tables.Store(m, blockAt+n*mem.PageSize, byte(n))
			}
			if err := test.do(m); err != nil {
				t.Fatal(err)
			}
			if got := bigRows(m); got != test.rows || memory.Used() != test.used {
				t.Errorf("AnonHugePages is%s, %d pages; want%s and %d", got, memory.Used(), test.rows, test.used)
			}
			for n := range uint64(mem.BlockPages) {
				if v, r := tables.Load(m, blockAt+n*mem.PageSize); r == mem.Mapped && v != byte(n) && n != 7 {
					t.Errorf("page %d has %d", n, v)
				}
				want := test.rest
				if n == 7 {
					want = test.part
				}
				if got := tables.Store(m, blockAt+n*mem.PageSize, byte(n)); got != want {
					t.Errorf("a store to page %d: %v, want %v", n, got, want)
				}
			}
			if err := mem.CheckReferences(memory, memory.Used(), m); err != nil {
				t.Error(err)
			}
			m.Destroy()
			if memory.Used() != 0 {
				t.Errorf("%d pages are left", memory.Used())
			}
		})
	}
}

// TestBlocksAreReused: a block whose pages are freed together is a block again.
func TestBlocksAreReused(t *testing.T) {
	m, memory, tables := blockMap(t, 1, 2)
	for range 3 {
		tables.Store(m, blockAt, 1)
		if got := bigRows(m); got != " 2048" {
			t.Fatalf("AnonHugePages is%s", got)
		}
		advise(t, m, blockAt, mem.BlockSize, mem.AdviseDontNeed, nil)
		if memory.Used() != 0 {
			t.Fatalf("%d pages are used", memory.Used())
		}
	}
}

// TestPopulateBlocks: MADV_POPULATE_WRITE maps a block by one translation.
func TestPopulateBlocks(t *testing.T) {
	m, memory, tables := blockMap(t, 2, 4)
	advise(t, m, blockAt+mem.PageSize, 2*mem.BlockSize-mem.PageSize, mem.AdvisePopulateWrite, nil)
	if n := tables.Applied[mem.Install]; n != 2 || memory.Used() != 2*mem.BlockPages {
		t.Errorf("%d translations, %d pages", n, memory.Used())
	}
}

// TestCollapse: MADV_COLLAPSE moves pages together, and returns Linux's errors.
func TestCollapse(t *testing.T) {
	m, memory, tables := newMap(t, 4)
	mustMap(t, m, mem.Request{Addr: blockAt, Length: 2 * mem.BlockSize, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	for n := uint64(0); n < mem.BlockPages; n += 3 {
		tables.Store(m, blockAt+n*mem.PageSize, byte(n))
	}
	advise(t, m, blockAt, mem.BlockSize, mem.AdviseCollapse, nil)
	advise(t, m, blockAt, mem.BlockSize, mem.AdviseCollapse, nil)
	if got := bigRows(m); got != " 2048" || memory.Used() != mem.BlockPages {
		t.Errorf("AnonHugePages is%s, %d pages", got, memory.Used())
	}
	for n := range uint64(mem.BlockPages) {
		want := byte(0)
		if n%3 == 0 {
			want = byte(n)
		}
		if v, _ := tables.Load(m, blockAt+n*mem.PageSize); v != want {
			t.Errorf("page %d has %d", n, v)
		}
	}
	advise(t, m, blockAt+mem.BlockSize, mem.BlockSize, mem.AdviseCollapse, linux.EINVAL) // no pages
	advise(t, m, blockAt+mem.PageSize, mem.BlockSize, mem.AdviseCollapse, nil)           // no whole block
	advise(t, m, blockAt+mem.PageSize, 2*mem.PageSize, mem.AdviseCollapse, linux.EINVAL)
	advise(t, m, blockAt+4*mem.BlockSize, mem.BlockSize, mem.AdviseCollapse, linux.ENOMEM)
	tables.Store(m, blockAt+mem.BlockSize, 1)
	child, err := m.Fork(memtest.NewTables(memory))
	if err != nil {
		t.Fatal(err)
	}
	advise(t, m, blockAt+mem.BlockSize, mem.BlockSize, mem.AdviseCollapse, linux.EAGAIN) // shared with the child
	child.Destroy()
	advise(t, m, blockAt+mem.BlockSize, mem.BlockSize, mem.AdviseNoHugePage, nil)
	advise(t, m, blockAt+mem.BlockSize, mem.BlockSize, mem.AdviseCollapse, linux.EINVAL)
}

// TestBlockThreads: threads store to a block, collapse it, drop parts of it and fork at once. No store is lost, and no
// page.
func TestBlockThreads(t *testing.T) {
	m, memory, tables := blockMap(t, 2, 16)
	const own = mem.BlockPages / 8
	var group sync.WaitGroup
	for thread := range uint64(4) {
		group.Go(func() {
			for round := range 30 {
				first := blockAt + thread*own*mem.PageSize
				for n := range uint64(own) {
					tables.Store(m, first+n*mem.PageSize, byte(round))
				}
				switch round % 4 {
				case 0:
					_ = m.Madvise(blockAt, mem.BlockSize, mem.AdviseCollapse) // fails while the block is shared
				case 1:
					forkAndExit(t, m, memory, first, byte(round))
				case 2:
					advise(t, m, blockAt+mem.BlockSize, mem.BlockSize, mem.AdviseDontNeed, nil)
					tables.Store(m, blockAt+mem.BlockSize+thread*mem.PageSize, 1)
				}
				for n := range uint64(own) {
					if v, r := tables.Load(m, first+n*mem.PageSize); v != byte(round) || r != mem.Mapped {
						t.Errorf("thread %d, round %d: page %d has %d, %v", thread, round, n, v, r)
						return
					}
				}
				advise(t, m, first, mem.PageSize, mem.AdviseDontNeed, nil)
			}
		})
	}
	group.Wait()
	if err := mem.CheckReferences(memory, memory.Used(), m); err != nil {
		t.Error(err)
	}
	m.Destroy()
	if memory.Used() != 0 {
		t.Errorf("%d pages are left", memory.Used())
	}
}

// TestCollapseThreads: threads store to a block while another thread makes it single pages and a block again. No store is
// lost.
func TestCollapseThreads(t *testing.T) {
	m, memory, tables := blockMap(t, 1, 4)
	tables.Store(m, blockAt+(mem.BlockPages-1)*mem.PageSize, 0) // without a page of its own, a block cannot be collapsed (EINVAL)
	const threads, rounds = 3, 200
	var group, last sync.WaitGroup
	var done atomic.Bool
	last.Go(func() {
		for !done.Load() {
			advise(t, m, blockAt, mem.PageSize, mem.AdviseDontNeed, nil)
			advise(t, m, blockAt, mem.BlockSize, mem.AdviseCollapse, nil)
		}
	})
	for thread := range uint64(threads) {
		group.Go(func() {
			for round := range rounds {
				for n := thread + 1; n < mem.BlockPages; n += threads {
					if v, _ := tables.Load(m, blockAt+n*mem.PageSize); v != byte(round) {
						t.Errorf("round %d: page %d has %d", round, n, v)
						return
					}
					tables.Store(m, blockAt+n*mem.PageSize, byte(round+1))
				}
			}
		})
	}
	group.Wait()
	done.Store(true)
	last.Wait()
	m.Destroy()
	if memory.Used() != 0 {
		t.Errorf("%d pages are left", memory.Used())
	}
}

// TestBlockAfterFork: after a fork, stores of one process to a block do not reach the other process, whichever pages have
// been copied. When the child has ended, the parent maps the block as a whole again.
func TestBlockAfterFork(t *testing.T) {
	m, memory, tables := blockMap(t, 1, 4)
	tables.Store(m, blockAt, 1)
	childTables := memtest.NewTables(memory)
	child, err := m.Fork(childTables)
	if err != nil {
		t.Fatal(err)
	}
	const x, z = blockAt + 7*mem.PageSize, blockAt + 9*mem.PageSize
	childTables.Store(child, x, 2)
	tables.Store(m, x, 3)
	tables.Store(m, z, 3)
	for _, addr := range []uint64{x, z, blockAt} {
		want := map[uint64]byte{x: 2, blockAt: 1}[addr]
		if v, _ := childTables.Load(child, addr); v != want {
			t.Errorf("the child loads %d from %#x, want %d", v, addr, want)
		}
	}
	if err := mem.CheckReferences(memory, memory.Used(), m, child); err != nil {
		t.Error(err)
	}
	child.Destroy()
	m.Destroy()

	m, memory, tables = blockMap(t, 1, 4)
	tables.Store(m, blockAt, 1)
	if child, err = m.Fork(memtest.NewTables(memory)); err != nil {
		t.Fatal(err)
	}
	child.Destroy()
	before := tables.Applied[mem.Install]
	for n := range uint64(mem.BlockPages) {
		tables.Store(m, blockAt+n*mem.PageSize, 1)
	}
	if got := tables.Applied[mem.Install] - before; got != 1 || bigRows(m) != " 2048" {
		t.Errorf("%d translations after the child has ended", got)
	}
}

// TestBlockPartlyShared: after a fork, a block may have pages with one owner beside pages with two. An instruction that
// loads from the one kind and stores to the other needs both translations at once, so neither fault drops the other's.
func TestBlockPartlyShared(t *testing.T) {
	const loaded, stored = blockAt + 5*mem.PageSize, blockAt + 100*mem.PageSize
	for name, divide := range map[string]func(*mem.Map, func() *mem.Map){
		"the child stores": func(m *mem.Map, fork func() *mem.Map) { fork().WriteAt([]byte{2}, stored) },
		"a pinned page": func(m *mem.Map, fork func() *mem.Map) {
			_, unpin := m.Pin(stored, 8, true)
			fork()
			unpin(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, memory, tables := blockMap(t, 1, 4)
			tables.Store(m, blockAt, 1)
			divide(m, func() *mem.Map {
				child, err := m.Fork(memtest.NewTables(memory))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(child.Destroy)
				return child
			})
			for range 2 { // the second faults may come from another thread
				m.Fault(loaded, mem.Load)
				m.Fault(stored, mem.Store)
				if p, _ := tables.Entry(loaded); p == 0 {
					t.Error("the store has dropped the translation of the load")
				}
				m.Fault(loaded, mem.Load)
				if _, prot := tables.Entry(stored); prot != rw {
					t.Errorf("the load has left the rights %v for the store", prot)
				}
			}
		})
	}
}
