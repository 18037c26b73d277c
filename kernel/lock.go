package kernel

import (
	"math/bits"
	"sync/atomic"

	"loam/arch/amd64"
)

// big is the one lock of the kernel: 1 while a CPU is inside. Interrupts are off
// on that CPU, so it is never held for long, unless the holder is a thread of a host that
// has other things to do. Whoever waits for longer than a holder that runs takes sleeps
// therefore, and leaves its processor of the host to who holds the lock: it dozes, with
// interrupts on, until it is kicked.
var big uint32

// dozing has the numbers of the CPUs that doze, as bits; atomic. A CPU sets its own before
// it looks at the lock for the last time, and who gives the lock back looks here after that:
// so one of the two knows of the other.
var dozing uint64

// tries is how often a CPU looks before it dozes: longer than a few calls take that are
// served by CPUs that run. It was chosen, and other numbers have not been tried.
const tries = 300

// lock waits for the lock. A CPU that waits does what the holder may be waiting
// for: it forgets translations when it is asked to.
func lock(c *cpu) {
	for left := tries; !atomic.CompareAndSwapUint32(&big, 0, 1); left-- {
		c.flushIfAsked()
		if left == 0 {
			c.doze()
			left = tries
		}
		relax()
	}
	c.flushIfAsked()
}

// doze waits for an interrupt, unless the lock is free.
func (c *cpu) doze() {
	atomic.OrUint64(&dozing, 1<<c.number)
	c.dozes = 1
	if atomic.LoadUint32(&big) != 0 {
		amd64.Doze()
	}
	c.dozes = 0
	atomic.AndUint64(&dozing, ^(1 << c.number))
}

// Interrupted is called by the entry code, on the stack of faults, for an interrupt of a
// CPU that dozes.
func Interrupted(self, frameAddress uintptr) {
	cpuAt(self).interrupt(frameByAddress(frameAddress).Vector)
}

// unlock gives the lock back, and wakes one CPU that dozes: the next by number, so that
// all have their turn. If others doze, it will wake the next one.
func unlock(c *cpu) {
	atomic.StoreUint32(&big, 0)
	if who := atomic.LoadUint64(&dozing); who != 0 {
		next := int(c.number) + 1
		next += bits.TrailingZeros64(bits.RotateLeft64(who, -next))
		cpus[next%maxCPUs].kick()
	}
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
