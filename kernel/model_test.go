package kernel

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"loam/arch/amd64"
	"loam/boot"
	"loam/boot/acpi"
	"loam/kernel/space"
	"loam/kernel/thread"
	"loam/kernel/timekeeper"
)

// A model of a machine, on which tests run a core: CPUs with TLBs, local APICs and timers; memory; a counter and a
// reference clock; a console. model_unsafe_test.go has the instructions.
//
// Each CPU is a coroutine. One of them executes at a time, up to its next PAUSE or HLT instruction, an access to the clock,
// or the end of a step of its program. The next CPU is then chosen by a seeded generator. So a run with several CPUs
// can be repeated, and CPUs wait for each other's lock and flushes as in a real machine.

// Sizes of the model, in bytes.
const (
	modelMemory  = 64 << 20 // physical memory
	modelProgram = 1 << 30  // addresses for the program's memory
	modelTable   = 1 << 20  // physical address of the page allocator's table
	modelFree    = 4 << 20  // start of the free memory, above the header of the program at boot.Load
)

// executing is the CPU that executes.
var executing *modelCPU

// machineEnds is the panic by which a machine is halted.
type machineEnds struct{}

// errStopped is the panic that ends the coroutine of a CPU after a test.
var errStopped = errors.New("stopped")

// machine is the model of a machine.
type machine struct {
	t     testing.TB
	core  *core
	fd    int // file of the host with the physical memory
	cpus  []*modelCPU
	rng   *rand.Rand
	ticks uint64            // the time, in nanoseconds
	host  map[uint64]uint64 // entries of the page tables that the host has mapped, by address of the page
	modelDevices
	ended  bool
	status uint32 // exit status of the ended machine
	faults int    // number of calls of fail

	low, high uint64 // bounds of the program's memory

	// program is the program that runs in the threads: it executes one step of the thread that is current on a CPU.
	program func(p *modelCPU)
	// served is called each time a CPU has left the kernel, before another CPU executes. It may be nil.
	served func(p *modelCPU)
	checks int // number of calls of check
}

// modelCPU is the model of a CPU.
type modelCPU struct {
	machine  *machine
	cpu      *cpu
	yield    func(struct{}) bool     // nil: the CPU is not a coroutine
	next     func() (struct{}, bool) // executes the coroutine up to its next yield; nil: it does not exist yet
	cr2, cr3 uint64
	timer    uint64            // time at which the timer expires; 0: it is stopped
	pending  [2]uint64         // set of vectors of pending interrupts
	serving  bool              // a device interrupt has not been ended (EOI)
	flushes  int               // number of times that all translations were dropped
	msrs     map[uint32]uint64 // the model-specific registers that the model only stores
	cr4      uint64
	tlb      map[uint64]uint64 // cached entries of the page tables, by address of the page
	kernel   bool              // the CPU is executing the kernel
	caller   thread.ID         // the thread that was current when the CPU last entered the kernel

	interruptFrame amd64.Frame
}

// newMachine returns a machine whose CPUs have started. Its program has one thread, which is current on the first CPU.
func newMachine(t testing.TB, cpus int, seed uint64) *machine {
	m := &machine{
		t: t, core: &core{}, fd: hostMemory(t, modelMemory), rng: rand.New(rand.NewPCG(seed, 1)),
		ticks: 1e9, host: map[uint64]uint64{}, modelDevices: newModelDevices(),
	}
	k := m.core
	const readWrite = 3
	reserve := hostMap(0, modelMemory+amd64.BigPageSize, 0, -1, 0)
	k.window = (reserve + amd64.BigPageSize - 1) &^ (amd64.BigPageSize - 1)
	hostMap(k.window, modelMemory, readWrite, m.fd, 0)
	m.low = uint64(hostMap(0, modelProgram+amd64.BigPageSize, 0, -1, 0))
	t.Cleanup(func() {
		hostUnmap(reserve, modelMemory+amd64.BigPageSize)
		hostUnmap(uintptr(m.low), modelProgram+amd64.BigPageSize)
		closeHost(m.fd)
	})
	low := (m.low + amd64.BigPageSize - 1) &^ (amd64.BigPageSize - 1)
	m.high = low + modelProgram

	k.windowEnd, k.serialInterrupt = modelMemory, none
	k.machine.Usable[0], k.machine.Ranges = boot.Range{End: modelMemory}, 1
	k.have.NoExecute = true
	k.apic, k.apicScale, k.xsaveSize = amd64.X2APIC, 1<<32, fxsaveSize
	k.tables.Window = k.window
	k.pages.Init(k.window, modelTable, modelMemory)
	k.pages.Add(modelFree, modelMemory)
	k.tables.Root, _ = k.pages.Alloc()
	k.dynamic.Init(low, m.high)
	populated = func(va uint64) { executing.machine.syncPage(va) }
	k.reference = referenceClock{kind: powerTimer, port: modelReference}

	k.cpuCount = int32(cpus)
	for i := range k.cpuCount {
		c := &k.cpus[i]
		p := &modelCPU{machine: m, cpu: c, tlb: map[uint64]uint64{}, msrs: map[uint32]uint64{}}
		m.cpus = append(m.cpus, p)
		executing = p
		c.number, c.apic, c.up = i, uint32(i), 1
		k.prepare(c)
		p.cr3 = c.root
	}
	executing = m.cpus[0]
	k.clock.Reference = timekeeper.Reference{Bits: 24, Num: 1e9, Den: acpi.TimerFrequency}
	k.clock.Begin(k.sample(), 1<<32, 1)
	id, _ := k.newThread()
	*frameOf(k.threads.At(id).Page) = amd64.Frame{Vector: amd64.VectorCall, CS: amd64.CodeSelector, SS: amd64.DataSelector}
	k.cpus[0].current = id
	for _, p := range m.cpus {
		executing = p
		k.lock(p.cpu)
		frameAt, _ := k.leave(p.cpu)
		p.resumes(frameAt)
	}
	executing = m.cpus[0]
	return m
}

