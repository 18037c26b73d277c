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

// loamAlarmClock is the clock of the alarms of threads (loam_debt.go): the thread's own time
// on a CPU, so that none wakes a CPU which has become idle.
const loamAlarmClock = _CLOCK_THREAD_CPUTIME_ID

// loamCallShare is loam/kernel.CallShare.
const loamCallShare = 0x1008

// loamWoken is called when Go's rules for waking a thread have been followed. It adds what
// the kernel cannot see: whether there is more to do than this P will come to shortly, a
// few goroutines that hand something on to one another. Then the thread is not held back.
// One that is runs after loam/kernel.patience at the latest.
func loamWoken() {
	if atomic.Load(&loamHeld) == 0 {
		return
	}
	const few = 0 // besides runnext
	if pp := getg().m.p.ptr(); pp != nil && atomic.Load(&pp.runqtail)-atomic.Load(&pp.runqhead) > few {
		loamCall(loamCallShare, 0, 0)
	}
}

// loamOwes says that wakes may be owed here (loam_debt.go): in a machine the kernel has
// a thread wait instead, which sees what all CPUs do.
const loamOwes = false

// loamPatience is for how long the alarm is set, in nanoseconds: as long as the runtime's
// monitor, for whose sake alone it is there, lets a goroutine run.
const loamPatience = 10e6
