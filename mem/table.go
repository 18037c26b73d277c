package mem

import (
	"slices"
	"sync/atomic"
)

// table holds the private pages of a map, indexed by virtual page number, or the pages of a shared anonymous object,
// indexed by page index. It is a sorted slice of leaves; a leaf holds an aligned range of 512 indices, which is 2 MiB.
// Inserting a leaf moves the slots after it. A slot has 16 bytes, so at 16 GiB in use an insertion moves 64 KiB on
// average, once in 512 faults.
//
// After a fork, tables share leaves. A leaf with more than one reference is immutable;
// before a table changes it, the method own copies it.
type table struct {
	leaves []slot
	pages  int64 // number of present pages, not counting the page of zeros
}

type slot struct {
	key  uint64 // page number >> leafShift
	leaf *leaf
}

const (
	leafShift = BlockShift - PageShift
	leafMask  = BlockPages - 1
)

// leaf holds the pages of one block of 512 numbers. pages begins at number base within the block and grows by doubling,
// so that a leaf with one page does not need space for 512.
type leaf struct {
	refs  atomic.Int32
	base  uint16
	big   *Blocks // if not nil, the pages are one complete block of 512 contiguous physical pages, counted there
	count int32   // number of entries, including those with the page of zeros
	zeros int32   // number of entries with the page of zeros
	pages []Page
}

// minLeaf is the initial length of a leaf's pages.
const minLeaf = 8

// get returns the page with number i within the block, or 0.
func (l *leaf) get(i int) Page {
	if i -= int(l.base); uint(i) < uint(len(l.pages)) {
		return l.pages[i]
	}
	return 0
}

// grow enlarges pages so that it contains number i.
func (l *leaf) grow(i int) {
	if i-int(l.base) >= 0 && i-int(l.base) < len(l.pages) {
		return
	}
	low, high := i, i
	if len(l.pages) > 0 {
		low, high = min(i, int(l.base)), max(i, int(l.base)+len(l.pages)-1)
	}
	size := minLeaf
	for low/size != high/size {
		size *= 2
	}
	base := low / size * size
	pages := make([]Page, size)
	if len(l.pages) > 0 {
		copy(pages[int(l.base)-base:], l.pages)
	}
	l.base, l.pages = uint16(base), pages
}

