package kernel

import (
	"math/bits"
	"sync/atomic"

	"loam/arch/amd64"
)

// The kernel has one lock (core.big). The holder runs with interrupts disabled and releases it soon, unless it is a
// virtual CPU whose host thread is not scheduled. So a CPU that has waited longer than a running holder needs dozes:
// it halts with interrupts enabled until it is kicked. This leaves its host processor to the thread that holds the
// lock.
//
// A CPU sets its bit in core.dozing before it checks the lock a last time, and unlock reads the set after it has
// released the lock. So either the CPU sees the free lock or unlock sees the bit.

// tries is the number of polls before a CPU halts. They take longer than a few system calls on running CPUs. The number was
// chosen without measurements of alternatives.
const tries = 300

// lock acquires the kernel's lock. While it waits, it serves flush requests, since the holder may be waiting for
// this CPU's flush.
func (k *core) lock(c *cpu) {
	for left := tries; !atomic.CompareAndSwapUint32(&k.big, 0, 1); left-- {
		k.flushIfAsked(c)
		if left == 0 {
			k.doze(c)
			left = tries
		}
		amd64.Pause()
	}
	k.flushIfAsked(c)
}

// doze halts a CPU that waits for the kernel's lock until an interrupt arrives, unless the lock is free.
func (k *core) doze(c *cpu) {
	atomic.OrUint64(&k.dozing, 1<<c.number)
	c.dozes = 1
	if atomic.LoadUint32(&k.big) != 0 {
		amd64.Doze()
	}
	c.dozes = 0
	atomic.AndUint64(&k.dozing, ^(1 << c.number))
}

// Interrupted is called by the entry code, on the stack for faults, for an interrupt of a CPU that dozes (has halted while it waits for
// the kernel's lock).
func Interrupted(self, frameAddress uintptr) {
	c := cpuAt(self)
	k := c.kernel()
	k.interrupt(c, frameByAddress(frameAddress).Vector)
}

// unlock releases the kernel's lock and wakes one dozing CPU (see doze): the next by number, for fairness. If more
// CPUs doze, that CPU wakes the next one in turn.
func (k *core) unlock(c *cpu) {
	atomic.StoreUint32(&k.big, 0)
	if who := atomic.LoadUint64(&k.dozing); who != 0 {
		next := int(c.number) + 1
		next += bits.TrailingZeros64(bits.RotateLeft64(who, -next))
		k.kick(&k.cpus[next%maxCPUs])
	}
}
