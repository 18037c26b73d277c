// Package vdso makes the shared object that a kernel maps into every process, so that programs
// read clocks and the number of their CPU without a system call (vdso(7)).
//
// Image makes the file from machine code that code.go assembles: this tree has no C toolchain, and the code is only 60
// instructions. The code reads one page of data, which precedes the file in memory:
//
//	base - 4096   Data, mapped read-only
//	base          the ELF file, mapped read-only and executable; AT_SYSINFO_EHDR is base
//
// Only the kernel writes to Data. The sequence number is odd while an update is in progress, and changes with each
// update; a reader that sees an odd or a changed number starts again. On x86-64 loads are not reordered with loads, nor
// stores with stores, so readers need no fence except before RDTSC.
//
// The functions make the system call for a clock that Data does not offer, and for every clock while the time stamp
// counter cannot be used.
//
// Symbols have the version LINUX_2.6, because the Go runtime dereferences a null pointer if an object has no versions.
// DT_HASH is the only hash table.
package vdso

import "sync/atomic"

// Data is the page of data. The kernel overlays it on a physical page. The assembler in code.go uses the offsets of its
// fields.
type Data struct {
	sequence atomic.Uint32
	counter  atomic.Uint32 // not zero: the time stamp counter can be used
	start    atomic.Uint64 // time stamp counter at the last update
	mult     atomic.Uint64 // nanoseconds since start are counts * mult >> shift
	shift    atomic.Uint32 // see mult; below 64
	cpu      atomic.Uint32 // not zero: the register IA32_TSC_AUX of each CPU holds node<<12 | CPU
	base     atomic.Uint64 // nanoseconds of CLOCK_MONOTONIC at start
	clocks   atomic.Uint32 // bit set of the clocks that are offered, by clock ID
	_        [20]byte
	offset   [Clocks]atomic.Uint64 // nanoseconds from CLOCK_MONOTONIC to each clock
}

// Clocks is the number of clocks that Data can offer: CLOCK_REALTIME (0) to 15.
const Clocks = 16

// Offsets of the fields of Data, for the assembler.
const (
	atSequence = 0
	atCounter  = 4
	atStart    = 8
	atMult     = 16
	atShift    = 24
	atCPU      = 28
	atBase     = 32
	atClocks   = 40
	atOffset   = 64
)

// Clock is the state of the clocks at one time.
type Clock struct {
	Counter uint64 // value of the time stamp counter at that time
	Mult    uint64
	Shift   uint32
	Base    uint64         // nanoseconds of CLOCK_MONOTONIC at that time
	Offered uint32         // bit set of the clocks that are offered, by clock ID
	Offset  [Clocks]uint64 // difference of each clock to CLOCK_MONOTONIC, in nanoseconds modulo 2^64
}

// Update stores a new state. It must not be called concurrently. Readers on other CPUs see either the old state or the
// new one. Update does not allocate, so it may be called in ring 0 below the Go runtime.
func (d *Data) Update(c Clock) {
	d.sequence.Add(1)
	d.start.Store(c.Counter)
	d.mult.Store(c.Mult)
	d.shift.Store(c.Shift)
	d.base.Store(c.Base)
	for clock := range c.Offset {
		d.offset[clock].Store(c.Offset[clock])
	}
	d.clocks.Store(c.Offered)
	d.counter.Store(1)
	d.sequence.Add(1)
}

// Stop makes readers use system calls for clocks. It is called when the time stamp counter turns out to be unreliable.
func (d *Data) Stop() {
	d.sequence.Add(1)
	d.counter.Store(0)
	d.sequence.Add(1)
}

// OfferCPU makes readers use IA32_TSC_AUX, which holds the CPU's number in bits 0 to 11 and the node's number above. It
// must be valid on every CPU.
func (d *Data) OfferCPU() { d.cpu.Store(1) }