// search returns the position of a key among the leaves, or the position at which to insert it, and whether the key
// exists. A page fault calls it for each page around the fault. slices.BinarySearchFunc would call a function in each step.
func (t *table) search(key uint64) (int, bool) {
	low, high := 0, len(t.leaves)
	for low < high {
		if middle := (low + high) / 2; t.leaves[middle].key < key {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(t.leaves) && t.leaves[low].key == key
}

// leaf returns the leaf that contains a page number, or nil.
func (t *table) leaf(number uint64) *leaf {
	if i, ok := t.search(number >> leafShift); ok {
		return t.leaves[i].leaf
	}
	return nil
}

// get returns the page with a number, or 0. exclusive reports that the leaf is not shared with another table.
func (t *table) get(number uint64) (p Page, exclusive bool) {
	l := t.leaf(number)
	if l == nil {
		return 0, false
	}
	return l.get(int(number & leafMask)), l.refs.Load() == 1
}

// reader is a faster get for numbers that are close to each other: it keeps the leaf of the last one. It is valid until the
// table changes.
type reader struct {
	table *table
	key   uint64
	leaf  *leaf // the leaf with the key; nil: none is known
}

func (r *reader) get(number uint64) (p Page, exclusive bool) {
	if key := number >> leafShift; r.leaf == nil || r.key != key {
		r.key, r.leaf = key, r.table.leaf(number)
	}
	if r.leaf == nil {
		return 0, false
	}
	return r.leaf.get(int(number & leafMask)), r.leaf.refs.Load() == 1
}

// own returns the leaf for a page number, so that the caller can change it. It creates the leaf if it does not exist,
// and copies it if other tables share it.
func (t *table) own(number uint64, memory Memory) *leaf {
	i, ok := t.search(number >> leafShift)
	if !ok {
		l := &leaf{}
		l.refs.Store(1)
		t.leaves = slices.Insert(t.leaves, i, slot{number >> leafShift, l})
		return l
	}
	return t.unshare(i, memory)
}

// unshare replaces a shared leaf by a copy, for a change of it: the copy is not a block. Each page of the leaf then has one
// more owner. If the other tables have dropped the old leaf in the meantime, unshare drops its last reference.
func (t *table) unshare(i int, memory Memory) *leaf {
	old := t.leaves[i].leaf
	if old.refs.Load() == 1 {
		return old
	}
	l := &leaf{base: old.base, count: old.count, zeros: old.zeros, pages: slices.Clone(old.pages)}
	l.refs.Store(1)
	for _, p := range l.pages {
		if p != 0 {
			Retain(memory, p)
		}
	}
	if old.refs.Add(-1) == 0 {
		old.uncount()
		for _, p := range old.pages {
			if p != 0 {
				Release(memory, p) // never the last reference: the copy has one, too
			}
		}
	}
	t.leaves[i].leaf = l
	return l
}

// set stores a page and takes over the caller's reference to it. It returns the previous page, whose reference the
// caller takes over, or 0.
func (t *table) set(number uint64, p Page, memory Memory) (old Page) {
	l := t.own(number, memory)
	i := int(number & leafMask)
	l.grow(i)
	old, l.pages[i-int(l.base)] = l.pages[i-int(l.base)], p
	l.divide()
	if old == 0 {
		l.count++
	} else {
		t.counts(l, old, -1, memory)
	}
	t.counts(l, p, 1, memory)
	return old
}

// counts updates the counters of the table and of a leaf when n pages like p are added to the leaf; n may be negative.
func (t *table) counts(l *leaf, p Page, n int32, memory Memory) {
	if p == memory.Zero() {
		l.zeros += n
	} else {
		t.pages += int64(n)
	}
}

// setBlock stores the pages of a block, and counts it in the statistics b. The table must have no page there except the
// page of zeros.
func (t *table) setBlock(number uint64, first Page, b *Blocks, memory Memory) {
	l := t.own(number, memory)
	b.count.Add(1)
	l.base, l.big, l.count, l.zeros = 0, b, BlockPages, 0
	l.pages = make([]Page, BlockPages)
	for i := range l.pages {
		l.pages[i] = first + Page(i)
	}
	t.pages += BlockPages
}

// clear removes the pages whose numbers are in [from, to). It calls release for each page whose leaf no
// other table shares.
func (t *table) clear(from, to uint64, memory Memory, release func(Page)) {
	if from >= to || len(t.leaves) == 0 {
		return
	}
	first, _ := t.search(from >> leafShift)
	next := first
	for ; next < len(t.leaves); next++ {
		base := t.leaves[next].key << leafShift
		if base >= to {
			break
		}
		t.clearLeaf(next, max(from, base)-base, min(to, base+BlockPages)-base, memory, release)
	}
	kept := slices.DeleteFunc(t.leaves[first:next], func(s slot) bool { return s.leaf == nil })
	t.leaves = slices.Delete(t.leaves, first+len(kept), next)
}

// clearLeaf removes pages from leaf i. If the leaf is then empty, it sets the leaf of the slot to nil.
func (t *table) clearLeaf(i int, from, to uint64, memory Memory, release func(Page)) {
	l := t.leaves[i].leaf
	if from == 0 && to == BlockPages {
		t.pages -= int64(l.count - l.zeros)
		t.leaves[i].leaf = nil
		if l.refs.Add(-1) == 0 {
			l.uncount()
			l.each(0, BlockPages, func(_ uint64, p Page) { release(p) })
		}
		return
	}
	if !l.any(from, to) {
		return
	}
	l = t.unshare(i, memory)
	l.divide()
	for n := max(from, uint64(l.base)); n < min(to, uint64(l.base)+uint64(len(l.pages))); n++ {
		p := l.pages[n-uint64(l.base)]
		if p == 0 {
			continue
		}
		l.pages[n-uint64(l.base)] = 0
		l.count--
		t.counts(l, p, -1, memory)
		release(p)
	}
	if l.count == 0 {
		t.leaves[i].leaf = nil
	}
}

// divide makes the pages of a leaf single pages, if they are a block.
func (l *leaf) divide() {
	if l.big != nil {
		l.big.split.Add(1)
		l.uncount()
		l.big = nil
	}
}

// uncount subtracts the leaf from the number of blocks in use, if its pages are a block.
func (l *leaf) uncount() {
	if l.big != nil {
		l.big.count.Add(-1)
	}
}

func (l *leaf) any(from, to uint64) (found bool) {
	l.each(from, to, func(uint64, Page) { found = true })
	return found
}

// each calls f for the pages of a leaf whose numbers are in [from, to).
func (l *leaf) each(from, to uint64, f func(i uint64, p Page)) {
	base := uint64(l.base)
	for n := max(from, base); n < min(to, base+uint64(len(l.pages))); n++ {
		if p := l.pages[n-base]; p != 0 {
			f(n, p)
		}
	}
}

// each calls f for the pages whose numbers are in [from, to), in order.
func (t *table) each(from, to uint64, f func(number uint64, p Page)) {
	i, _ := t.search(from >> leafShift)
	for ; i < len(t.leaves); i++ {
		base := t.leaves[i].key << leafShift
		if base >= to {
			return
		}
		t.leaves[i].leaf.each(max(from, base)-base, min(to, base+BlockPages)-base,
			func(n uint64, p Page) { f(base+n, p) })
	}
}

// next returns the first number in [from, to) that has a page; to if there is none.
func (t *table) next(from, to uint64) uint64 {
	for i, _ := t.search(from >> leafShift); i < len(t.leaves); i++ {
		base := t.leaves[i].key << leafShift
		for n := max(from, base); n < min(to, base+BlockPages); n++ {
			if t.leaves[i].leaf.get(int(n-base)) != 0 {
				return n
			}
		}
		if base+BlockPages >= to {
			break
		}
	}
	return to
}

// share returns a new table with the same leaves, which both tables then share.
func (t *table) share() table {
	for _, s := range t.leaves {
		s.leaf.refs.Add(1)
	}
	return table{leaves: slices.Clone(t.leaves), pages: t.pages}
}

// move moves a range of pages, beginning at the page number from, to the page number to.
// The parameter count is the number of pages. The table must have no pages at the new
// numbers. If all three are multiples of 512, whole leaves move without being copied.
func (t *table) move(from, to, count uint64, memory Memory) {
	if (from|to|count)&leafMask == 0 {
		t.moveLeaves(from>>leafShift, to>>leafShift, count>>leafShift)
		return
	}
	type moved struct {
		number uint64
		page   Page
	}
	var all []moved
	t.each(from, from+count, func(n uint64, p Page) {
		Retain(memory, p)
		all = append(all, moved{n - from + to, p})
	})
	t.clear(from, from+count, memory, func(p Page) { Release(memory, p) })
	for _, v := range all {
		t.set(v.number, v.page, memory)
	}
}

func (t *table) moveLeaves(from, to, count uint64) {
	first, _ := t.search(from)
	next, _ := t.search(from + count)
	moving := slices.Clone(t.leaves[first:next])
	t.leaves = slices.Delete(t.leaves, first, next)
	for i := range moving {
		moving[i].key += to - from
	}
	at, _ := t.search(to)
	t.leaves = slices.Insert(t.leaves, at, moving...)
}
