package amd64

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// memory is simulated physical memory that starts at address 0. Page 0 is the root table.
type memory struct {
	words  []uint64
	next   uint64
	tables Tables
}

func newMemory(pages int) *memory {
	m := &memory{words: make([]uint64, (pages+1)*entries), next: PageSize}
	base := (uintptr(unsafe.Pointer(&m.words[0])) + PageSize - 1) &^ (PageSize - 1)
	m.tables = Tables{Window: base}
	return m
}

func (m *memory) alloc() (uint64, bool) {
	if m.next+PageSize > uint64(len(m.words)-entries)*8 {
		return 0, false
	}
	m.next += PageSize
	return m.next - PageSize, true
}

const high = 0xffff_c000_0000_0000

// Pages are found where they were mapped, and nowhere else. The reference is a map.
func TestMapAgainstReference(t *testing.T) {
	m := newMemory(400)
	want := map[uint64]uint64{}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		va := high + rng.Uint64N(1<<40)&^(1<<22-1) + rng.Uint64N(4)*PageSize
		pa := rng.Uint64N(1<<40) &^ (PageSize - 1)
		if !m.tables.Map(va, pa, PageSize, PageWrite|PageNoExecute, m.alloc) {
			break
		}
		want[va] = pa
	}
	if len(want) < 50 {
		t.Fatalf("only %d pages were mapped", len(want))
	}
	for va, pa := range want {
		if e, size := m.tables.Lookup(va); Physical(e) != pa || size != PageSize || e&PageWrite == 0 || e&PageNoExecute == 0 {
			t.Fatalf("%#x: entry %#x", va, e)
		}
		if e, _ := m.tables.Lookup(va + 8*PageSize); e != 0 {
			t.Fatalf("%#x: entry %#x", va+8*PageSize, e)
		}
	}
	found := map[uint64]uint64{}
	m.tables.Each(high, high+1<<41, func(va, entry, _ uint64) uint64 {
		found[va] = Physical(entry)
		return 0
	})
	if len(found) != len(want) {
		t.Errorf("Each finds %d pages of %d", len(found), len(want))
	}
	for va := range want {
		if e, _ := m.tables.Lookup(va); e != 0 {
			t.Fatalf("%#x is still mapped", va)
		}
	}
}

// Each visits exactly the pages in its range.
func TestEachKeepsToRange(t *testing.T) {
	m := newMemory(10)
	for i := range uint64(6) {
		m.tables.Map(high+i*PageSize, i*PageSize, PageSize, 0, m.alloc)
	}
	var seen []uint64
	m.tables.Each(high+2*PageSize, high+4*PageSize, func(va, e, _ uint64) uint64 {
		seen = append(seen, va-high)
		return e
	})
	if len(seen) != 2 || seen[0] != 2*PageSize || seen[1] != 3*PageSize {
		t.Errorf("%#x", seen)
	}
}

func TestBigPages(t *testing.T) {
	m := newMemory(10)
	m.tables.Map(high, 5*BigPageSize, BigPageSize, PageWrite, m.alloc)
	m.tables.Map(high+HugePageSize, 3*HugePageSize, HugePageSize, 0, m.alloc)
	if e, size := m.tables.Lookup(high + 12345); Physical(e) != 5*BigPageSize || size != BigPageSize {
		t.Errorf("%#x of %#x", e, size)
	}
	if e, size := m.tables.Lookup(high + HugePageSize + 12345); Physical(e) != 3*HugePageSize || size != HugePageSize {
		t.Errorf("%#x of %#x", e, size)
	}
}

// Map fails without memory for a table, and leaves the tables consistent.
func TestMapWithoutMemory(t *testing.T) {
	m := newMemory(2)
	if m.tables.Map(high, 0, PageSize, 0, m.alloc) {
		t.Error("mapped with one table of three")
	}
	if e, _ := m.tables.Lookup(high); e != 0 {
		t.Errorf("entry %#x", e)
	}
}

// Split replaces a big page by small pages with the same addresses. Nothing is mapped while it flushes.
func TestSplit(t *testing.T) {
	m := newMemory(10)
	const flags = PageWrite | PageNoExecute
	m.tables.Map(high, 5*BigPageSize, BigPageSize, flags, m.alloc)
	page, _ := m.alloc()
	flushed := 0
	m.tables.Split(high+7*PageSize, page, func() {
		flushed++
		if e, _ := m.tables.Lookup(high); e != 0 {
			t.Errorf("entry %#x while it is split", e)
		}
	})
	for i := range uint64(entries) {
		e, size := m.tables.Lookup(high + i*PageSize)
		if e != 5*BigPageSize+i*PageSize|flags|PagePresent || size != PageSize {
			t.Fatalf("page %d: %#x of %#x", i, e, size)
		}
	}
	if flushed != 1 {
		t.Errorf("flushed %d times", flushed)
	}
}

