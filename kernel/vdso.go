package kernel

import (
	"loam/abi/linux"
	"loam/exec/vdso"
)

// The page of clocks that processes in ring 3 read without a system call (package exec/vdso). The kernel writes it
// each time its own clock changes, while it holds its lock, so that a process that uses both the page and system
// calls never sees time go back.

// sharedClock is the address of the page of clocks; 0: there is none yet. It is not a pointer, because the kernel
// must not store pointers: during a garbage collection, that would call the runtime's write barrier.
var sharedClock uintptr

// shareClock begins to keep the clocks in a page, which stays valid for ever.
func shareClock(pa uint64) {
	sharedClock = WindowTo(pa)
	if have.CPUNumber {
		dataAt(sharedClock).OfferCPU()
	}
	publishClock()
}

// publishClock stores the state of the clock in the shared page.
func publishClock() {
	if sharedClock == 0 {
		return
	}
	const fraction = 32 // number of fraction bits of timekeeper.Clock's scale
	counter, base, scale := clock.State()
	c := vdso.Clock{
		Counter: counter, Mult: scale, Shift: fraction, Base: base,
		Offered: 1<<linux.CLOCK_REALTIME | 1<<linux.CLOCK_MONOTONIC | 1<<linux.CLOCK_MONOTONIC_RAW |
			1<<linux.CLOCK_REALTIME_COARSE | 1<<linux.CLOCK_MONOTONIC_COARSE | 1<<linux.CLOCK_BOOTTIME | 1<<linux.CLOCK_TAI,
	}
	c.Offset[linux.CLOCK_REALTIME] = uint64(clock.Wall)
	c.Offset[linux.CLOCK_REALTIME_COARSE] = uint64(clock.Wall)
	c.Offset[linux.CLOCK_TAI] = uint64(clock.Wall)
	dataAt(sharedClock).Update(c)
}
