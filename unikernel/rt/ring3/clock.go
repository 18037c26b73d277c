package ring3

import (
	"math/bits"
	"time"
	_ "unsafe" // for go:linkname

	"loam/arch/amd64"
	"loam/kernel"
)

// nanotime returns the time of the kernel's clock, which the vDSO of processes shows as CLOCK_MONOTONIC. Package time
// returns differences only.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// monotonic returns the time of CLOCK_MONOTONIC.
func monotonic() time.Duration { return time.Duration(nanotime()) }

// cpuClock returns a clock for CPU time, which is read twice in each system call: the time stamp counter at the rate of the
// start, without the corrections of the kernel's clock.
func cpuClock() func() int64 {
	scale := kernel.ClockScale()
	return func() int64 {
		high, low := bits.Mul64(amd64.Timestamp(), scale)
		return int64(high<<32 | low>>32)
	}
}
