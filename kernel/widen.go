package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/thread"
)

// Under emulation, this file keeps the emulator's TLB large. QEMU caches the translations of each CPU in a table that
// begins with 256 entries. It doubles the table only when all translations are flushed while most entries are in use
// (QEMU's accel/tcg/cputlb.c, tlb_mmu_resize_locked).
//
// A kernel with an address space for each process flushes often. Loam has one address space and never flushes for this
// reason, so the table stayed small: a server walked the page tables a hundred times for each request. Therefore widen
// regularly fills the table and flushes it (decision 32).

const (
	// widenEvery is the interval, in nanoseconds. QEMU shrinks a table after 100 ms in which less than a third of
	// it was used.
	widenEvery = 250e6
	// widenPages is enough to grow a table of 1024 entries to 2048. Together with a program's own pages it also
	// keeps the table at that size.
	widenPages = 768
	// widenFrom is the physical address of the program, where every machine has memory.
	widenFrom = 1 << 20
)

// widen makes QEMU enlarge its table of translations, if widenEvery has passed since the last time.
func (c *cpu) widen(now int64) {
	if now < c.widenAt {
		return
	}
	rounds := 1
	if c.widenAt == 0 {
		rounds = 3 // number of doublings from 256 entries to 2048
	}
	c.widenAt = thread.Never
	if !Emulated {
		return
	}
	c.widenAt = now + widenEvery
	for range rounds {
		for i := range uint64(widenPages) {
			atomic.LoadUint32(word32(boot.Window + widenFrom + i*amd64.PageSize))
		}
		flushAll()
	}
}
