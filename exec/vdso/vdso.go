// Package vdso makes the shared object that a kernel maps into every process, so that programs
// read clocks and the number of their CPU without a system call (vdso(7)).
//
// The image is made by Image from machine code that code.go assembles: there is no toolchain for
// C in this tree, and the code is 60 instructions. It reads one page of data in front of it:
//
//	base - 4096   Data, mapped read-only
//	base          the ELF file, mapped read-only and executable; AT_SYSINFO_EHDR is base
//
// The kernel is the only writer of Data. A sequence number makes readers repeat when they met an
// update: it is odd while one is in progress. On x86-64 loads are not reordered with loads, nor stores with stores, so
// readers need no fence but the one in front of RDTSC.
//
// A clock that Data does not offer, and every clock while Data has no time stamp counter, is
// asked for by the system call.
//
// Symbols have the version LINUX_2.6: the runtime of Go dereferences a null pointer in an object without versions.
// DT_HASH is the only hash table.
package vdso

import "sync/atomic"

// Data is the page of data. The kernel overlays it on a physical page; its layout is known to code.go.
type Data struct {
	sequence atomic.Uint32
	counter  atomic.Uint32 // not zero: the time stamp counter can be used
	start    atomic.Uint64 // counter at the start
	mult     atomic.Uint64 // nanoseconds are counts * mult >> shift
	shift    atomic.Uint32 // below 64
	cpu      atomic.Uint32 // not zero: IA32_TSC_AUX holds node<<12 | CPU
	base     atomic.Uint64 // nanoseconds of CLOCK_MONOTONIC at start
	clocks   atomic.Uint32 // bits of the clocks that are offered
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

// Clock is the state of the clocks at one moment.
type Clock struct {
	Counter uint64 // value of the time stamp counter at that moment
	Mult    uint64
	Shift   uint32
	Base    uint64         // nanoseconds of CLOCK_MONOTONIC at that moment
	Offered uint32         // bits of the clocks that are offered
	Offset  [Clocks]uint64 // difference of each clock to CLOCK_MONOTONIC, in nanoseconds modulo 2^64
}

// Update stores a state. The caller is the only writer. Readers on other CPUs see all of it or nothing. Update allocates
// nothing, and may run in the core of the kernel.
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

// Stop makes readers use system calls for clocks, for when the counter turns out to be unreliable.
func (d *Data) Stop() {
	d.sequence.Add(1)
	d.counter.Store(0)
	d.sequence.Add(1)
}

// OfferCPU says that IA32_TSC_AUX of every CPU holds its number in bits 0 to 11 and its node above.
func (d *Data) OfferCPU() { d.cpu.Store(1) }
