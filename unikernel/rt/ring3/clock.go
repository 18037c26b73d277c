package ring3

import (
	"time"
	_ "unsafe" // for go:linkname
)

// nanotime returns the time of the kernel's clock, which the vDSO of processes shows as CLOCK_MONOTONIC. Package time
// returns differences only.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// monotonic returns the time of CLOCK_MONOTONIC.
func monotonic() time.Duration { return time.Duration(nanotime()) }
