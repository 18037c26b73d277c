package runtime

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

// loamHeld is not 0 while the kernel has a thread wait for the CPU that woke it, though
// another CPU is idle: loam/kernel.shareWork says why. The kernel sets it.
//
//go:linkname loamHeld loam/kernel.Held
var loamHeld uint32

// loamCallShare is loam/kernel.CallShare.
const loamCallShare = 0x1008

// wakep is Go's, which wakes a thread if a P is idle, whenever a goroutine has become
// runnable. Here it adds what the kernel cannot see: whether there is more to do than
// this P will come to shortly, a few goroutines that hand something on to one another.
// Then the thread is not held back. One that is runs after loam/kernel.patience at the
// latest.
//
//go:linkname wakep
func wakep() {
	linuxWakep()
	if atomic.Load(&loamHeld) == 0 {
		return
	}
	const few = 0 // besides runnext
	if pp := getg().m.p.ptr(); pp != nil && atomic.Load(&pp.runqtail)-atomic.Load(&pp.runqhead) > few {
		loamCall(loamCallShare, 0, 0)
	}
}
