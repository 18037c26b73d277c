package amd64

import "unsafe"

// Page tables of four levels: SDM volume 3, 4.5. Tables accesses them through a window that maps all of physical
// memory. So a page table needs no mapping of its own.
//
// Tables neither locks nor flushes translations. A caller that removes a right or a page must flush before the page is
// reused. A caller that only adds pages or rights need not flush: processors do not cache absent entries.

// Sizes of the pages that a processor can map, in bytes.
const (
	PageSize     = 1 << 12
	BigPageSize  = 1 << 21
	HugePageSize = 1 << 30
)

// Bits of an entry: SDM volume 3, tables 4-15 to 4-20.
const (
	PagePresent   = 1 << 0
	PageWrite     = 1 << 1
	PageUser      = 1 << 2
	PageAccessed  = 1 << 5
	PageDirty     = 1 << 6
	PageUncached  = 1<<3 | 1<<4 // write-through and cache disable: for device registers
	PageBig       = 1 << 7      // in an entry above the lowest level: the entry maps a big page, not a table
	PageGlobal    = 1 << 8
	PageKept      = 1 << 9 // without PagePresent: the entry keeps a page that is not accessible; the processor ignores this bit
	PageNoExecute = 1 << 63

	pageAddress = 0x000f_ffff_ffff_f000
)

const (
	entries   = 512
	levels    = 4
	pageShift = 12
	levelBits = 9
)

// Tables is a tree of page tables.
type Tables struct {
	Root   uint64  // physical address of the root table
	Window uintptr // address at which physical address 0 is mapped

	// Pinned prevents Prune from removing entries of the root table. It is set if other root tables contain copies of
	// the entries.
	Pinned bool

	// Second is the physical address of another root table, or 0. It has the same entries for the lower half. The entries in
	// Root forbid execution, so that code of the lower half runs only on the second table.
	Second uint64
}

// table returns the table at a physical address.
func (t *Tables) table(pa uint64) *[entries]uint64 {
	// Safety: pa comes from Root or from an entry; both are whole pages that were allocated for tables, and the
	// window maps all memory. The conversion goes through &addr because go vet rejects a direct conversion of
	// an integer to a pointer.
	addr := t.Window + uintptr(pa)
	return *(**[entries]uint64)(unsafe.Pointer(&addr))
}

// span returns the number of bytes that an entry of a level covers; entries of level 0 are pages of 4 KiB.
func span(level int) uint64 { return 1 << (pageShift + levelBits*level) }

func index(va uint64, level int) int {
	return int(va >> (pageShift + levelBits*level) & (entries - 1))
}

// Map maps one page of a size at va to pa and replaces an existing mapping. It allocates tables with alloc, which
// returns zeroed pages. It returns false if alloc fails.
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
			*e = page | PagePresent | PageWrite | flags&PageUser // the entry of the page itself restricts the rights
			if level == levels-1 {
				t.mirror(index(va, level))
			}
		}
		table = t.table(*e & pageAddress)
	}
	if level > 0 {
		flags |= PageBig
	}
	table[index(va, level)] = pa | flags | PagePresent
	return true
}

// Reserve allocates the table for va one level below the root, if it does not exist yet. It returns false if alloc
// fails.
func (t *Tables) Reserve(va uint64, alloc func() (uint64, bool)) bool {
	e := &t.table(t.Root)[index(va, levels-1)]
	if *e&PagePresent == 0 {
		page, ok := alloc()
		if !ok {
			return false
		}
		*e = page | PagePresent | PageWrite
	}
	return true
}

// Remove removes all pages from va to end, which must be in the lower half, and the tables that are then empty. It
// calls gone with the physical address of each removed table, which processors may still have cached. A big page that
// lies only partly in the range is removed as a whole. Remove reports whether it removed a page.
func (t *Tables) Remove(va, end uint64, gone func(pa uint64)) bool {
	if va >= end {
		return false
	}
	return t.remove(t.table(t.Root), levels-1, va, end-1, gone)
}

// remove implements Remove for one table and all below it. last is the last byte of the range.
func (t *Tables) remove(table *[entries]uint64, level int, va, last uint64, gone func(pa uint64)) (found bool) {
	for i := index(va, level); i <= index(last, level); i++ {
		e := &table[i]
		first := va
		va = va&^(span(level)-1) + span(level)
		switch {
		case *e == 0:
			continue
		case level == 0 || *e&PageBig != 0:
			found = true
		default:
			below := t.table(*e & pageAddress)
			found = t.remove(below, level-1, first, min(last, va-1), gone) || found
			if *below != [entries]uint64{} {
				continue
			}
			gone(*e & pageAddress)
		}
		*e = 0
		if level == levels-1 {
			t.mirror(i)
		}
	}
	return found
}

// mirror copies an entry of the root table to the second root table, if there is one.
func (t *Tables) mirror(i int) {
	if t.Second == 0 {
		return
	}
	e := &t.table(t.Root)[i]
	t.table(t.Second)[i] = *e &^ PageNoExecute
	if *e != 0 {
		*e |= PageNoExecute
	}
}

// Lookup returns the entry for va and the size of its page; zeros if there is none.
func (t *Tables) Lookup(va uint64) (entry, size uint64) {
	// Copies from and to processes call this for each page, so it is written for the compiler: a shift in place of a
	// level, and one branch per level.
	const top = pageShift + levelBits*(levels-1)
	table := t.table(t.Root)
	for shift := uint(top); shift > pageShift; shift -= levelBits {
		e := table[va>>(shift&63)&(entries-1)]
		if e&(PageBig|PagePresent) != PagePresent {
			if e&PageBig == 0 {
				return 0, 0
			}
			return e, 1 << (shift & 63)
		}
		table = t.table(e & pageAddress)
	}
	e := table[va>>pageShift&(entries-1)]
	if e == 0 {
		return 0, 0
	}
	return e, PageSize
}

// Physical returns the physical address in an entry.
func Physical(entry uint64) uint64 { return entry & pageAddress }

// Entry returns the entry, of a page or a table, that covers exactly the size bytes around va; 0 if there is none.
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

// Each calls f for the entry of each page from va to end, with its size, and stores the result of f as the new
// entry; 0 removes the page. Absent ranges are skipped quickly. Big pages of 2 MiB must lie wholly in the range.
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
			if va = va&^(span(level)-1) + span(level); va == 0 { // the end of the address space
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

// Split replaces the big page of 2 MiB that contains va by small pages. page is a free page for their table. A
// processor must not have translations of one address with two page sizes (SDM volume 3, 4.10.2.3). So Split clears the
// entry, calls flush, which must flush the address on all CPUs, and then installs the table.
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

// MaxPrune is the number of tables above a page, not counting the root.
const MaxPrune = levels - 1

// Prune removes the empty tables on the path from the root to va. It returns the physical addresses of their pages, and
// the number of these. The pages may be reused when no processor has cached the tables any more.
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
	top := levels - 1
	if t.Pinned {
		top--
	}
	for level := low; level < top && *way[level] == [entries]uint64{}; level++ {
		above := &way[level+1][index(va, level+1)]
		pages[n] = *above & pageAddress
		n++
		*above = 0
	}
	return pages, n
}
