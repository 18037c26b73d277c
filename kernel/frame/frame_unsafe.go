// Package frame hands out physical memory, by pages of 4 KiB and by blocks of 2 MiB,
// which are the processor's big pages.
//
// A block whose pages are all free is whole. Single pages come from a block that is
// not whole, while there is one, so that others stay whole; and a block whose last
// page comes back is whole again.
//
// For each block of the address space there is a record of 16 bytes, in a table for
// which the owner finds room. Free pages that have been used are in a list, which runs
// through the pages themselves; those that have not are known by where they begin, so
// memory need not be touched before it is used.
//
// It allocates nothing of Go's, and does not lock: its owner does.
package frame

import "unsafe"

// Sizes of pages and of blocks.
const (
	Size      = 4096
	BlockSize = 2 << 20

	blockPages = BlockSize / Size
)

// block is the record of one. Its free pages are those of the list, and those from
// fresh up to limit.
type block struct {
	prev, next   uint32 // in a list of blocks: numbers plus one; 0: none
	free         uint16 // pages
	fresh, limit uint16 // pages
	list         uint16 // the first page of the list plus one; 0: none
}

const blockRecord = uint64(unsafe.Sizeof(block{}))

// Allocator has the free memory. The zero value has none: see Init.
type Allocator struct {
	window  uintptr // where physical address 0 is seen
	table   uintptr // of blocks
	blocks  uint32
	whole   uint32 // a list of blocks
	partial uint32 // a list of blocks of which some pages are free
	free    uint64 // pages
	total   uint64 // pages
}

// TableSize is how many bytes the table takes for memory below an address.
func TableSize(end uint64) uint64 {
	return ((end+BlockSize-1)/BlockSize*blockRecord + Size - 1) &^ (Size - 1)
}

// Init says where memory is seen, and where the table is for memory below end: so
// much is seen already.
func (a *Allocator) Init(window uintptr, table, end uint64) {
	*a = Allocator{window: window, table: window + uintptr(table), blocks: uint32((end + BlockSize - 1) / BlockSize)}
	for i := range a.blocks {
		*a.block(i) = block{}
	}
}

// Add gives the allocator the whole pages from start to end, which are below the end
// that Init was told. Page 0 is never taken: its address means none. Memory need not
// be seen yet, but for blocks of which it has a part already.
func (a *Allocator) Add(start, end uint64) {
	start = max((start+Size-1)&^(Size-1), Size)
	end = min(end&^(Size-1), uint64(a.blocks)*BlockSize)
	if start >= end {
		return
	}
	a.total += (end - start) / Size
	// Downwards, since the first in the list is the last that was put there.
	for end > start {
		low := max((end-1)&^(BlockSize-1), start)
		i, from, to := number(low), uint16(low%BlockSize/Size), uint16((end-1)%BlockSize/Size+1)
		if b := a.block(i); b.limit == 0 {
			b.fresh, b.limit, b.free = from, to, to-from
			a.free += uint64(b.free)
			a.link(i)
		} else {
			for at := low; at < end; at += Size {
				a.Free(at)
			}
		}
		end = low
	}
}

// Alloc returns the address of a zeroed page, or false.
func (a *Allocator) Alloc() (uint64, bool) {
	at := a.partial
	if at == 0 {
		at = a.whole
	}
	if at == 0 {
		return 0, false
	}
	i := at - 1
	b := a.block(i)
	a.unlink(i)
	pa := uint64(i) * BlockSize
	if b.list != 0 {
		pa += uint64(b.list-1) * Size
		b.list = uint16(a.page(pa)[0])
	} else {
		pa += uint64(b.fresh) * Size
		b.fresh++
	}
	b.free--
	a.free--
	a.link(i)
	clear(a.page(pa)[:])
	return pa, true
}

// AllocBlock returns the address of a zeroed block, or false.
func (a *Allocator) AllocBlock() (uint64, bool) {
	pa, ok := a.Contiguous(blockPages)
	if ok {
		// Safety: as in page.
		addr := a.window + uintptr(pa)
		clear((*(**[BlockSize]byte)(unsafe.Pointer(&addr)))[:])
	}
	return pa, ok
}

