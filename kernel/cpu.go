package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/thread"
)

// maxCPUs is how many CPUs are used; more are left asleep.
const maxCPUs = 64

// cpu is what belongs to one CPU. GS points to it. The entry code knows the
// offsets of the first fields.
type cpu struct {
	self     uintptr // of this structure
	frameEnd uintptr // the end of the frame of who runs here
	scratch  uintptr // for the entry code
	stack    uintptr // the kernel's stack, its upper end
	vector   uintptr // where the vector registers of who runs here go
	crashEnd uintptr // the upper end of the stack of faults of the kernel's own
	task     [amd64.TaskSize]byte
	claimed  uint32 // not 0: no CPU that comes may be this one; atomic
	dozes    uint32 // not 0: it waits for the lock, and takes interrupts

	gdt amd64.GDT

	number  int32
	apic    uint32    // its number for interrupts
	idle    uintptr   // the page of the loop that waits for an interrupt
	current thread.ID // None: it is idle
	fsBase  uint64    // what the register holds
	since   int64     // when current began to run
	timer   int64     // when the timer will interrupt; 0: it rests
	shareAt int64     // when another CPU is woken for what is ready; 0: nothing is

	busySince int64 // when it was idle last; 0: it is now
	widenAt   int64 // when to widen next; 0: it has not been done yet

	charged   thread.ID // whose the time since chargedAt is
	chargedAt int64

	up     uint32  // it has started; atomic
	flush  request // to forget all translations
	kicked uint32  // an interrupt is on its way already; atomic
	rung   uint64  // interrupts of devices that it has taken, and not served yet
}

var (
	cpus     [maxCPUs]cpu
	cpuCount int32 // those that run; only grows
)

// idt is the same for all CPUs.
var idt [amd64.VectorCount]amd64.Gate

// prepare gives a CPU its tables and its idle page; its stacks are there.
func (c *cpu) prepare() {
	c.self = addressOf(c)
	putAddress(c.task[amd64.TaskStacks:], c.crashEnd)   // 1: changed on each way in and out
	putAddress(c.task[amd64.TaskStacks+8:], c.crashEnd) // 2: what nothing may disturb
	c.task[amd64.TaskMapOffset] = amd64.TaskSize
	c.gdt = amd64.NewGDT(addressOf(&c.task))

	pa, ok := frames.Alloc()
	if !ok {
		must(noMemory)
	}
	c.idle = windowAddress + uintptr(pa)
	*frameOf(c.idle) = amd64.Frame{
		Vector: amd64.VectorCall,
		IP:     uint64(entries.Idle), SP: uint64(c.crashEnd), // it uses no stack
		CS: amd64.CodeSelector, SS: amd64.DataSelector, Flags: amd64.FlagFixed,
	}
}

// runs has the next trap leave its frame in a thread's page.
func (c *cpu) runs(page uintptr) {
	c.frameEnd = page + amd64.PageSize
	c.vector = page
	putAddress(c.task[amd64.TaskStacks:], c.frameEnd)
}

// putAddress stores an address that need not be aligned.
func putAddress(b []byte, addr uintptr) {
	for i := range 8 {
		b[i] = byte(addr >> (8 * i))
	}
}

// install has this CPU use its tables.
func (c *cpu) install() {
	amd64.LoadGDT(addressOf(&c.gdt), uint16(len(c.gdt)*8-1))
	amd64.LoadTask(amd64.TaskSelector)
	amd64.LoadIDT(addressOf(&idt), uint16(len(idt)*16-1))
	amd64.WriteMSR(amd64.MSRGSBase, uint64(c.self))
	amd64.WriteMSR(amd64.MSRFSBase, 0)
	amd64.WriteMSR(amd64.MSRStar, amd64.CodeSelector<<32)
	amd64.WriteMSR(amd64.MSRLStar, uint64(entries.Trap))
	amd64.WriteMSR(amd64.MSRFlagMask, amd64.FlagInterrupt|amd64.FlagTrap|amd64.FlagDirection|amd64.FlagAlign)
	amd64.WriteMSR(amd64.MSREFER, amd64.ReadMSR(amd64.MSREFER)|amd64.EFERSyscall)
}

