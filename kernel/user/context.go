package user

import (
	"container/list"
	"errors"
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel"
)

// Reason is the reason why Run returned.
type Reason uint8

const (
	// Call: the thread executed SYSCALL. The registers contain the number and the arguments.
	Call Reason = iota
	// Fault: the thread accessed an address that its space does not map, or does not map for this access.
	Fault
	// Exception: an instruction caused another exception. Frame.Vector is its vector.
	Exception
	// Interrupted: the thread was stopped because its CPU had other work, or because Kick was called. The caller
	// handles the request for which Kick was called, if there is one, and calls Run again.
	Interrupted
	// Moved: the thread has not run. Since its last run, this thread has changed CPUs, or it was interrupted and another thread has
	// used ring 3 of this CPU. Run returns Moved only while Watch is on. The caller calls Run again.
	Moved
)

// Limit is the first address that ring 3 cannot use. The highest page of the lower half is never mapped: after a
// SYSCALL instruction at its end, the return address would not be canonical.
const Limit = 1<<47 - amd64.PageSize

// Errors of this package.
var (
	ErrProcessor = errors.New("user: the processor cannot run programs in ring 3: it needs XSAVE, FSGSBASE and NX")
	ErrMemory    = errors.New("user: there is no memory left")
	ErrAddress   = errors.New("user: an address is not one of ring 3")
)

// Context holds the registers of one thread in ring 3. Only one goroutine may use it at a time, except for Kick and Bind.
type Context struct {
	page    *page
	at      uint64 // physical address of page
	space   *Space
	since   uint64 // value of the time stamp counter at the last call of Spent, plus the time in park since then
	counted uint64 // page.used at the last call of Spent

	watches bool          // Watch is on
	wanted  atomic.Uint64 // set of the CPUs that may run the thread, for rebind; 0: all
	set     uint64        // the same set, in force
	parked  atomic.Bool   // the goroutine waits for woken, or is about to
	woken   chan struct{} // capacity 1; wake sends; park receives; nil for a thread that has never had a set

	arrival uint64        // rank of the wait for a seat, also after a Kick; 0: none; the lock of places guards the fields from here on
	place   *list.Element // place among the waiting threads; nil: the thread does not wait
	yields  bool          // the thread has got its seat at the end of a turn
}

// NewContext returns a context for a thread of space s, with all registers zero. s must outlive the context. The caller
// releases the context by Close.
func NewContext(s *Space) (*Context, error) {
	pa, ok := shared.takeThread()
	if !ok {
		return nil, ErrMemory
	}
	c := &Context{page: pageAt(pa), at: pa, space: s, since: amd64.Timestamp()}
	c.page.root, c.page.second, c.page.active = s.tables.Root, s.tables.Second, addressOf(s.active)
	initVectors(c.page.vector[:])
	c.page.mxcsr = initialMXCSR
	return c, nil
}

// Close releases the context. The thread must not be running, and Kick must not be called afterwards.
func (c *Context) Close() {
	if c.set != 0 {
		places.leave(c)
	}
	c.save()
	shared.giveThread(c.at)
	c.page = nil
}

// Registers returns the registers of the thread, which must not be running. The next Run loads changed values. After a
// system call, CX and R11 are loaded only if Restore was called. Changes to CS, to SS, and to flags that ring 3 cannot
// change are ignored.
func (c *Context) Registers() *amd64.Frame { return &c.page.frame }

// Restore makes the next Run load all registers. It is needed after a system call that replaces them, such as
// rt_sigreturn(2).
func (c *Context) Restore() { c.page.frame.Vector = 0 }

// Spent returns the CPU time since the last call of Spent, or since NewContext, in ticks of the time stamp counter: in
// ring 3, and outside of ring 3.
func (c *Context) Spent() (inside, outside uint64) {
	now := amd64.Timestamp()
	// The counters of two CPUs may differ by some ticks, so the time in ring 3 can exceed the whole time, or be negative.
	whole := max(int64(now-c.since), 0)
	user := min(max(int64(c.page.used-c.counted), 0), whole)
	c.since, c.counted = now, c.page.used
	return uint64(user), uint64(whole - user)
}

// Run runs the thread until it makes a system call, faults or is interrupted, and returns the reason.
func (c *Context) Run() Reason { return c.Reason(c.Enter()) }

// Enter and Reason are the two parts of Run. Enter runs the thread and returns a vector. If IsCall is true for the vector, the
// reason is Call; otherwise Reason returns it. A caller of both parts handles calls without a second function call.
//
// The goroutine that serves interrupts runs first, if it waits for a thread: ring 3 does not look for interrupts. If one arrives
// in ring 3, Enter returns, and the next Enter has it served.
func (c *Context) Enter() (vector uint64) {
	if atomic.LoadUint64(&kernel.Rung) != 0 {
		serveInterrupts()
	}
	return enter(c.page)
}

// IsCall reports whether a result of Enter means that the thread has made a system call.
func IsCall(vector uint64) bool { return vector == amd64.VectorSyscall }

