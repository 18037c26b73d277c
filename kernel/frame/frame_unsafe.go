// Package frame hands out physical memory, a page at a time.
//
// Memory comes in ranges. What has never been used is cut off the front of a
// range; what is given back goes to a list that runs through the free pages
// themselves, so the allocator takes no memory of its own, and the machine's
// memory need not be touched before it is used.
//
// It allocates nothing, and does not lock: its owner does.
package frame

import "unsafe"

// Size is the size of a page.
const Size = 4096

// maxRanges is how many pieces of memory there may be.
const maxRanges = 64

// Allocator has the free memory. The zero value has none.
type Allocator struct {
	Window uintptr // where physical address 0 is seen

	ranges [maxRanges]struct{ next, end uint64 }
	count  int
	list   uint64 // the first free page of the list; 0: none
	free   uint64 // pages
	total  uint64 // pages
}

// Add gives the allocator the whole pages from start to end. Page 0 is never
// taken: its address means none. It reports false if that is a piece too many.
func (a *Allocator) Add(start, end uint64) bool {
	start = max((start+Size-1)&^(Size-1), Size)
	end &^= Size - 1
	if start >= end {
		return true
	}
	if a.count == maxRanges {
		return false
	}
	a.ranges[a.count].next, a.ranges[a.count].end = start, end
	a.count++
	a.free += (end - start) / Size
	a.total += (end - start) / Size
	return true
}

// Alloc returns the address of a zeroed page, or false.
func (a *Allocator) Alloc() (uint64, bool) {
	if a.list != 0 {
		pa := a.list
		p := a.page(pa)
		a.list = p[0]
		a.free--
		clear(p[:])
		return pa, true
	}
	pa, ok := a.Contiguous(1)
	if ok {
		p := a.page(pa)
		clear(p[:])
	}
	return pa, ok
}

// Contiguous returns pages that have never been used and lie side by side; they
// are not zeroed. It is for what is made once.
func (a *Allocator) Contiguous(pages uint64) (uint64, bool) {
	for i := range a.ranges[:a.count] {
		r := &a.ranges[i]
		if (r.end-r.next)/Size >= pages {
			pa := r.next
			r.next += pages * Size
			a.free -= pages
			return pa, true
		}
	}
	return 0, false
}

// Free takes back a page that Alloc returned.
func (a *Allocator) Free(pa uint64) {
	a.page(pa)[0] = a.list
	a.list = pa
	a.free++
}

// Pages returns how many pages are free, and how many were ever added.
func (a *Allocator) Pages() (free, total uint64) { return a.free, a.total }

func (a *Allocator) page(pa uint64) *[Size / 8]uint64 {
	// Safety: pa is a page that was added, and the window shows it. The detour by
	// &addr is for vet, which cannot know that addr holds a pointer.
	addr := a.Window + uintptr(pa)
	return *(**[Size / 8]uint64)(unsafe.Pointer(&addr))
}
