package user

import (
	"sync"

	"loam/arch/amd64"
	"loam/kernel"
)

// Pages allocates physical pages. It takes pages from package kernel in batches, so that most calls do not take the
// kernel's lock. Any goroutine may call its methods.
type Pages struct {
	window uintptr // address at which physical address 0 is mapped
	mu     sync.Mutex
	free   []uint64 // physical addresses of free pages
	used   Use
}

// Use counts pages that were taken and not freed.
type Use struct {
	All     int64
	Tables  int64 // part of All: page tables, and one page for each Space
	Threads int64 // part of All: registers of threads
}

// shared allocates the pages of contexts, of page tables, and of processes' memory.
var shared = Pages{window: kernel.WindowTo(0)}

// Shared returns the machine's page allocator.
func Shared() *Pages { return &shared }

const (
	blockPages = amd64.BigPageSize / amd64.PageSize

	batch    = 64  // number of pages that are taken from package kernel at a time
	mostFree = 512 // maximum number of free pages kept; above it, half of them are returned
)

// Take returns the physical address of a page with undefined content; false if memory is exhausted.
func (p *Pages) Take() (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		p.free = append(p.free, make([]uint64, batch)...)
		got, errno := callWithArray(kernel.CallTake, p.free)
		if errno != 0 {
			got = 0
		}
		if n = int(got); n == 0 {
			p.free = p.free[:0]
			return 0, false
		}
	}
	pa := p.free[n-1]
	p.free = p.free[:n-1]
	p.used.All++
	return pa, true
}

// TakeZeroed returns the physical address of a zeroed page; false if memory is exhausted.
func (p *Pages) TakeZeroed() (uint64, bool) {
	pa, ok := p.Take()
	if ok {
		clear(p.Bytes(pa))
	}
	return pa, ok
}

// takeTable returns a zeroed page for a Space, and counts it as a page table. giveTable frees such a page.
func (p *Pages) takeTable() (uint64, bool) { return p.takeFor(&p.used.Tables) }

// takeTableAnyway is takeTable, but takes the page from the kernel's reserve if no other is free.
func (p *Pages) takeTableAnyway() (uint64, bool) {
	if pa, ok := p.takeTable(); ok {
		return pa, true
	}
	pa, errno := kernelCall(kernel.CallTakeTable, 0, 0)
	if errno != 0 {
		return 0, false
	}
	p.adoptTable()
	return uint64(pa), true
}

// takeThread returns a zeroed page for the registers of a thread, and counts it. giveThread frees such a
// page.
func (p *Pages) takeThread() (uint64, bool) { return p.takeFor(&p.used.Threads) }

// takeFor returns a zeroed page, and adds it to a counter, the field of p.used that purpose points to.
func (p *Pages) takeFor(purpose *int64) (uint64, bool) {
	pa, ok := p.TakeZeroed()
	if ok {
		p.count(purpose, 1)
	}
	return pa, ok
}

func (p *Pages) giveTable(pa uint64) {
	p.count(&p.used.Tables, -1)
	p.Give(pa)
}

func (p *Pages) giveThread(pa uint64) {
	p.count(&p.used.Threads, -1)
	p.Give(pa)
}

// count adds n to a field of p.used.
func (p *Pages) count(purpose *int64, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*purpose += n
}

// adoptTable counts a page of a Space that package kernel has allocated. giveTable frees the page.
func (p *Pages) adoptTable() {
	p.count(&p.used.All, 1)
	p.count(&p.used.Tables, 1)
}

// Used returns the number of pages in use.
func (p *Pages) Used() Use {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// ShareClock gives the kernel a zeroed page at pa, in which it keeps the clocks as a vdso.Data. The page is never
// freed.
func ShareClock(pa uint64) { kernelCall(kernel.CallClock, uintptr(pa), 0) }

// TakeBlock returns the physical address of a big page with undefined content; false if none is free or memory is short.
// Its pages may be freed one by one by Give.
func (p *Pages) TakeBlock() (uint64, bool) {
	pa, errno := kernelCall(kernel.CallTakeBlock, 0, 0)
	if errno != 0 {
		return 0, false
	}
	p.count(&p.used.All, blockPages)
	return uint64(pa), true
}

// GiveBlock frees a big page. No CPU may have a translation to it.
func (p *Pages) GiveBlock(pa uint64) {
	p.count(&p.used.All, -blockPages)
	kernelCall(kernel.CallGiveBlock, uintptr(pa), 0)
}

// Drain returns the free pages that are kept here to package kernel, for the heap.
func (p *Pages) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) > 0 {
		callWithArray(kernel.CallGive, p.free)
		p.free = p.free[:0]
	}
}

// Give frees a page. No CPU may have a translation to it.
func (p *Pages) Give(pa uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used.All--
	p.free = append(p.free, pa)
	if len(p.free) > mostFree {
		keep := mostFree / 2
		callWithArray(kernel.CallGive, p.free[keep:])
		p.free = p.free[:keep]
	}
}
