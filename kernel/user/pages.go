package user

import (
	"sync"

	"loam/kernel"
)

// Pages allocates physical pages. It gets them from the kernel's core in batches, so that most calls do not take
// the core's lock. Any goroutine may call its methods.
type Pages struct {
	window uintptr // address at which physical address 0 is mapped
	mu     sync.Mutex
	free   []uint64 // physical addresses of free pages
	used   int64    // number of pages that were taken and not given back
}

// shared provides the pages of contexts, page tables and the memory of processes.
var shared = Pages{window: kernel.WindowTo(0)}

// Shared returns the machine's page allocator.
func Shared() *Pages { return &shared }

const (
	batch    = 64  // number of pages that are taken from the core at a time
	mostFree = 512 // maximum number of free pages kept; above it, half of them are returned
)

// Take returns the address of a page with undefined content; false if memory is exhausted.
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
	p.used++
	return pa, true
}

// TakeZeroed returns the address of a zeroed page; false if memory is exhausted.
func (p *Pages) TakeZeroed() (uint64, bool) {
	pa, ok := p.Take()
	if ok {
		clear(p.Bytes(pa))
	}
	return pa, ok
}

// adopt counts a page that the core has allocated and that Give will free.
func (p *Pages) adopt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used++
}

// Used returns the number of pages that were taken and not given back.
func (p *Pages) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// ShareClock makes the kernel keep its clocks in a zeroed page, as vdso.Data. The page is never freed.
func ShareClock(pa uint64) { kernelCall(kernel.CallClock, uintptr(pa), 0) }

// Give frees a page. No CPU may have a translation to it.
func (p *Pages) Give(pa uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	p.free = append(p.free, pa)
	if len(p.free) > mostFree {
		keep := mostFree / 2
		callWithArray(kernel.CallGive, p.free[keep:])
		p.free = p.free[:keep]
	}
}
