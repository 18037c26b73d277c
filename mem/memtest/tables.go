package memtest

import (
	"sync"

	"loam/mem"
)

// Tables implements mem.Tables with a Go map. Its other methods access memory as a processor would. A change of a part of
// a block that was installed as a whole drops all translations of the block, as with the page tables of the kernel.
type Tables struct {
	memory  mem.Memory
	mu      sync.Mutex // held while memory is accessed, so that Apply waits for accesses, as in a TLB shootdown
	entries map[uint64]entry
	// Applied counts effects by action.
	Applied [4]int
	// Full makes Install fail, as if no page were free for a page table.
	Full bool
}

type entry struct {
	page mem.Page
	prot mem.Prot
	big  bool // part of a block that was installed as a whole
}

// NewTables returns empty tables.
func NewTables(m mem.Memory) *Tables { return &Tables{memory: m, entries: map[uint64]entry{}} }

// Size implements mem.Tables: the tables of blocks in which single pages are mapped.
func (t *Tables) Size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	tables := map[uint64]bool{}
	for n, e := range t.entries {
		if !e.big {
			tables[n/mem.BlockPages] = true
		}
	}
	return int64(len(tables))
}

// Apply implements mem.Tables.
func (t *Tables) Apply(effects []mem.Effect) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range effects {
		if t.Full && e.Action == mem.Install {
			return false
		}
		t.Applied[e.Action]++
		t.apply(e)
	}
	return true
}

func (t *Tables) apply(e mem.Effect) {
	if e.Action != mem.Offer {
		t.dropPart(e.Start)
		t.dropPart(e.End)
	}
	switch e.Action {
	case mem.Install, mem.Offer:
		for i := uint64(0); i < (e.End-e.Start)/mem.PageSize; i++ {
			n := e.Start/mem.PageSize + i
			if _, ok := t.entries[n]; ok && e.Action == mem.Offer {
				continue
			}
			t.entries[n] = entry{e.Page + mem.Page(i), e.Prot, e.End-e.Start == mem.BlockSize}
		}
	case mem.Unmap:
		t.each(e, func(n uint64, _ entry) { delete(t.entries, n) })
	case mem.Restrict:
		t.each(e, func(n uint64, old entry) {
			if old.prot &= e.Prot; old.prot == 0 {
				delete(t.entries, n)
			} else {
				t.entries[n] = old
			}
		})
	}
}

// dropPart drops the translations of the block around addr, if it was installed as a whole and does not begin at addr.
func (t *Tables) dropPart(addr uint64) {
	n := addr / mem.PageSize
	if first := n &^ (mem.BlockPages - 1); first != n && t.entries[n].big {
		for i := range uint64(mem.BlockPages) {
			delete(t.entries, first+i)
		}
	}
}

// each calls f for the entries of a range. It iterates over the range or over all entries, whichever is shorter.
func (t *Tables) each(e mem.Effect, f func(uint64, entry)) {
	first, last := e.Start/mem.PageSize, e.End/mem.PageSize
	if last-first < uint64(len(t.entries)) {
		for n := first; n < last; n++ {
			if old, ok := t.entries[n]; ok {
				f(n, old)
			}
		}
		return
	}
	for n, old := range t.entries {
		if first <= n && n < last {
			f(n, old)
		}
	}
}

// Load reads the byte at addr. It calls m.Fault as often as a processor would fault.
func (t *Tables) Load(m *mem.Map, addr uint64) (byte, mem.Result) {
	var v byte
	r := t.access(m, addr, mem.Load, func(b *byte) { v = *b })
	return v, r
}

// Store writes the byte at addr.
func (t *Tables) Store(m *mem.Map, addr uint64, v byte) mem.Result {
	return t.access(m, addr, mem.Store, func(b *byte) { *b = v })
}

func (t *Tables) access(m *mem.Map, addr uint64, a mem.Access, f func(*byte)) mem.Result {
	for !t.try(addr, a, f) {
		if fault := m.Fault(addr, a); fault.Result != mem.Mapped {
			return fault.Result
		}
	}
	return mem.Mapped
}

// Access calls f with the page that contains addr, if the tables allow the access. It reports whether they do.
func (t *Tables) Access(addr uint64, a mem.Access, f func(page []byte)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[addr/mem.PageSize]
	if !ok || a == mem.Store && e.prot&mem.Write == 0 {
		return false
	}
	f(t.memory.Bytes(e.page))
	return true
}

func (t *Tables) try(addr uint64, a mem.Access, f func(*byte)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[addr/mem.PageSize]
	if !ok || a == mem.Store && e.prot&mem.Write == 0 {
		return false
	}
	f(&t.memory.Bytes(e.page)[addr%mem.PageSize])
	return true
}

// Pause runs f while no access is in progress. It is for the simulation of a device that reads a page while a process
// stores to it; without Pause, the race detector would report that.
func (t *Tables) Pause(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// Entry returns the page to which addr is translated, and its permissions.
func (t *Tables) Entry(addr uint64) (mem.Page, mem.Prot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[addr/mem.PageSize]
	return e.page, e.prot
}
