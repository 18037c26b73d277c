package amd64

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// memory is physical memory that begins at 0: page 0 is the root.
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

// Pages are found where they were mapped, and nowhere else: against a map.
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
	m.tables.Each(high, high+1<<41, func(va, entry uint64) uint64 {
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

// Each keeps to its range, to the page.
func TestEachKeepsToRange(t *testing.T) {
	m := newMemory(10)
	for i := range uint64(6) {
		m.tables.Map(high+i*PageSize, i*PageSize, PageSize, 0, m.alloc)
	}
	var seen []uint64
	m.tables.Each(high+2*PageSize, high+4*PageSize, func(va, e uint64) uint64 {
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

// Without memory for a table nothing is mapped, and nothing breaks.
func TestMapWithoutMemory(t *testing.T) {
	m := newMemory(2)
	if m.tables.Map(high, 0, PageSize, 0, m.alloc) {
		t.Error("mapped with one table of three")
	}
	if e, _ := m.tables.Lookup(high); e != 0 {
		t.Errorf("entry %#x", e)
	}
}
