package ring3

import (
	"math/bits"
	"time"
	_ "unsafe" // for go:linkname

	"loam/kernel"
)

// nanotime returns the time of the kernel's clock in nanoseconds, which processes read through the vDSO as
// CLOCK_MONOTONIC. Package time cannot be used, because it only returns differences.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// monotonic returns the time of CLOCK_MONOTONIC.
func monotonic() time.Duration { return time.Duration(nanotime()) }

// nanoseconds converts ticks of the time stamp counter. CPU time has the present rate of the kernel's clock.
func nanoseconds(ticks uint64) int64 {
	high, low := bits.Mul64(ticks, kernel.ClockScale())
	return int64(high<<32 | low>>32)
}

// counterFrequency returns the frequency of the time stamp counter in hertz.
func counterFrequency() uint64 {
	const second, fraction = 1e9, 32 // nanoseconds, and the fraction bits of the scale
	return second << fraction / kernel.ClockScale()
}
