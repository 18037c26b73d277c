package kernel

import "loam/kernel/thread"

// This file has all code that exists because a machine without KVM emulates every instruction: an interrupt between CPUs
// takes far longer there than on a processor. One switch, Emulated, enables this code. Its part in the Go runtime is in
// loam_emulation.go of unikernel/overlay. Decision 23 has the reasons, and decision 68 what each part brings: without patience,
// a request over one connection takes 14 % more of QEMU's CPU time.

// Emulated is set once, early, on a machine that emulates every instruction.
var Emulated bool

// patience is how long a CPU keeps threads that become ready on it although another CPU is idle, in nanoseconds since the
// CPU itself was last idle.
//
// Under emulation an interrupt between CPUs takes as long as serving a whole request, because two threads of the host have
// to synchronise. A CPU that has just started work usually finishes earlier, and then runs the ready thread itself. On a
// real processor such an interrupt takes a microsecond or two, so ready threads are shared at once.
const patience = 1e6

// Held is not 0 while a ready thread stays with a busy CPU though another CPU is idle. The runtime, which knows how
// much work there is, reads it (runtime.wakep). Atomic.
var Held uint32

// noteBusy records since when the CPU has been busy.
func (c *cpu) noteBusy(now int64) {
	if c.current == thread.None {
		c.busySince = 0
	} else if c.busySince == 0 {
		c.busySince = now
	}
}

// holdUntil returns the time until which the CPU keeps ready threads, or 0 if it shares them now.
func (c *cpu) holdUntil(now int64) int64 {
	if !Emulated || now-c.busySince >= patience {
		return 0
	}
	return c.busySince + patience
}

// shareSoon makes the next call of shareWork wake an idle CPU at once.
func (c *cpu) shareSoon() { c.busySince = -patience }
