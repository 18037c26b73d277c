package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
)

// big is the one lock of the kernel: 1 while a CPU is inside. Interrupts are off
// on that CPU, so it is never held for long.
var big uint32

// lock waits for the lock. A CPU that waits does what the holder may be waiting
// for: it forgets translations when it is asked to.
func lock(c *cpu) {
	for !atomic.CompareAndSwapUint32(&big, 0, 1) {
		c.flushIfAsked()
		relax()
	}
	c.flushIfAsked()
}

// Emulated is set once, early, where each instruction is emulated. The program's loops
// that wait look at it too (runtime.procyield): a PAUSE takes such a CPU out of its
// translated code and back by way of the emulator's locks, which is a thousand times what
// it takes elsewhere.
var Emulated bool

// relax is for the body of a loop that waits for another CPU.
func relax() {
	if !Emulated {
		amd64.Pause()
	}
}

func unlock() { atomic.StoreUint32(&big, 0) }
