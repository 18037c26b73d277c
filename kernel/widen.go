package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/thread"
)

// An emulator keeps the translations of a CPU in a table, as the CPU has its TLB. QEMU's
// begins with 256 entries, and becomes larger, by twice, only when all translations are
// dropped while most entries are in use (accel/tcg/cputlb.c there, tlb_mmu_resize_locked).
// Kernels that have an address space for each process drop them all the time. We have one,
// and never do: a server walked the page tables a hundred times for each request. So we
// fill the table and drop it, now and then (decision 32).

const (
	// widenEvery is how often, in nanoseconds. A table of which less than a third was in
	// use becomes smaller after a tenth of a second.
	widenEvery = 250e6
	// widenPages are so many that a table of 1024 becomes one of 2048, which with a
	// program's own pages does not become smaller.
	widenPages = 768
	// widenFrom is where memory is on each machine: the program lies there.
	widenFrom = 1 << 20
)

// widen makes the table larger if it is its time.
func (c *cpu) widen(now int64) {
	if now < c.widenAt {
		return
	}
	rounds := 1
	if c.widenAt == 0 {
		rounds = 3 // from 256 entries to 2048
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
		amd64.WriteCR3(tables.Root)
	}
}
