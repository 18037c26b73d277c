package amd64

import _ "unsafe" // for go:linkname

// One function an instruction. They are ordinary calls, cost a few nanoseconds,
// and none of them touches memory that Go knows of, but where it says so. Those
// that are privileged fault outside of ring 0.

//go:linkname In8
func In8(port uint16) uint8

//go:linkname Out8
func Out8(port uint16, v uint8)

//go:linkname In16
func In16(port uint16) uint16

//go:linkname In32
func In32(port uint16) uint32

//go:linkname Out16
func Out16(port uint16, v uint16)

//go:linkname Out32
func Out32(port uint16, v uint32)

// CPUID is the instruction with EAX = leaf and ECX = sub.
//
//go:linkname CPUID
func CPUID(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// ReadMSR reads a model-specific register; one that is not there faults.
//
//go:linkname ReadMSR
func ReadMSR(msr uint32) uint64

//go:linkname WriteMSR
func WriteMSR(msr uint32, v uint64)

//go:linkname ReadCR0
func ReadCR0() uint64

//go:linkname WriteCR0
func WriteCR0(v uint64)

// ReadCR2 is the address of the last page fault.
//
//go:linkname ReadCR2
func ReadCR2() uint64

// WriteCR3 sets the physical address of the page tables, and drops all
// translations that are not global.
//
//go:linkname WriteCR3
func WriteCR3(v uint64)

//go:linkname ReadCR4
func ReadCR4() uint64

//go:linkname WriteCR4
func WriteCR4(v uint64)

// WriteXCR0 says which parts of the register state XSAVE saves.
//
//go:linkname WriteXCR0
func WriteXCR0(v uint64)

// InvalidatePage drops the translation of the page that va lies in, on this CPU.
//
//go:linkname InvalidatePage
func InvalidatePage(va uint64)

// LoadGDT loads the descriptor table at base and reloads all segment registers
// from it, with the selectors that NewGDT uses.
//
//go:linkname LoadGDT
func LoadGDT(base uintptr, limit uint16)

//go:linkname LoadIDT
func LoadIDT(base uintptr, limit uint16)

// LoadTask loads the task register.
//
//go:linkname LoadTask
func LoadTask(selector uint16)

// Timestamp reads the time stamp counter, after everything before it.
//
//go:linkname Timestamp
func Timestamp() uint64

// Random is RDRAND, which may fail.
//
//go:linkname Random
func Random() (v uint64, ok bool)

// Fence has all that was read and written before happen before all that follows, writes
// of model-specific registers too.
//
//go:linkname Fence
func Fence()

// Pause tells the CPU that this is a loop that waits.
//
//go:linkname Pause
func Pause()

// Doze waits for an interrupt with interrupts on, which are off before and after.
//
//go:linkname Doze
func Doze()

// Halt stops the CPU for good: interrupts are off.
//
//go:linkname Halt
func Halt()
