package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/kernel/thread"
)

// maxCPUs is the number of CPUs that the kernel uses. Further CPUs are not started.
const maxCPUs = thread.CPUs

// cpu is the state of one CPU. GS points to it while the CPU is in ring 0. The entry code knows the offsets of the
// first fields.
type cpu struct {
	self     uintptr // address of this structure, which the entry code reads through GS
	frameEnd uintptr // upper end of the trap frame of the running thread
	scratch  uintptr // the entry code saves a register here
	stack    uintptr // upper end of the kernel's stack
	vector   uintptr // where the vector registers of the running thread are saved
	crashEnd uintptr // upper end of the stack on which faults in the kernel are handled
	task     [amd64.TaskSize]byte
	claimed  uint32 // not 0: a CPU has taken this structure, so a CPU that starts late must not use it; atomic
	dozes    uint32 // not 0: the CPU waits for the kernel's lock with interrupts enabled

	// The fields up to area are used by the code that enters and leaves ring 3 (user.go).
	root uint64 // value of CR3
	// address of the set of CPUs that use the current address space (root); 0: this is the kernel's own address space
	active   uintptr
	fsBase   uint64  // value of the FS base in ring 0
	callerSP uintptr // registers of the goroutine whose thread is in ring 3: callerSP, callerBP and callerG
	callerBP uintptr
	callerG  uintptr
	user     uintptr // address of the context whose x87 state is in the processor; 0: there is none
	number   int32
	last     uintptr // address of the context that was the last to enter ring 3 on this CPU; 0: there was none
	// address at which a thread that copies memory of a process continues after a page fault or an interrupt; 0: the thread
	// does not copy
	copying uintptr
	area    uintptr // address of the CPU's entryArea; 0: there is none

	core uintptr // address of the structure core that the CPU belongs to

	gdt amd64.GDT

	debugEnd uintptr // upper end of the stack for debug exceptions

	apic    uint32    // ID of the CPU's local APIC
	idle    uintptr   // page with the trap frame of the idle loop
	current thread.ID // thread that runs on the CPU; None: the CPU is idle
	since   int64     // time at which current began to run
	timer   int64     // time at which the CPU's timer expires; 0: the timer is not armed
	shareAt int64     // time at which another CPU is woken for the ready threads; 0: not planned

	busySince int64 // time at which the CPU was last idle; 0: it is idle now

	charged   thread.ID // thread to which the CPU time since chargedAt belongs
	chargedAt int64

	up     uint32  // the CPU has started; atomic
	flush  request // request of other CPUs to flush all translations
	kicked uint32  // not 0: an interrupt of another CPU is already on its way; atomic
	rung   uint64  // bit set of device interrupts that the CPU has received and not yet served
}

// prepare fills in a CPU's tables and its idle page. Its stacks are already mapped.
func (k *core) prepare(c *cpu) {
	c.self, c.core = addressOf(c), addressOf(k)
	// stack 1 of the interrupt stack table: runs changes it whenever a thread is resumed
	putAddress(c.task[amd64.TaskStacks:], c.crashEnd)
	// stack 2 of the interrupt stack table: for exceptions that may occur at any instruction
	putAddress(c.task[amd64.TaskStacks+8:], c.crashEnd)
	// stack 3: for debug exceptions, which may occur before the first instruction of another exception's entry code
	putAddress(c.task[amd64.TaskStacks+16:], c.debugEnd)
	c.task[amd64.TaskMapOffset] = amd64.TaskSize
	c.gdt = amd64.NewGDT(addressOf(&c.task))
	c.root = k.tables.Root
	k.prepareArea(c)

	pa, ok := k.pages.Alloc()
	if !ok {
		k.must(noMemory)
	}
	c.idle = k.window + uintptr(pa)
	*frameOf(c.idle) = amd64.Frame{
		Vector: amd64.VectorCall,
		IP:     uint64(entries.Idle), SP: uint64(c.crashEnd), // the idle loop uses no stack, but SP must be a valid address
		CS: amd64.CodeSelector, SS: amd64.DataSelector, Flags: amd64.FlagFixed,
	}
}

// runs prepares the CPU to run a thread: the processor stores the frame of the next trap in the thread's
// page.
func (c *cpu) runs(page uintptr) {
	c.frameEnd = page + amd64.PageSize
	c.vector = page
	putAddress(c.task[amd64.TaskStacks:], c.frameEnd)
}

