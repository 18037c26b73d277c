package runtime

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

// The part of the runtime that exists because a machine without KVM emulates every instruction. The kernel's part, and the
// switch that enables both, are in kernel/emulation.go.

// loamHeld is not 0 while the kernel makes a thread wait for the CPU that woke it although another CPU is
// idle. The reason is given at loam/kernel.patience. The kernel sets it.
//
//go:linkname loamHeld loam/kernel.Held
var loamHeld uint32

// loamCallShare is the call number loam/kernel.CallShare.
const loamCallShare = 0x1008

// loamWoken is called after Go's rules for waking a thread have been followed. It reports to the kernel
// what the kernel cannot see: this P has more goroutines queued than a few that pass work to one another,
// so it will not run them soon. The kernel then stops holding the thread back. A held thread runs after
// loam/kernel.patience at the latest.
func loamWoken() {
	if atomic.Load(&loamHeld) == 0 {
		return
	}
	const few = 0 // maximum number of queued goroutines, in addition to runnext, for which the thread stays held back
	if pp := getg().m.p.ptr(); pp != nil && atomic.Load(&pp.runqtail)-atomic.Load(&pp.runqhead) > few {
		loamCall(loamCallShare, 0, 0)
	}
}
