package kernel

import (
	"math/bits"
	"sync/atomic"

	"loam/arch/amd64"
)

// big is the only lock of the kernel: 1 while a CPU holds it. The holder runs with interrupts disabled and releases
// it soon, unless it is a virtual CPU whose host thread is not scheduled. So a CPU that has waited longer than a
// running holder needs dozes: it halts with interrupts enabled until it is kicked. This leaves its host processor
// to the thread that holds the lock.
var big uint32

// dozing is the set of CPUs that doze, as bits; atomic. A CPU sets its bit before it checks the lock a last time,
// and unlock reads the set after it has released the lock. So either the CPU sees the free lock or unlock sees the
// bit.
var dozing uint64

// tries is the number of polls before a CPU halts. They take longer than a few system calls on running CPUs. The number was
// chosen without measurements of alternatives.
const tries = 300

// lock acquires the kernel's lock. While it waits, it serves flush requests, since the holder may be waiting for
// this CPU's flush.
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

// doze halts the CPU until an interrupt, unless the kernel's lock is free.
func (c *cpu) doze() {
	atomic.OrUint64(&dozing, 1<<c.number)
	c.dozes = 1
	if atomic.LoadUint32(&big) != 0 {
		amd64.Doze()
	}
	c.dozes = 0
	atomic.AndUint64(&dozing, ^(1 << c.number))
}

// Interrupted is called by the entry code, on the stack for faults, for an interrupt of a CPU that dozes.
func Interrupted(self, frameAddress uintptr) {
	cpuAt(self).interrupt(frameByAddress(frameAddress).Vector)
}

// unlock releases the kernel's lock and wakes one dozing CPU: the next by number, for fairness. If more CPUs doze,
// that CPU wakes the next one in turn.
func unlock(c *cpu) {
	atomic.StoreUint32(&big, 0)
	if who := atomic.LoadUint64(&dozing); who != 0 {
		next := int(c.number) + 1
		next += bits.TrailingZeros64(bits.RotateLeft64(who, -next))
		cpus[next%maxCPUs].kick()
	}
}

// Emulated is set once, early, on a machine that emulates every instruction. The runtime's spin loops also read it
// (runtime.procyield). On such a machine a PAUSE instruction leaves translated code and takes the emulator's locks, which
// costs a thousand times as much as on a processor.
var Emulated bool

// relax is called in the body of a loop that waits for another CPU.
func relax() {
	if !Emulated {
		amd64.Pause()
	}
}