// putAddress stores addr in the first bytes of b, which need not be aligned.
func putAddress(b []byte, addr uintptr) {
	for i := range 8 {
		b[i] = byte(addr >> (8 * i))
	}
}

// install loads this CPU's tables and system registers.
func (k *core) install(c *cpu) {
	for _, end := range [...]uintptr{c.crashEnd, c.debugEnd} {
		*word(uint64(end)) = uint64(c.self) // the address of c, which the entry code reads there: see crashRoom
	}
	gdt, idt := k.descriptors(c)
	amd64.LoadGDT(gdt, uint16(len(c.gdt)*8-1))
	amd64.LoadTask(amd64.TaskSelector)
	amd64.LoadLocal(0) // firmware may leave a local descriptor table at address 0, which ring 3 could map and fill
	amd64.LoadIDT(idt, uint16(len(k.idt)*16-1))
	amd64.WriteMSR(amd64.MSRGSBase, uint64(c.self))
	amd64.WriteMSR(amd64.MSRFSBase, 0)
	amd64.WriteMSR(amd64.MSRStar, amd64.UserBase<<48|amd64.CodeSelector<<32)
	amd64.WriteMSR(amd64.MSRLStar, uint64(entries.Trap))
	amd64.WriteMSR(amd64.MSRFlagMask, amd64.FlagInterrupt|amd64.FlagTrap|amd64.FlagDirection|
		amd64.FlagAlign|amd64.FlagIOPL|amd64.FlagNested)
	amd64.WriteMSR(amd64.MSRSysenter, 0) // firmware may have set it: SYSENTER would then enter ring 0
	amd64.WriteMSR(amd64.MSREFER, amd64.ReadMSR(amd64.MSREFER)|amd64.EFERSyscall)
}

// features enables the processor features that all CPUs use. It disables those by which a translation survives a write of CR3: a boot
// loader may have enabled them.
func (k *core) features(c *cpu) {
	amd64.WriteCR0(amd64.ReadCR0() | amd64.CR0WriteProtect)
	v := amd64.ReadCR4() &^ (amd64.CR4PageGlobal | amd64.CR4ProcessContext)
	if k.have.SMEP {
		v |= amd64.CR4SMEP
	}
	if haveSMAP = k.have.SMAP; haveSMAP {
		v |= amd64.CR4SMAP
	}
	if k.have.Machine {
		v |= amd64.CR4Machine
	}
	if k.have.UMIP {
		v |= amd64.CR4UMIP
	}
	if k.have.XSave {
		v |= amd64.CR4XSave
	}
	if k.have.FSGSBase {
		v |= amd64.CR4FSGSBase
	}
	amd64.WriteCR4(v)
	haveXSave = k.have.XSave
	k.xsaveSize = fxsaveSize
	if k.have.XSave {
		can, _, _, _ := amd64.CPUID(0xd, 0)
		k.xsaveComponents = uint64(can) & amd64.XCR0Wanted
		amd64.WriteXCR0(k.xsaveComponents)
		userVectors = vectorsOf(k.xsaveComponents)
		_, size, _, _ := amd64.CPUID(0xd, 0) // size of the state components enabled in XCR0
		k.xsaveSize = uint64(size)
	}
	if k.have.CPUNumber {
		amd64.WriteMSR(amd64.MSRTSCAux, uint64(c.number))
	}
	if k.have.NoExecute {
		amd64.WriteMSR(amd64.MSREFER, amd64.ReadMSR(amd64.MSREFER)|amd64.EFERNoExecute)
	}
}

// userVectors selects the method by which the vector registers of ring 3 are saved; set once.
var userVectors = vectorsAll

// Values of userVectors. The entry code knows them.
const (
	vectorsAll uint8 = iota // XSAVE saves all vector registers
	vectorsSSE              // moves save the SSE registers, and XSAVE the x87 state
	vectorsAVX
)

// vectorsOf selects the method for the state components that are enabled in XCR0.
func vectorsOf(components uint64) uint8 {
	const sse, avx = 0b11, 0b111
	switch components {
	case sse:
		return vectorsSSE
	case avx:
		return vectorsAVX
	}
	return vectorsAll
}

// haveXSave is a copy of have.XSave, which the entry code reads.
var haveXSave bool

// haveSMAP is a copy of have.SMAP, which the entry code and the copies to and from processes read.
var haveSMAP bool

