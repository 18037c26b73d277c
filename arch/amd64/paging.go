package amd64

import "unsafe"

// Page tables of four levels: SDM volume 3, 4.5. Tables reads and writes them
// through a window in which all of physical memory can be seen, so nothing has
// to be mapped in order to be changed.
//
// Tables does not lock and does not flush. Who takes a right away or a page out
// flushes translations before the page is used for something else; who only adds
// need not: a CPU that remembers an absent page asks again.

// Sizes of pages.
const (
	PageSize     = 1 << 12
	BigPageSize  = 1 << 21
	HugePageSize = 1 << 30
)

// Bits of an entry: SDM volume 3, tables 4-15 to 4-20.
const (
	PagePresent   = 1 << 0
	PageWrite     = 1 << 1
	PageUncached  = 1<<3 | 1<<4 // write-through and cache disable: for device registers
	PageBig       = 1 << 7      // in the upper levels: this is a page, not a table
	PageGlobal    = 1 << 8
	PageKept      = 1 << 9 // without PagePresent: the page is there, and out of reach; the CPU does not look
	PageNoExecute = 1 << 63

	pageAddress = 0x000f_ffff_ffff_f000
)

const (
	entries   = 512
	levels    = 4
	pageShift = 12
	levelBits = 9
)

// Tables is one tree of page tables.
type Tables struct {
	Root   uint64  // physical address of the uppermost table
	Window uintptr // where physical address 0 is seen
}

// table is one of the tables.
func (t *Tables) table(pa uint64) *[entries]uint64 {
	// Safety: pa comes from Root or from an entry; both are whole pages that were
	// allocated for tables, and the window shows all memory. The detour by
	// &addr is for vet, which cannot know that addr holds a pointer.
	addr := t.Window + uintptr(pa)
	return *(**[entries]uint64)(unsafe.Pointer(&addr))
}

// span is how many bytes an entry of a level covers; level 0 has pages.
func span(level int) uint64 { return 1 << (pageShift + levelBits*level) }

func index(va uint64, level int) int {
	return int(va >> (pageShift + levelBits*level) & (entries - 1))
}

// Map maps one page of a size to pa. It takes pages for tables from alloc, which
// returns them zeroed, and reports false if there are none left. What was mapped
// there before is forgotten.
func (t *Tables) Map(va, pa, size, flags uint64, alloc func() (uint64, bool)) bool {
	table := t.table(t.Root)
	level := levels - 1
	for ; span(level) > size; level-- {
		e := &table[index(va, level)]
		if *e&PagePresent == 0 {
			page, ok := alloc()
			if !ok {
				return false
			}
			*e = page | PagePresent | PageWrite // the rights are those of the last level
		}
		table = t.table(*e & pageAddress)
	}
	if level > 0 {
		flags |= PageBig
	}
	table[index(va, level)] = pa | flags | PagePresent
	return true
}

// Lookup returns the entry for va and the size of its page; 0 if there is none.
func (t *Tables) Lookup(va uint64) (entry, size uint64) {
	table := t.table(t.Root)
	for level := levels - 1; ; level-- {
		e := table[index(va, level)]
		switch {
		case e == 0:
			return 0, 0
		case level == 0 || e&PageBig != 0:
			return e, span(level)
		}
		table = t.table(e & pageAddress)
	}
}

// Physical returns what address an entry leads to.
func Physical(entry uint64) uint64 { return entry & pageAddress }

// Entry returns the entry that covers size bytes around va, which is a page or a
// table; 0 if there is neither.
func (t *Tables) Entry(va, size uint64) uint64 {
	table := t.table(t.Root)
	for level := levels - 1; ; level-- {
		e := table[index(va, level)]
		if e == 0 || span(level) == size {
			return e
		}
		table = t.table(e & pageAddress)
	}
}

// Each calls f for the entry of each page that there is from va to end, with its
// size, and stores what it returns; 0 takes the page out. It passes over what is
// absent in big steps. Big pages of 2 MiB must lie in the range as a whole.
func (t *Tables) Each(va, end uint64, f func(va, entry, size uint64) uint64) {
	for va < end {
		table := t.table(t.Root)
		level := levels - 1
		for ; level > 0; level-- {
			e := table[index(va, level)]
			if e&PageBig != 0 {
				table[index(va, level)] = f(va, e, span(level))
				break
			}
			if e&PagePresent == 0 {
				break
			}
			table = t.table(e & pageAddress)
		}
		if level > 0 {
			if va = va&^(span(level)-1) + span(level); va == 0 { // past the end of all
				return
			}
			continue
		}
		for i := index(va, 0); i < entries && va < end; i++ {
			if table[i] != 0 {
				table[i] = f(va, table[i], PageSize)
			}
			va += PageSize
		}
		if va == 0 {
			return
		}
	}
}

// Split makes small pages of the big page of 2 MiB around va; page is for their
// table. A processor must not know the same address by pages of two sizes (SDM volume
// 3, 4.10.2.3), so flush, which has all of them forget the address, is called while
// there is neither.
func (t *Tables) Split(va, page uint64, flush func()) {
	table := t.table(t.Root)
	for level := levels - 1; level > 1; level-- {
		table = t.table(table[index(va, level)] & pageAddress)
	}
	e := &table[index(va, 1)]
	small := *e &^ PageBig
	*e = 0
	flush()
	pages := t.table(page)
	for i := range pages {
		pages[i] = small + uint64(i)*PageSize
	}
	*e = page | PagePresent | PageWrite
}

// MaxPrune is how many tables lie above a page, without the root.
const MaxPrune = levels - 1

// Prune takes out the tables on the way to va that are empty, and returns how many and
// which they were. They are no tables any more when all processors have forgotten them.
func (t *Tables) Prune(va uint64) (pages [MaxPrune]uint64, n int) {
	var way [levels]*[entries]uint64
	way[levels-1] = t.table(t.Root)
	low := levels - 1
	for ; low > 0; low-- {
		e := way[low][index(va, low)]
		if e&PagePresent == 0 || e&PageBig != 0 {
			break
		}
		way[low-1] = t.table(e & pageAddress)
	}
	for level := low; level < levels-1 && *way[level] == [entries]uint64{}; level++ {
		above := &way[level+1][index(va, level+1)]
		pages[n] = *above & pageAddress
		n++
		*above = 0
	}
	return pages, n
}
