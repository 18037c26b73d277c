// Package page allocates physical memory, in pages of 4 KiB and in blocks of 2 MiB, the processor's big pages.
//
// A block is whole while all its pages are free. Single pages come from a block that is not whole, if there is one,
// to keep other blocks whole. A block becomes whole again when its last page is freed.
//
// Each block of the address space has a record of 16 bytes in a table; the owner provides the table's memory. Freed
// pages are in a list that is stored in the pages themselves. Pages that were never used are only counted (fresh to
// limit), so memory is not touched before it is used.
//
// The package does not use Go's allocator and does not lock: the caller provides the locking.
package page

import "unsafe"

// Sizes of pages and of blocks.
const (
	Size      = 4096
	BlockSize = 2 << 20

	blockPages = BlockSize / Size
)

// block is the record of a block. Its free pages are the pages in the list, and the pages from fresh up to limit, which were
// never used.
type block struct {
	prev, next   uint32 // neighbours in a list of blocks, as block numbers plus one; 0: none
	free         uint16 // number of free pages
	fresh, limit uint16 // index of the first page that was never used, and of the end of the block
	list         uint16 // index of the first page in the list of freed pages, plus one; 0: none
}

const blockRecord = uint64(unsafe.Sizeof(block{}))

// Allocator manages the free memory. The zero value has none: call Init first.
type Allocator struct {
	window  uintptr // address at which physical address 0 is mapped
	table   uintptr // address of the table of blocks
	blocks  uint32
	whole   uint32 // first block in the list of whole blocks
	partial uint32 // first block in the list of blocks with some free pages
	free    uint64 // number of free pages
	total   uint64 // number of pages that were ever added
}

// TableSize returns the size of the table for memory below end, in bytes.
func TableSize(end uint64) uint64 {
	return ((end+BlockSize-1)/BlockSize*blockRecord + Size - 1) &^ (Size - 1)
}

// Init sets the address of the window, and the physical address of the table for memory below end. The table's
// memory must be mapped already.
func (a *Allocator) Init(window uintptr, table, end uint64) {
	*a = Allocator{window: window, table: window + uintptr(table), blocks: uint32((end + BlockSize - 1) / BlockSize)}
	for i := range a.blocks {
		*a.block(i) = block{}
	}
}

// Add adds the whole pages from start to end, as far as they are below Init's end. Page 0 is never added, since
// address 0 means none. The memory need not be mapped yet, except in blocks to which memory was added before.
func (a *Allocator) Add(start, end uint64) {
	start = max((start+Size-1)&^(Size-1), Size)
	end = min(end&^(Size-1), uint64(a.blocks)*BlockSize)
	if start >= end {
		return
	}
	a.total += (end - start) / Size
	// Pages are added in descending order. A block is added at the head of its list, so the lowest block ends up first.
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

// Alloc returns the physical address of a zeroed page; false if none is free.
func (a *Allocator) Alloc() (uint64, bool) {
	pa, ok := a.Take()
	if ok {
		clear(a.page(pa)[:])
	}
	return pa, ok
}

// Take returns the physical address of a page that is not zeroed; false if none is free.
func (a *Allocator) Take() (uint64, bool) {
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
	return pa, true
}

// AllocBlock returns the physical address of a zeroed block; false if none is whole.
func (a *Allocator) AllocBlock() (uint64, bool) {
	pa, ok := a.Contiguous(blockPages)
	if ok {
		// Safety: the window maps the block, as for page.
		addr := a.window + uintptr(pa)
		clear((*(**[BlockSize]byte)(unsafe.Pointer(&addr)))[:])
	}
	return pa, ok
}

// Contiguous returns the physical address of contiguous pages, which are not zeroed; false if there is no such
// range. It uses only pages that were never allocated, and blocks in which all pages are free.
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

// cut allocates pages of block i that were never used, and returns the physical address of the first one.
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

// Free frees a page. The page may be part of an allocation by Contiguous.
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

// FreeBlock frees a block that AllocBlock returned.
func (a *Allocator) FreeBlock(pa uint64) {
	a.block(number(pa)).free = blockPages
	a.free += blockPages
	a.link(number(pa))
}

// Pages returns the number of free pages and the number of pages ever added.
func (a *Allocator) Pages() (free, total uint64) { return a.free, a.total }

// number returns the number of the block that contains an address.
func number(pa uint64) uint32 { return uint32(pa / BlockSize) }

// link adds a block to the list that matches its number of free pages.
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

// unlink removes a block from its list, if it is in one.
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

// listOf returns the list that contains a block; nil if it has no free pages.
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
	// Safety: i is below blocks, and the owner provided a table of that size. The conversion goes through &addr
	// because go vet rejects a direct conversion of an integer to a pointer.
	addr := a.table + uintptr(i)*uintptr(blockRecord)
	return *(**block)(unsafe.Pointer(&addr))
}

func (a *Allocator) page(pa uint64) *[Size / 8]uint64 {
	// Safety: pa is a page that was added, and the window maps it.
	addr := a.window + uintptr(pa)
	return *(**[Size / 8]uint64)(unsafe.Pointer(&addr))
}