// fxsaveSize is the size of the area that FXSAVE writes, in bytes. FXSAVE is used on a processor without XSAVE.
const fxsaveSize = 512

// fillIDT points each vector at its stub in the entry code.
func (k *core) fillIDT() {
	const size = 16
	for v := range k.idt {
		stack := 1
		switch v {
		case amd64.VectorNMI, amd64.VectorDouble, amd64.VectorMachine:
			stack = 2
		case amd64.VectorDebug:
			stack = 3
		}
		k.idt[v] = amd64.NewGate(entries.Vectors+uintptr(v)*size, stack)
	}
	k.idt[amd64.VectorBreakpoint] = k.idt[amd64.VectorBreakpoint].ForUser()
}

// flushIfAsked drops the CPU's address translations (TLB entries) if another CPU has requested it.
func (k *core) flushIfAsked(c *cpu) {
	if c.flush.open() {
		k.serveFlush(c)
	}
}

// serveFlush is separate from flushIfAsked so that the latter can be inlined: its common case is a single load.
func (k *core) serveFlush(c *cpu) { c.flush.serve(func() { k.forget(c) }) }

func flushAll() { amd64.WriteCR3(amd64.ReadCR3()) }

// flushRange makes all CPUs drop their translations of a range and waits until they have. Afterwards the pages may
// be reused. Other CPUs do not know the range and drop all translations.
//
// Running CPUs are interrupted for this. An idle CPU flushes when it next enters the kernel, before it accesses the
// program's memory. If page tables were removed, idle CPUs are interrupted too: any CPU may speculatively walk
// tables that it has cached.
func (k *core) flushRange(va, end uint64, tablesGone bool) {
	const few = 32 // number of pages; for more, a flush of all translations is faster
	if (end-va)/amd64.PageSize <= few {
		for ; va < end; va += amd64.PageSize {
			amd64.InvalidatePage(va)
		}
	} else {
		flushAll()
	}
	if k.cpuCount > 1 {
		k.flushOthers(everyCPU, tablesGone)
	}
}

// everyCPU is the set of all CPUs. Bit n of a set stands for CPU n.
const everyCPU = 1<<64 - 1

// flushOthers makes the CPUs of the bit set who drop all address translations, except the calling CPU. It waits
// until the CPUs that run a thread have done so; with idleToo, it waits for all CPUs of the set. It reports whether all CPUs of
// the set have dropped their translations.
func (k *core) flushOthers(who uint64, idleToo bool) bool {
	self := k.apic.ID()
	asked := func(i int32) *cpu {
		if o := &k.cpus[i]; who>>i&1 != 0 && o.apic != self {
			return o
		}
		return nil
	}
	for i := range k.cpuCount {
		if o := asked(i); o != nil {
			o.flush.ask()
			if o.current != thread.None || idleToo {
				k.kick(o)
			}
		}
	}
	all := true
	for i := range k.cpuCount {
		o := asked(i)
		for o != nil && (o.current != thread.None || idleToo) && o.flush.open() {
			amd64.Pause()
		}
		all = all && (o == nil || !o.flush.open())
	}
	return all
}

// kick sends an interrupt to a CPU, so that it enters the kernel. Several kicks before the CPU takes the
// interrupt cause one interrupt.
func (k *core) kick(c *cpu) {
	if atomic.SwapUint32(&c.kicked, 1) == 0 {
		k.apic.Kick(c.apic)
	}
}

// mapAPIC selects the access to the local APIC's registers: x2APIC mode if the CPU supports it (firmware may have
// enabled it already), otherwise their page of memory-mapped registers, which it maps uncached.
func (k *core) mapAPIC() {
	const address = 0x000f_ffff_ffff_f000
	if k.have.X2APIC {
		k.apic = amd64.X2APIC
		return
	}
	pa := amd64.ReadMSR(amd64.MSRAPICBase) & address
	k.apic = amd64.APIC(k.window + uintptr(pa))
	pa &^= amd64.BigPageSize - 1
	k.mustMap(uint64(k.window)+pa, pa, amd64.BigPageSize, amd64.PageWrite|amd64.PageUncached|amd64.PageGlobal|k.noExecute())
}

// startAPIC enables this CPU's local APIC.
func (k *core) startAPIC(c *cpu) {
	k.apic.Enable(false)
	c.apic = k.apic.ID()
}