// Reason returns the reason for a result of Enter. If the thread has not run because another CPU holds its x87 state, or
// because it needs another CPU, Reason runs the thread.
func (c *Context) Reason(vector uint64) Reason {
	for {
		switch {
		case vector == vectorElsewhere:
			c.save()
		case uint32(vector) == vectorUnseated:
			c.find(int(vector >> 32))
		case vector != vectorMoved || c.watches:
			return c.reason(vector)
		}
		vector = enter(c.page)
	}
}

// reason returns the reason for a result of enter.
func (c *Context) reason(vector uint64) Reason {
	switch {
	case vector == amd64.VectorSyscall:
		return Call
	case vector == vectorMoved:
		return Moved
	case vector == amd64.VectorPage:
		return Fault
	case vector < amd64.VectorException:
		return Exception
	}
	c.Settle()
	return Interrupted
}

// Settle clears the request of a Kick. The caller must call Settle before it looks for the reason of the Kick.
func (c *Context) Settle() {
	atomic.StoreUint32(&c.page.stop, 0)
	c.rebind()
}

// FaultAddress returns the address of the last Fault. Bits of Frame.Code describe the kind of access that failed.
func (c *Context) FaultAddress() uint64 { return c.page.fault }

// Kick makes the current Run return Interrupted; if the thread is not running, the next Run returns it. Any goroutine
// may call Kick.
func (c *Context) Kick() {
	atomic.StoreUint32(&c.page.stop, 1)
	if n := atomic.LoadUint32(&c.page.cpu); n != 0 {
		kernelCall(kernel.CallKick, uintptr(n-1), 0)
	}
	if c.parked.Load() {
		c.wake()
	}
}

// Watch turns the reporting of Moved on or off. While it is on, Run returns Moved if this thread enters ring 3 on a
// different CPU than before, or if another thread has used ring 3 of the CPU since this thread was interrupted there. A thread that
// returns from a system call must not be in a critical section (rseq(2)), so for it another thread does not matter.
func (c *Context) Watch(on bool) {
	c.watches, c.page.placed = on, 0
	c.observe()
}

// CPU returns the number of the CPU on which Run returned Moved, or on which the thread was in ring 3. It returns the CPU of the
// caller for a thread without a set while Watch is off.
func (c *Context) CPU() int {
	if c.page.placed != 0 {
		return int(c.page.placed) - 1
	}
	n, _ := kernelCall(kernel.CallWhere, 0, 0)
	return int(n)
}

// Bases returns the bases of FS and GS.
func (c *Context) Bases() (fs, gs uint64) {
	c.save()
	return c.page.fsBase, c.page.gsBase
}

// SetBases sets the bases of FS and GS. It returns ErrAddress if one is not below Limit.
func (c *Context) SetBases(fs, gs uint64) error {
	if fs >= Limit || gs >= Limit {
		return ErrAddress
	}
	c.save()
	c.page.fsBase, c.page.gsBase = fs, gs
	return nil
}

// VectorSize returns the size of the vector registers in bytes.
func (c *Context) VectorSize() int { return kernel.VectorSize() }

// Vectors stores the vector registers in b, in the standard format of XSAVE (SDM volume 1, 13.4). b has VectorSize
// bytes.
func (c *Context) Vectors(b []byte) {
	c.save()
	copy(b, c.page.vectors())
	if !kernel.SavesVectors() {
		joinVectors(b, &c.page.wide, c.page.mxcsr)
	}
}

// SetVectors replaces the vector registers. State that XRSTOR would reject is cleared. b has VectorSize bytes.
func (c *Context) SetVectors(b []byte) {
	v := c.page.vectors()
	c.save()
	copy(v, b)
	cleanVectors(v, kernel.VectorComponents())
	if !kernel.SavesVectors() {
		c.page.mxcsr = splitVectors(v, &c.page.wide)
	}
}

// VectorComponents returns the components of the vector registers, as bits of XCR0.
func (c *Context) VectorComponents() uint64 { return kernel.VectorComponents() }

// SetDebug sets the debug registers DR0 to DR3 (addresses) and DR7 (control). A control of 0 means that the thread has
// no breakpoints. A Run after Restore loads the registers. The CPU keeps them for the threads that run on it next,
// until a debug exception occurs. The caller must ignore a debug exception whose breakpoint the thread did not set (SDM
// volume 3, 17.2). Addresses and control must be valid for ring 3.
func (c *Context) SetDebug(addresses [4]uint64, control uint64) {
	const always = 1 << 10 // bit of DR7 that is always set
	c.page.debug = addresses
	if c.page.control = control; control != 0 {
		c.page.control |= always
	}
}

// DebugStatus returns DR6, the status register, as of the last debug exception.
func (c *Context) DebugStatus() uint64 { return c.page.status }

// save stores the thread's x87 state and base of GS in its page. If another CPU holds the state, that CPU stores it.
func (c *Context) save() {
	if n := saveOwn(c.page); n != 0 {
		kernelCall(kernel.CallSave, uintptr(n-1), 0)
	}
}
