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
		amd64.Pause()
	}
	c.flushIfAsked()
}

func unlock() { atomic.StoreUint32(&big, 0) }