// Each finds big pages, including kept pages that are not present.
func TestEachBig(t *testing.T) {
	m := newMemory(10)
	m.tables.Map(high, BigPageSize, BigPageSize, 0, m.alloc)
	m.tables.Map(high+BigPageSize, 0, PageSize, 0, m.alloc)
	sizes := map[uint64]uint64{}
	for range 2 {
		m.tables.Each(high, high+2*BigPageSize, func(va, e, size uint64) uint64 {
			sizes[va-high] += size
			return Physical(e) | PageKept | e&PageBig
		})
	}
	if len(sizes) != 2 || sizes[0] != 2*BigPageSize || sizes[BigPageSize] != 2*PageSize {
		t.Errorf("%#x", sizes)
	}
	if e := m.tables.Entry(high+PageSize, BigPageSize); e != BigPageSize|PageKept|PageBig {
		t.Errorf("entry %#x", e)
	}
	if e := m.tables.Entry(high+HugePageSize, BigPageSize); e != 0 {
		t.Errorf("entry %#x where nothing is", e)
	}
}

// Prune removes a table when it is empty, and not before.
func TestPrune(t *testing.T) {
	m := newMemory(10)
	out := func(va uint64) { m.tables.Each(va, va+PageSize, func(_, _, _ uint64) uint64 { return 0 }) }
	a, b := uint64(high), uint64(high+HugePageSize)
	m.tables.Map(a, 0, PageSize, 0, m.alloc)
	m.tables.Map(b, 0, PageSize, 0, m.alloc)
	if pages, n := m.tables.Prune(a); n != 0 {
		t.Errorf("%#x of a page that is there", pages[:n])
	}
	out(a)
	if pages, n := m.tables.Prune(a); n != 2 {
		t.Errorf("%#x, with another page below the next table", pages[:n])
	}
	out(b)
	if pages, n := m.tables.Prune(b); n != 3 {
		t.Errorf("%#x of the last", pages[:n])
	}
	if e := m.tables.table(0)[index(high, levels-1)]; e != 0 {
		t.Errorf("the root has %#x", e)
	}
	if _, n := m.tables.Prune(a); n != 0 {
		t.Errorf("%d more", n)
	}
}

// Prune keeps the entries of a pinned root; Reserve creates them.
func TestPinned(t *testing.T) {
	m := newMemory(10)
	if !m.tables.Reserve(high, m.alloc) || !m.tables.Reserve(high+BigPageSize, m.alloc) || m.next != 2*PageSize {
		t.Errorf("%#x bytes were taken for one entry", m.next-PageSize)
	}
	m.tables.Pinned = true
	m.tables.Map(high, 0, PageSize, 0, m.alloc)
	m.tables.Each(high, high+PageSize, func(_, _, _ uint64) uint64 { return 0 })
	if pages, n := m.tables.Prune(high); n != 2 {
		t.Errorf("%#x went", pages[:n])
	}
	if m.tables.table(0)[index(high, levels-1)] == 0 {
		t.Error("an entry of the root is gone")
	}
	m.next = 1 << 40
	if m.tables.Reserve(high+1<<39, m.alloc) {
		t.Error("an entry without memory")
	}
}

// A page is accessible in ring 3 only if the entries of all levels allow it: SDM volume 3, 4.6.
func TestUserPages(t *testing.T) {
	m := newMemory(10)
	m.tables.Map(PageSize, PageSize, PageSize, PageUser, m.alloc)
	table := m.tables.table(0)
	for level := levels - 1; level >= 0; level-- {
		e := table[index(PageSize, level)]
		if e&PageUser == 0 {
			t.Errorf("level %d: %#x", level, e)
		}
		table = m.tables.table(e & pageAddress)
	}
	gone := 0
	if !m.tables.Remove(0, 1<<47, func(uint64) { gone++ }) || gone != levels-1 {
		t.Errorf("%d tables went with the only page", gone)
	}
	if m.tables.Remove(0, 1<<47, nil) {
		t.Error("a page is left")
	}
}