// fail reports an error of the kernel under test.
func (m *machine) fail(format string, args ...any) {
	m.t.Helper()
	if m.faults++; m.faults < 10 {
		m.t.Errorf(format, args...)
	}
}

// run runs the machine for a number of turns. In a turn, one CPU executes up to its next pause, or until the machine ends.
func (m *machine) run(turns int) {
	for _, p := range m.cpus {
		if p.next == nil {
			next, stop := iter.Pull(p.execute)
			p.next = next
			m.t.Cleanup(stop)
		}
	}
	for range turns {
		if m.ended || m.faults > 0 {
			return
		}
		executing = m.cpus[m.rng.IntN(len(m.cpus))]
		executing.next()
		if !m.ended {
			m.check()
		}
	}
}

// execute is the coroutine of a CPU: it serves interrupts and runs the program.
func (p *modelCPU) execute(yield func(struct{}) bool) {
	p.yield = yield
	defer func() {
		p.yield = nil
		switch err := recover().(type) {
		case nil:
		case machineEnds:
			p.machine.ended = true
		default:
			if err != errStopped {
				p.machine.fail("CPU %d: %v", p.cpu.number, err)
			}
		}
	}()
	for {
		p.step()
		p.pause()
	}
}

// step serves an interrupt or executes a step of the program. An idle CPU lets time pass.
func (p *modelCPU) step() {
	m := p.machine
	vector, pending := p.accept()
	switch {
	case pending:
		frameOf(p.page()).Vector, frameOf(p.page()).Code = vector, 0
		p.serve()
	case p.cpu.current != thread.None && m.program != nil:
		m.program(p)
	case m.resting():
		m.ticks = max(m.ticks, m.earliest())
	}
}

// serve enters the kernel, as the entry code does.
func (p *modelCPU) serve() {
	p.kernel, p.caller = true, p.cpu.current
	p.enter()
	p.kernel = false
	if p.machine.served != nil {
		p.machine.served(p)
	}
}

// resting reports whether all CPUs are idle, without a pending interrupt.
func (m *machine) resting() bool {
	for _, p := range m.cpus {
		if p.kernel || p.cpu.current != thread.None || p.pending != [2]uint64{} {
			return false
		}
	}
	return true
}

// earliest returns the time at which the first timer expires; 0 if no timer runs.
func (m *machine) earliest() uint64 {
	first := uint64(0)
	for _, p := range m.cpus {
		if p.timer != 0 && (first == 0 || p.timer < first) {
			first = p.timer
		}
	}
	return first
}

// page returns the page with the trap frame of the thread that is current on the CPU, or of the idle loop.
func (p *modelCPU) page() uintptr {
	if p.cpu.current == thread.None {
		return p.cpu.idle
	}
	return p.machine.core.threads.At(p.cpu.current).Page
}

// raise makes an interrupt pending.
func (p *modelCPU) raise(vector uint64) { p.pending[vector/64] |= 1 << (vector % 64) }

// accept takes the pending interrupt with the highest priority, if the CPU accepts one.
func (p *modelCPU) accept() (vector uint64, ok bool) {
	if p.timer != 0 && p.timer <= p.machine.ticks {
		p.timer = 0
		p.raise(amd64.VectorTimer)
	}
	lowest := 0
	if p.serving {
		lowest = amd64.VectorTimer
	}
	for v := amd64.VectorCount - 1; v >= lowest; v-- {
		if p.pending[v/64]>>(v%64)&1 == 0 {
			continue
		}
		p.pending[v/64] &^= 1 << (v % 64)
		p.serving = p.serving || v < amd64.VectorTimer
		return uint64(v), true
	}
	return 0, false
}