// features switches on, for this CPU, what all of them use.
func (c *cpu) features() {
	amd64.WriteCR0(amd64.ReadCR0() | amd64.CR0WriteProtect)
	v := amd64.ReadCR4()
	if have.SMEP {
		v |= amd64.CR4SMEP
	}
	if have.SMAP {
		v |= amd64.CR4SMAP
	}
	if have.UMIP {
		v |= amd64.CR4UMIP
	}
	if have.XSave {
		v |= amd64.CR4XSave
	}
	amd64.WriteCR4(v)
	haveXSave = have.XSave
	xsaveSize = fxsaveSize
	if have.XSave {
		can, _, _, _ := amd64.CPUID(0xd, 0)
		amd64.WriteXCR0(uint64(can) & amd64.XCR0Wanted)
		_, size, _, _ := amd64.CPUID(0xd, 0) // of what is in XCR0
		xsaveSize = uint64(size)
	}
	if have.NoExecute {
		amd64.WriteMSR(amd64.MSREFER, amd64.ReadMSR(amd64.MSREFER)|amd64.EFERNoExecute)
	}
}

// haveXSave is have.XSave, for the entry code.
var haveXSave bool

// fxsaveSize is what FXSAVE takes, where there is no XSAVE.
const fxsaveSize = 512

// fillIDT points each vector at its piece of the entry code.
func fillIDT() {
	const size = 16
	for v := range idt {
		stack := 1
		if v == amd64.VectorNMI || v == amd64.VectorDouble || v == amd64.VectorMachine {
			stack = 2
		}
		idt[v] = amd64.NewGate(entries.Vectors+uintptr(v)*size, stack)
	}
}

// flushIfAsked forgets translations if another CPU waits for that.
func (c *cpu) flushIfAsked() { c.flush.serve(flushAll) }

func flushAll() { amd64.WriteCR3(tables.Root) }

// flushRange has all CPUs forget the translations of a range, and waits until
// they have: then the pages may be used for something else. The others are not
// told which range it is; they forget everything, and are interrupted for it, but
// for those that are idle: these forget when they enter the kernel next, before
// they look at the program's memory. If page tables have gone, the idle ones are
// interrupted too, since any CPU may read ahead of what it does by tables that it
// remembers.
func flushRange(va, end uint64, tablesGone bool) {
	const few = 32 // pages, above which forgetting all is quicker
	if (end-va)/amd64.PageSize <= few {
		for ; va < end; va += amd64.PageSize {
			amd64.InvalidatePage(va)
		}
	} else {
		flushAll()
	}
	if cpuCount == 1 {
		return
	}
	self := apic.ID()
	for i := range cpuCount {
		if o := &cpus[i]; o.apic != self {
			o.flush.ask()
			if o.current != thread.None || tablesGone {
				o.kick()
			}
		}
	}
	for i := range cpuCount {
		for o := &cpus[i]; o.apic != self && (o.current != thread.None || tablesGone) && o.flush.open(); {
			relax()
		}
	}
}

// kick interrupts a CPU, once for all who want it to.
func (c *cpu) kick() {
	if atomic.SwapUint32(&c.kicked, 1) == 0 {
		apic.Kick(c.apic)
	}
}

// mapAPIC finds out how the APIC's registers are seen: by x2APIC mode where the CPU has
// it, which firmware may have switched on already; else by their page, which is no memory.
func mapAPIC() {
	const address = 0x000f_ffff_ffff_f000
	if have.X2APIC {
		apic = amd64.X2APIC
		return
	}
	pa := amd64.ReadMSR(amd64.MSRAPICBase) & address
	apic = amd64.APIC(windowAddress + uintptr(pa))
	pa &^= amd64.BigPageSize - 1
	mustMap(boot.Window+pa, pa, amd64.BigPageSize, amd64.PageWrite|amd64.PageUncached|amd64.PageGlobal|noExecute())
}

// startAPIC switches on this CPU's interrupt controller.
func (c *cpu) startAPIC() {
	apic.Enable(false)
	c.apic = apic.ID()
}
