package kernel

import (
	"math/bits"
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel/thread"
)

// The path through the kernel. The entry code saves a thread's registers in the thread's page and calls Enter.
// Enter acquires the kernel's lock and serves the call, the fault or the interrupt. Then leave serves device
// interrupts, corrects the clock, expires timeouts, chooses a thread, delivers its signals, arms the timer and
// releases the kernel's lock. The entry code resumes the frame that leave returns.
//
// Invariants: interrupts are disabled from Enter to leave, except while the CPU dozes for the kernel's lock. A
// thread is Running on at most one CPU, and in no list of the thread table meanwhile. All ready threads are in one
// queue, and each may run on any CPU. A CPU whose current is None when it leaves runs its idle loop.

// Enter is called by the entry code on each entry to the kernel, with the CPU's structure and the trap frame of the
// thread that ran. It returns the frame to resume, and the address of its vector registers, or 0 if there are none
// to restore.
func Enter(self, frameAddress uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	f := frameByAddress(frameAddress)
	interrupted := f.Vector >= amd64.VectorException && f.Vector < amd64.VectorCount
	if interrupted {
		c.interrupt(f.Vector) // without the kernel's lock, because the interrupt may end a wait for this lock (kick)
		if f.Code == amd64.CodeUser {
			f.Vector = amd64.VectorCall // an interrupt in ring 3: the vector registers are already saved in the thread's context
		}
	}
	lock(c)
	switch {
	case interrupted:
	case f.Vector == amd64.VectorCall:
		if result, returns := call(c, f); returns {
			f.AX = uint64(result)
		}
	case f.Vector == amd64.VectorSyscall:
		trapped(c, f)
	default:
		fault(c, f)
	}
	return leave(c)
}

// interrupt records an interrupt. The caller does not hold the kernel's lock. leave serves device interrupts later,
// with the lock held. Until then this CPU accepts no other device interrupt.
func (c *cpu) interrupt(vector uint64) {
	switch vector {
	case amd64.VectorTimer:
		c.timer = 0
		apic.Done()
	case amd64.VectorKick:
		atomic.StoreUint32(&c.kicked, 0)
		apic.Done()
	default:
		if n := vector - amd64.VectorDevice; n < MaxInterrupts {
			c.rung |= 1 << n
		}
	}
}

// quantum is the time that a thread may run while other threads are ready, in nanoseconds. The Go runtime rarely has more
// runnable threads than there are CPUs.
const quantum = 10e6

// leave serves device interrupts, chooses the thread to resume and releases the kernel's lock.
func leave(c *cpu) (frameAt, vector uintptr) {
	for ; c.rung != 0; c.rung &= c.rung - 1 {
		ring(c, bits.TrailingZeros64(c.rung))
		apic.Done()
	}
	now := clock.now()
	if uint64(now) >= clock.Due() {
		correct(c)
	}
	c.widen(now)
	c.charge(now)
	threads.Expire(now)
	for {
		c.choose(now)
		if c.current == thread.None {
			break
		}
		th := threads.At(c.current)
		if th.Waited {
			th.Waited = false
			frameOf(th.Page).AX = uint64(th.Result)
		}
		if th.Pending&^th.Mask == 0 || deliver(c, th) {
			break
		}
	}
	c.charged = c.current
	c.shareWork(now)
	c.armTimer(now)

	page := c.idle
	if c.current != thread.None {
		th := threads.At(c.current)
		page = th.Page
		if c.fsBase != th.FSBase {
			c.fsBase = th.FSBase
			amd64.WriteMSR(amd64.MSRFSBase, th.FSBase)
		}
	}
	c.runs(page)
	f := frameOf(page)
	if f.Vector != amd64.VectorCall {
		vector = page
	}
	unlock(c)
	return addressOf(f), vector
}

// choose sets current to the thread to resume. The running thread continues, unless its quantum is used up or it has stopped
// running.
func (c *cpu) choose(now int64) {
	if c.current != thread.None {
		if !threads.HasReady() || now-c.since < quantum {
			return
		}
		threads.Put(c.current)
	}
	c.current = threads.Take()
	c.since = now
	if c.current != thread.None {
		threads.At(c.current).CPU = c.number
	}
}

// giveWay makes the next call of choose select another thread, if one is ready.
func (c *cpu) giveWay() { c.since = -quantum }

// patience is used if instructions are emulated. It is how long a CPU keeps threads that become ready on it although another
// CPU is idle, in nanoseconds since the CPU itself was last idle.
//
// Under emulation an interrupt between CPUs takes as long as serving a whole request, because two threads of the host have
// to synchronise. A CPU that has just started work usually finishes earlier, and then runs the ready thread itself. On a
// real processor such an interrupt takes a microsecond or two, so ready threads are shared at once.
const patience = 1e6

// Held is not 0 while a ready thread stays with a busy CPU though another CPU is idle. The runtime, which knows how
// much work there is, reads it (runtime.wakep). Atomic.
var Held uint32

// shareWork wakes an idle CPU if other threads are ready in addition to the running one: at once, or under emulation when
// this CPU has been busy for patience. Until then the timer is set (armTimer), so no ready thread waits longer, even if the
// running thread does not enter the kernel.
func (c *cpu) shareWork(now int64) {
	if c.current == thread.None {
		c.busySince = 0
	} else if c.busySince == 0 {
		c.busySince = now
	}
	c.shareAt = 0
	if o := idleCPU(c); o != nil && threads.HasReady() {
		if !Emulated || now-c.busySince >= patience {
			o.kick()
		} else {
			c.shareAt = c.busySince + patience
		}
	}
	atomic.StoreUint32(&Held, uint32(min(c.shareAt, 1)))
}

// shareSoon makes the next call of shareWork wake an idle CPU at once.
func (c *cpu) shareSoon() { c.busySince = -patience }

// idleCPU returns an idle CPU other than c; nil if there is none.
func idleCPU(c *cpu) *cpu {
	for i := range cpuCount {
		if o := &cpus[i]; o != c && o.current == thread.None {
			return o
		}
	}
	return nil
}

// newThread allocates a thread and its page. It returns false if there are too many threads or no memory.
func newThread() (thread.ID, bool) {
	if threads.Full() {
		pa, ok := frames.Alloc()
		if !ok {
			return thread.None, false
		}
		threads.Extend(windowAddress + uintptr(pa))
	}
	id, ok := threads.New()
	if !ok {
		return thread.None, false
	}
	th := threads.At(id)
	if th.Page == 0 {
		pa, ok := frames.Alloc()
		if !ok {
			threads.End(id)
			return thread.None, false
		}
		th.Page = windowAddress + uintptr(pa)
	}
	return id, true
}