// pause lets another CPU execute.
func (p *modelCPU) pause() {
	p.machine.ticks += p.machine.pauseTime
	p.machine.happen()
	if p.yield == nil {
		return
	}
	if !p.yield(struct{}{}) {
		panic(errStopped)
	}
	executing = p
}

// doze waits for an interrupt and serves it, as a CPU does that waits for the kernel's lock.
func (p *modelCPU) doze() {
	for {
		if vector, ok := p.accept(); ok {
			p.interrupted(vector)
			return
		}
		p.pause()
	}
}

// timestamp returns the counter, and sometimes lets another CPU execute first.
func (m *machine) timestamp() uint64 {
	m.ticks += 20
	if p := executing; p.yield != nil && m.rng.IntN(8) == 0 {
		p.pause()
	}
	return m.counter()
}

// writeCR3 drops all translations of the CPU.
func (p *modelCPU) writeCR3(root uint64) {
	p.cr3 = root
	p.flushes++
	clear(p.tlb)
	for va := range p.machine.host {
		p.machine.syncPage(va)
	}
}

// invalidatePage drops the translation of a page.
func (p *modelCPU) invalidatePage(va uint64) {
	va &^= amd64.PageSize - 1
	delete(p.tlb, va)
	if va >= p.machine.low && va < p.machine.high {
		p.machine.syncPage(va)
	}
}

// syncPage makes the host's mapping of a page equal to the entry in the page tables.
func (m *machine) syncPage(va uint64) {
	va &^= amd64.PageSize - 1
	entry, size := m.core.tables.Lookup(va)
	if entry&amd64.PagePresent == 0 {
		if _, mapped := m.host[va]; mapped {
			hostMap(uintptr(va), amd64.PageSize, 0, -1, 0)
			delete(m.host, va)
		}
		return
	}
	if m.host[va] == entry {
		return
	}
	prot := 1
	if entry&amd64.PageWrite != 0 {
		prot |= 2
	}
	start := va &^ (size - 1)
	hostMap(uintptr(start), size, prot, m.fd, amd64.Physical(entry))
	for at := start; at < start+size; at += amd64.PageSize {
		m.host[at] = entry
	}
}

// translation returns the entry of the page tables for a page of 4 KiB, as if all pages were small.
func (m *machine) translation(va uint64) uint64 {
	entry, size := m.core.tables.Lookup(va)
	const flags = amd64.PagePresent | amd64.PageWrite
	if entry&amd64.PagePresent == 0 {
		return 0
	}
	return amd64.Physical(entry) + va&(size-1)&^(amd64.PageSize-1) | entry&flags
}

// access translates an address for the program as the processor does: by the TLB, then by the page tables. It enters the
// kernel for a page fault, and reports whether the access then succeeds. If it fails, the thread is in its signal handler.
func (p *modelCPU) access(addr uint64, write bool) bool {
	va := addr &^ (amd64.PageSize - 1)
	need, id := uint64(amd64.PagePresent), p.cpu.current
	if write {
		need |= amd64.PageWrite
	}
	for range 4 {
		if p.tlb[va]&need == need {
			return true
		}
		entry := p.machine.translation(va)
		if entry&need == need {
			p.tlb[va] = entry
			continue
		}
		f := frameOf(p.page())
		f.Vector, f.Code = amd64.VectorPage, entry&amd64.PagePresent // the bit PagePresent has the same position in a page table entry and in the error code
		if write {
			f.Code |= amd64.FaultWrite
		}
		p.cr2 = addr
		p.serve()
		if p.cpu.current != id || frameOf(p.page()).IP == modelHandler {
			return false
		}
	}
	p.machine.fail("the fault at %#x is served again and again", addr)
	return false
}

// modelHandler is the address of the program's signal handler.
const modelHandler = 0x1234_0000

// call makes a system call in the current thread. The result is valid if the thread is still current, and no signal handler
// was called.
func (p *modelCPU) call(number uint64, args ...uint64) int64 {
	f := frameOf(p.page())
	p.prepareCall(number, args...)
	p.serve()
	return int64(f.AX)
}

// prepareCall sets the registers of the current thread for a system call.
func (p *modelCPU) prepareCall(number uint64, args ...uint64) {
	var a [6]uint64
	copy(a[:], args)
	f := frameOf(p.page())
	f.Vector, f.Code, f.AX = amd64.VectorCall, 0, number
	f.DI, f.SI, f.DX, f.R10, f.R8, f.R9 = a[0], a[1], a[2], a[3], a[4], a[5]
}

