package kernel

import (
	"math/bits"
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel/thread"
)

// Enter is called by the entry code with the cpu it runs on and the frame of who
// ran there. It returns the frame to go on with, and where its vector registers
// are, or 0 if it has none.
func Enter(self, frameAddress uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	f := frameByAddress(frameAddress)
	interrupted := f.Vector >= amd64.VectorException && f.Vector < amd64.VectorCount
	if interrupted {
		c.interrupt(f.Vector) // before the lock: who dozes there has to be kicked
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

// interrupt takes note of what is not the running thread's doing, without the lock. What a
// device wants is served under it (leave), and until then no other device interrupts here.
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

// quantum is how long a thread runs, in nanoseconds, while others want to. The
// Go runtime rarely has more threads that run than there are CPUs.
const quantum = 10e6

// leave chooses who goes on, and gives back the lock.
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

// choose sets current: to the same thread, unless it has had its share or cannot
// go on.
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

// giveWay has another thread run, if there is one.
func (c *cpu) giveWay() { c.since = -quantum }

// patience is for how long after it was idle itself a CPU keeps what becomes ready there,
// while another is idle, in nanoseconds, where instructions are emulated. An interrupt
// between CPUs, and what two threads of the host then have to agree on, take as long
// there as a whole request does; and a CPU that has just begun is mostly done soon, and
// comes to the other thread in less. A processor's own interrupt takes a microsecond or
// two: there nobody waits for anything.
const patience = 1e6

// Held is not 0 while a thread is left to a busy CPU though another is idle. The runtime,
// which knows how much there is to do, looks at it (runtime.wakep).
var Held uint32

// shareWork wakes a CPU that is idle if there is more to do than this one does: at once,
// or when this one has been busy for a while. Until then the timer is set (armTimer), so
// that no thread waits for longer, whatever the running one does.
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

// hurry has the next shareWork keep nothing.
func (c *cpu) hurry() { c.busySince = -patience }

// idleCPU is one other than c; nil: all have something to do.
func idleCPU(c *cpu) *cpu {
	for i := range cpuCount {
		if o := &cpus[i]; o != c && o.current == thread.None {
			return o
		}
	}
	return nil
}

// newThread makes a thread, and its page.
func newThread() (thread.ID, bool) {
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
