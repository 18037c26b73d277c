package mem_test

import (
	"testing"

	"loam/mem"
)

// Accessed and Copied find the next page in one step, however large the hole is.
func TestAccessed(t *testing.T) {
	m, memory, tables := newMap(t, 4)
	const size = 64 << 40
	at := mustMap(t, m, mem.Request{Length: size, Prot: rw, Flags: mem.MapPrivate | mem.MapAnonymous | mem.MapNoReserve})
	page := at + 50<<40
	tables.Store(m, page, 1)
	shared := mustMap(t, m, mem.Request{Length: 1 << 40, Prot: rw, Flags: mem.MapShared, Object: mem.NewShared(memory, 1<<28)})
	tables.Store(m, shared+1<<39, 1)
	file := mustMap(t, m, mem.Request{Length: mem.PageSize, Prot: rw, Flags: mem.MapPrivate, Object: mem.NewFixed(mem.Label{Path: "/f"}, memory.Zero())})
	for _, test := range []struct{ from, end, accessed, copied uint64 }{
		{at, at + size, page, page},
		{page, at + size, page, page},
		{page + mem.PageSize, at + size, at + size, at + size},
		{at, page, page, page},
		{shared, shared + 1<<40, shared + 1<<39, shared + 1<<40},
		{shared + 1<<39 + mem.PageSize, shared + 1<<40, shared + 1<<40, shared + 1<<40},
		{file, file + mem.PageSize, file, file + mem.PageSize},
	} {
		if a, c := m.Accessed(test.from, test.end), m.Copied(test.from, test.end); a != test.accessed || c != test.copied {
			t.Errorf("from %x to %x: %x, %x, want %x, %x", test.from, test.end, a, c, test.accessed, test.copied)
		}
	}
	if l := m.Label(file); l.Path != "/f" || m.Label(at) != (mem.Label{}) || m.Label(0) != (mem.Label{}) {
		t.Errorf("label %v", l)
	}
}