// Contiguous returns pages that lie side by side; they are not zeroed.
func (a *Allocator) Contiguous(pages uint64) (uint64, bool) {
	if pages == 0 || pages > uint64(a.blocks)*blockPages {
		return 0, false
	}
	if pages < blockPages {
		for at := a.partial; at != 0; at = a.block(at - 1).next {
			if b := a.block(at - 1); uint64(b.limit-b.fresh) >= pages {
				return a.cut(at-1, pages), true
			}
		}
	}
	count := uint32((pages + blockPages - 1) / blockPages)
	if count == 1 {
		if a.whole == 0 {
			return 0, false
		}
		return a.cut(a.whole-1, pages), true
	}
	run := uint32(0)
	for i := range a.blocks {
		if run++; a.block(i).free != blockPages {
			run = 0
		}
		if run == count {
			first := i + 1 - count
			for n := first; n < i; n++ {
				a.cut(n, blockPages)
			}
			a.cut(i, pages-uint64(count-1)*blockPages)
			return uint64(first) * BlockSize, true
		}
	}
	return 0, false
}

// cut takes pages that have not been used off a block.
func (a *Allocator) cut(i uint32, pages uint64) uint64 {
	b := a.block(i)
	a.unlink(i)
	pa := uint64(i)*BlockSize + uint64(b.fresh)*Size
	b.fresh += uint16(pages)
	b.free -= uint16(pages)
	a.free -= pages
	a.link(i)
	return pa
}

// Free takes back a page, be it of a block that was allotted in one piece.
func (a *Allocator) Free(pa uint64) {
	i := number(pa)
	b := a.block(i)
	a.unlink(i)
	a.page(pa)[0] = uint64(b.list)
	b.list = uint16(pa%BlockSize/Size) + 1
	b.free++
	a.free++
	a.link(i)
}

// FreeBlock takes back what AllocBlock returned.
func (a *Allocator) FreeBlock(pa uint64) {
	a.block(number(pa)).free = blockPages
	a.free += blockPages
	a.link(number(pa))
}

// Pages returns how many pages are free, and how many were ever added.
func (a *Allocator) Pages() (free, total uint64) { return a.free, a.total }

// number is that of the block that an address lies in.
func number(pa uint64) uint32 { return uint32(pa / BlockSize) }

// link puts a block into the list where it belongs now.
func (a *Allocator) link(i uint32) {
	b := a.block(i)
	list := a.listOf(b)
	if list == nil {
		return
	}
	if b.free == blockPages {
		b.fresh, b.limit, b.list = 0, blockPages, 0
	}
	b.prev, b.next = 0, *list
	if b.next != 0 {
		a.block(b.next - 1).prev = i + 1
	}
	*list = i + 1
}

// unlink takes a block out of its list, if it is in one.
func (a *Allocator) unlink(i uint32) {
	b := a.block(i)
	list := a.listOf(b)
	if list == nil {
		return
	}
	if b.prev != 0 {
		a.block(b.prev - 1).next = b.next
	} else {
		*list = b.next
	}
	if b.next != 0 {
		a.block(b.next - 1).prev = b.prev
	}
}

// listOf is the list that a block is in; nil if none of its pages is free.
func (a *Allocator) listOf(b *block) *uint32 {
	switch b.free {
	case 0:
		return nil
	case blockPages:
		return &a.whole
	}
	return &a.partial
}

func (a *Allocator) block(i uint32) *block {
	// Safety: i is below blocks, and the owner gave the table room for so many. The
	// detour by &addr is for vet, which cannot know that addr holds a pointer.
	addr := a.table + uintptr(i)*uintptr(blockRecord)
	return *(**block)(unsafe.Pointer(&addr))
}

func (a *Allocator) page(pa uint64) *[Size / 8]uint64 {
	// Safety: pa is a page that was added, and the window shows it.
	addr := a.window + uintptr(pa)
	return *(**[Size / 8]uint64)(unsafe.Pointer(&addr))
}
