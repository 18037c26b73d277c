package runtime

import _ "unsafe" // for go:linkname

// loamEmulated is set if each instruction is emulated. The kernel sets it before the runtime starts.
//
//go:linkname loamEmulated loam/kernel.Emulated
var loamEmulated bool

// procyield is the pause in a loop that waits for another CPU. For each PAUSE, an emulator leaves its
// translated code, takes its locks and returns. That takes a microsecond or more, instead of some dozens of
// nanoseconds. Under emulation procyield therefore counts instead.
//
// It is nosplit because Go's version is, whose callers are.
//
//go:linkname procyield
//go:nosplit
func procyield(cycles uint32) {
	if !loamEmulated {
		linuxProcyield(cycles)
		return
	}
	const each = 8 // loop steps between two PAUSE instructions; a step takes one to a few nanoseconds
	for range cycles * each {
	}
}
