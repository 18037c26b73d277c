package kernel

import (
	"loam/abi/linux"
	"loam/exec/vdso"
)

// The page of clocks that processes in ring 3 read without a system call (package exec/vdso). The kernel writes it
// each time its own clock changes, while it holds its lock, so that a process that uses both the page and system
// calls never sees time go back.

// shareClock begins to keep the clocks in a page, which stays valid for ever.
func (k *core) shareClock(pa uint64) {
	k.sharedClock = WindowTo(pa)
	if k.have.CPUNumber {
		dataAt(k.sharedClock).OfferCPU()
	}
	k.publishClock()
}

// publishClock stores the state of the clock in the shared page.
func (k *core) publishClock() {
	if k.sharedClock == 0 {
		return
	}
	const fraction = 32 // number of fraction bits of timekeeper.Clock's scale
	counter, base, scale := k.clock.State()
	c := vdso.Clock{
		Counter: counter, Mult: scale, Shift: fraction, Base: base,
		Offered: 1<<linux.CLOCK_REALTIME | 1<<linux.CLOCK_MONOTONIC | 1<<linux.CLOCK_MONOTONIC_RAW |
			1<<linux.CLOCK_REALTIME_COARSE | 1<<linux.CLOCK_MONOTONIC_COARSE | 1<<linux.CLOCK_BOOTTIME | 1<<linux.CLOCK_TAI,
	}
	c.Offset[linux.CLOCK_REALTIME] = uint64(k.clock.Wall)
	c.Offset[linux.CLOCK_REALTIME_COARSE] = uint64(k.clock.Wall)
	c.Offset[linux.CLOCK_TAI] = uint64(k.clock.Wall)
	dataAt(k.sharedClock).Update(c)
}
