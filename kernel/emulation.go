package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel/thread"
)

// This file has all code that exists because a machine without KVM emulates every instruction: an interrupt between
// CPUs, a PAUSE instruction and a walk of the page tables take far longer there than on a processor. One switch,
// Emulated, enables this code. Its part in the Go runtime is in loam_emulation.go of unikernel/overlay. Decisions 23 and
// 32 have the measurements.

// Emulated is set once, early, on a machine that emulates every instruction. The runtime reads it too.
var Emulated bool

// relax is called in the body of a loop that waits for another CPU. Under emulation it does nothing: a PAUSE instruction
// leaves translated code and takes the emulator's locks, which costs a thousand times as much as on a processor.
func relax() {
	if !Emulated {
		amd64.Pause()
	}
}

// patience is how long a CPU keeps threads that become ready on it although another CPU is idle, in nanoseconds since the
// CPU itself was last idle.
//
// Under emulation an interrupt between CPUs takes as long as serving a whole request, because two threads of the host have
// to synchronise. A CPU that has just started work usually finishes earlier, and then runs the ready thread itself. On a
// real processor such an interrupt takes a microsecond or two, so ready threads are shared at once.
const patience = 1e6

// Held is not 0 while a ready thread stays with a busy CPU though another CPU is idle. The runtime, which knows how
// much work there is, reads it (runtime.wakep). Atomic.
var Held uint32

// noteBusy records since when the CPU has been busy.
func (c *cpu) noteBusy(now int64) {
	if c.current == thread.None {
		c.busySince = 0
	} else if c.busySince == 0 {
		c.busySince = now
	}
}

// holdUntil returns the time until which the CPU keeps ready threads, or 0 if it shares them now.
func (c *cpu) holdUntil(now int64) int64 {
	if !Emulated || now-c.busySince >= patience {
		return 0
	}
	return c.busySince + patience
}

// shareSoon makes the next call of shareWork wake an idle CPU at once.
func (c *cpu) shareSoon() { c.busySince = -patience }

// Widening. The function widen keeps the emulator's TLB large. QEMU caches the translations of each CPU in a table that
// begins with 256 entries. It doubles the table only when all translations are flushed while most entries are in use
// (QEMU's accel/tcg/cputlb.c, tlb_mmu_resize_locked).
//
// A kernel with an address space for each process flushes often. A Go program on Loam has one address space, which is
// never flushed for this reason. Without widen the table stays small: a server walked the page tables a hundred times
// for each request. Therefore widen regularly fills the table and flushes it (decision 32).

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

// widen grows the table if widenEvery has passed.
func (k *core) widen(c *cpu, now int64) {
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
			atomic.LoadUint32(word32(uint64(k.window) + widenFrom + i*amd64.PageSize))
		}
		flushAll()
	}
}
