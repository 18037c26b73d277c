package ring3

import (
	"math/bits"
	"time"
	_ "unsafe" // for go:linkname

	"loam/arch/amd64"
	"loam/kernel"
)

// nanotime returns the time of the kernel's clock in nanoseconds, which processes read through the vDSO as
// CLOCK_MONOTONIC. Package time cannot be used, because it only returns differences.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// monotonic returns the time of CLOCK_MONOTONIC.
func monotonic() time.Duration { return time.Duration(nanotime()) }

// cpuClock returns a clock for CPU time, in nanoseconds. It is read twice in each system call, so it is simple: the
// time stamp counter at the rate measured at boot, without the corrections of the kernel's clock.
func cpuClock() func() int64 {
	scale := kernel.ClockScale()
	return func() int64 {
		high, low := bits.Mul64(amd64.Timestamp(), scale)
		return int64(high<<32 | low>>32)
	}
}