// check checks the invariants that hold whenever no CPU is in the kernel.
func (m *machine) check() {
	m.t.Helper()
	k := m.core
	running := map[thread.ID]int32{}
	idle, kicked := false, false
	for _, p := range m.cpus {
		if p.kernel {
			return
		}
		c := p.cpu
		own := p.pending[amd64.VectorKick/64]>>(amd64.VectorKick%64)&1 != 0
		if k.threads.HasMoved(c.number) && !own {
			m.fail("a thread was moved to CPU %d, which no interrupt makes take it", c.number)
		}
		if c.current == thread.None {
			idle = true
			kicked = kicked || own
			continue
		}
		if other, twice := running[c.current]; twice {
			m.fail("thread %d runs on CPU %d and on CPU %d", c.current, other, c.number)
		}
		running[c.current] = c.number
		m.checkTLB(p)
	}
	for id := thread.ID(1); id <= k.threads.Last(); id++ {
		if _, runs := running[id]; runs != (k.threads.At(id).State == thread.Running) {
			m.fail("thread %d: state %d, current on a CPU: %v", id, k.threads.At(id).State, runs)
		}
	}
	if k.big != 0 {
		m.fail("the lock is held, and no CPU is in the core")
	}
	if !Emulated && idle && k.threads.HasReady() && !kicked {
		m.fail("a thread is ready and a CPU is idle, which no interrupt wakes")
	}
	if first := min(k.threads.Earliest(), int64(k.clock.Due())); !m.wakes(first) {
		m.fail("no timer expires at %d, when the core has work", first)
	}
	if m.checks++; m.checks%16 == 1 { // it takes longer than the other checks
		m.checkPages()
	}
}

// wakes reports whether a CPU enters the kernel at the given time of the kernel's clock, or soon after.
func (m *machine) wakes(at int64) bool {
	const late = 2e6 // nanoseconds: while the clock is corrected, it differs from the timer by up to 0.05 %
	for _, p := range m.cpus {
		armed := p.timer != 0 && int64(m.core.clock.At(p.timer)) <= at+late || p.pending != [2]uint64{}
		if armed || at == thread.Never {
			return true
		}
	}
	return false
}

// checkTLB checks that a CPU that runs a thread has no translation that the page tables do not have, unless it has been
// asked to flush.
func (m *machine) checkTLB(p *modelCPU) {
	if p.cpu.flush.open() {
		return
	}
	for va, cached := range p.tlb {
		const rights = amd64.PagePresent | amd64.PageWrite
		if entry := m.translation(va); entry&cached&rights != cached&rights || amd64.Physical(entry) != amd64.Physical(cached) {
			m.fail("CPU %d has the stale translation %#x of %#x, which is %#x now", p.cpu.number, cached, va, entry)
		}
	}
}

// checkPages checks that each page in use belongs to one owner, and that no page is lost.
func (m *machine) checkPages() {
	k := m.core
	used, owner := uint64(0), map[uint64]string{}
	take := func(pa, size uint64, what string) {
		for at := pa; at < pa+size; at += amd64.PageSize {
			if before, twice := owner[at]; twice {
				m.fail("page %#x: %s, and %s", at, what, before)
			}
			owner[at] = what
			used++
		}
	}
	m.walk(k.tables.Root, 3, 0, take)
	for _, p := range m.cpus {
		take(uint64(p.cpu.idle-k.window), amd64.PageSize, "idle page")
	}
	for id := thread.ID(1); id <= k.threads.Last(); id++ {
		if page := k.threads.At(id).Page; page != 0 {
			take(uint64(page-k.window), amd64.PageSize, fmt.Sprintf("page of thread %d", id))
		}
	}
	chunks := uint64(k.threads.Last()) / thread.ChunkThreads
	if free, total := k.pages.Pages(); free+used+chunks != total && free+used+chunks+1 != total {
		m.fail("of %d pages %d are free and %d in use", total, free, used+chunks)
	}
}

// walk calls the function take for all pages of the page tables, and for the pages that they map.
func (m *machine) walk(table uint64, level int, va uint64, take func(pa, size uint64, what string)) {
	take(table, amd64.PageSize, "page table")
	for i := range uint64(512) {
		entry := *word(uint64(m.core.window) + table + i*8)
		at := va | i<<(12+9*level)
		switch {
		case entry == 0:
		case level > 0 && entry&amd64.PageBig == 0:
			m.walk(amd64.Physical(entry), level-1, at, take)
		default:
			take(amd64.Physical(entry), 1<<(12+9*level), fmt.Sprintf("memory at %#x", at))
			if region, ok := m.core.dynamic.Find(at); !ok {
				m.fail("the page at %#x is mapped, and its address is free", at)
			} else if entry&amd64.PagePresent != 0 && entry&amd64.PageWrite != 0 && region.Rights&space.Write == 0 {
				m.fail("the page at %#x is writable, with the rights %d", at, region.Rights)
			}
		}
	}
}
