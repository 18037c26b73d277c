package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/limit"
	"loam/kernel/page"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// core is the state of the kernel of one machine. The lock (lock.go) protects all of it, except for fields that are set
// once at the start, and fields that are accessed atomically.
//
// The core reaches its machine in two ways: by addresses of memory, which are in these fields, and by the functions of
// package arch/amd64 that execute one instruction. Tests replace these functions by a model of a processor, and so run a
// core on an ordinary host.
//
// Words that the Go runtime shares with the core are variables: Rung, Held and Debt. So are words that the entry code
// reads or writes: entries, haveXSave, haveSMAP and userVectors.
//
// The entry code knows the offsets of tables.Root and of the first fields of clock.
type core struct {
	tables amd64.Tables
	apic   amd64.APIC // access to the local APICs; set once
	clock  keeper     // changed by calibrate, correct and setWall

	cpus     [maxCPUs]cpu
	cpuCount int32                         // number of CPUs that run; it never decreases
	idt      [amd64.VectorCount]amd64.Gate // the interrupt descriptor table, which is the same for all CPUs

	big    uint32 // the lock: 1 while a CPU holds it; atomic
	dozing uint64 // set of CPUs that doze (lock.go), as bits; atomic

	// Parts of the machine. These fields are set once.
	window          uintptr        // address at which physical address 0 is mapped
	windowEnd       uint64         // end of the physical memory that is mapped in the window
	machine         boot.Info      // boot information of the machine
	have            amd64.Features // features of the processor
	controlled      bool           // the loam command has started this machine
	serialInterrupt int            // number of the serial port's interrupt, or none
	processors      [maxCPUs]uint32
	processorCount  int // number of elements in processors, the IDs of the CPUs' local APICs
	ioapics         [8]ioapic
	ioapicCount     int
	reference       referenceClock
	apicScale       uint64     // ticks of the APIC's timer for each nanosecond, as a fixed-point number with 32 fraction bits
	xsaveSize       uint64     // size of the vector registers in a thread's page, in bytes
	xsaveComponents uint64     // set of register components that XSAVE saves, as bits of XCR0
	allocatorTable  boot.Range // memory that the page allocator uses for its own table
	zeroed          boot.Range // range of the program's variables whose pages are populated on demand

	// Memory.
	pages   page.Allocator
	dynamic space.Space  // the program's memory between boot.DynamicLow and boot.DynamicHigh
	freed   [512]uint64  // pages that were removed from the page tables while a CPU may still have a translation to them
	ring3   amd64.Tables // the page tables for ring 3, without the lower half; Root 0: ring 3 runs on the kernel's tables (isolation.go)
	short   atomic.Bool  // see Short
	retired uint64       // root of an address space that all CPUs have to leave; 0: none; atomic

	// Threads and signals.
	threads           thread.Table
	actions           [signal.Max + 1]signal.Action
	profileInterval   int64  // interval set by setitimer(2), in nanoseconds; 0: the timer is off
	processUsed       int64  // CPU time of all threads together, in nanoseconds
	earlySignals      uint64 // set of signals that arrived while the kernel waited for the time of day
	barrierRegistered bool   // the program has registered for private expedited barriers (membarrier(2))

	// Files, devices and limits of the program.
	pipes     [maxPipes]pipe
	poller    poller
	lines     [MaxInterrupts]line
	limitsSet limit.Table

	// Time and random numbers.
	rtcAhead int64 // how far the RTC was ahead when the wall clock was set, in seconds
	// sharedClock is the address of the page of clocks (vdso.go); 0: there is none yet. It is not a pointer, because the
	// core must not store pointers: during a garbage collection, that would call the runtime's write barrier.
	sharedClock uintptr
	random      generator
	seeded      atomic.Bool // unpredictable bits have been mixed into random

	// Figures that are reported, and the state of the report of a crash.
	mostUsed uint64      // largest number of pages in use at the time of a call of getrusage(2)
	unserved [512]uint32 // counts of system calls that were not served, by number; the last element is for all larger numbers
	crashing int32       // number of the CPU that reports a crash, plus one; 0: none; atomic
	crashG   uintptr     // the word below the FS base during a crash, from which Go code loads g
}

// machineCore is the core of the machine that the program runs on. It contains no pointers, so the garbage collector does
// not scan it.
var machineCore core

// populated is called after the page at va has been mapped. It is nil, except in tests: the model of a machine has to map
// the page on its host too.
var populated func(va uint64)

// none is the number of an interrupt that does not exist.
const none = -1
