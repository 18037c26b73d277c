package runtime

import _ "unsafe" // for go:linkname

// loamEmulated says that each instruction is emulated. The kernel sets it, before the
// runtime begins.
//
//go:linkname loamEmulated loam/kernel.Emulated
var loamEmulated bool

// procyield is what a loop does that waits for another CPU. An emulator leaves its
// translated code for each PAUSE, takes its locks, and comes back: a microsecond or more
// for what is meant to be some dozens of nanoseconds. There it counts.
//
// It is nosplit because Go's is: its callers are.
//
//go:linkname procyield
//go:nosplit
func procyield(cycles uint32) {
	if !loamEmulated {
		linuxProcyield(cycles)
		return
	}
	const each = 8 // steps for a PAUSE: as many nanoseconds, or a few times that
	for range cycles * each {
	}
}
