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
// thread is Running on at most one CPU, and in no list of the thread table meanwhile. Ready threads are in one queue, and
// each may run on any CPU. The exception is a thread that asks for a CPU (move): only this CPU takes it, at once, unless it takes
// another such thread first. A CPU
// whose current is None when it leaves runs its idle loop.

// Enter is called by the entry code on each entry to the kernel, with the CPU's structure and the trap frame of the
// thread that ran. It returns the frame to resume, and the address of its vector registers, or 0 if there are none
// to restore.
func Enter(self, frameAddress uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	k := c.kernel()
	f := frameByAddress(frameAddress)
	interrupted := f.Vector >= amd64.VectorException && f.Vector < amd64.VectorCount
	if interrupted {
		k.interrupt(c, f.Vector) // without the kernel's lock, because the interrupt may end a wait for this lock (kick)
		if f.Code == amd64.CodeUser {
			f.Vector = amd64.VectorCall // an interrupt in ring 3: the vector registers are already saved in the thread's context
		}
	}
	k.lock(c)
	switch {
	case interrupted:
	case f.Vector == amd64.VectorCall:
		if result, returns := k.call(c, f); returns {
			f.AX = uint64(result)
		}
	case f.Vector == amd64.VectorSyscall:
		k.trapped(c, f)
	default:
		k.fault(c, f)
	}
	return k.leave(c)
}

// interrupt records an interrupt. The caller does not hold the kernel's lock. leave serves device interrupts later,
// with the lock held. Until then this CPU accepts no other device interrupt.
func (k *core) interrupt(c *cpu, vector uint64) {
	switch vector {
	case amd64.VectorTimer:
		c.timer = 0
		k.apic.Done()
	case amd64.VectorKick:
		atomic.StoreUint32(&c.kicked, 0)
		k.apic.Done()
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
func (k *core) leave(c *cpu) (frameAt, vector uintptr) {
	for ; c.rung != 0; c.rung &= c.rung - 1 {
		k.ring(c, bits.TrailingZeros64(c.rung))
		k.apic.Done()
	}
	now := k.clock.now()
	if uint64(now) >= k.clock.Due() {
		k.correct(c)
	}
	k.charge(c, now)
	k.threads.Expire(now)
	k.expirePoller(c, now)
	if c.current == thread.None {
		k.callStandIn()
	}
	for {
		k.choose(c, now)
		if c.current == thread.None {
			break
		}
		th := k.threads.At(c.current)
		if th.Waited {
			th.Waited = false
			frameOf(th.Page).AX = uint64(th.Result)
		}
		if th.Pending&^th.Mask == 0 || k.deliver(c, th) {
			break
		}
	}
	c.charged = c.current
	k.shareWork(c, now)
	k.armTimer(c, now)

	page := c.idle
	if c.current != thread.None {
		th := k.threads.At(c.current)
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
	k.unlock(c)
	return addressOf(f), vector
}

// choose sets current to the thread to resume. The running thread continues, unless its quantum is used up, it has stopped
// running, or another thread was moved to the CPU.
func (k *core) choose(c *cpu, now int64) {
	if c.current != thread.None {
		if !k.threads.HasMoved(c.number) && (!k.threads.HasReady() || now-c.since < quantum) {
			return
		}
		k.threads.Put(c.current)
	}
	c.current = k.threads.Take(c.number)
	c.since = now
	if c.current != thread.None {
		k.threads.At(c.current).CPU = c.number
	}
}

// move makes the running thread continue on another CPU, whose thread becomes ready.
func (k *core) move(c *cpu, to uint64) {
	if to >= uint64(k.cpuCount) || to == uint64(c.number) {
		return
	}
	k.threads.Move(c.current, int32(to))
	c.current = thread.None
	k.kick(&k.cpus[to])
}

// giveWay makes the next call of choose select another thread, if one is ready.
func (c *cpu) giveWay() { c.since = -quantum }

// shareWork wakes an idle CPU if other threads are ready in addition to the running one, or if a wake for the poller is due: at once, or
// under emulation after a delay (emulation.go). Until then the timer is set (armTimer), so no ready thread waits longer, even if the
// running thread does not enter the kernel. If no CPU is idle, the thread that makes the wake becomes ready.
func (k *core) shareWork(c *cpu, now int64) {
	c.noteBusy(now)
	c.shareAt = 0
	if o := k.idleCPU(c); o == nil {
		k.callStandIn()
	} else if k.threads.HasReady() || k.poller.due {
		if c.shareAt = c.holdUntil(now); c.shareAt == 0 {
			k.callStandIn()
			k.kick(o)
		}
	}
	atomic.StoreUint32(&Held, uint32(min(c.shareAt, 1)))
}

// idleCPU returns an idle CPU other than c; nil if there is none.
func (k *core) idleCPU(c *cpu) *cpu {
	for i := range k.cpuCount {
		if o := &k.cpus[i]; o != c && o.current == thread.None {
			return o
		}
	}
	return nil
}

// newThread allocates a thread and its page. It returns false if there are too many threads or no memory.
func (k *core) newThread() (thread.ID, bool) {
	if k.threads.Full() {
		pa, ok := k.pages.Alloc()
		if !ok {
			return thread.None, false
		}
		k.threads.Extend(k.window + uintptr(pa))
	}
	id, ok := k.threads.New()
	if !ok {
		return thread.None, false
	}
	th := k.threads.At(id)
	if th.Page == 0 {
		pa, ok := k.pages.Alloc()
		if !ok {
			k.threads.End(id)
			return thread.None, false
		}
		th.Page = k.window + uintptr(pa)
	}
	return id, true
}
