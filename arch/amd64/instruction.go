package amd64

import _ "unsafe" // for go:linkname

// Each function executes one instruction. It is called, not inlined, and costs a few nanoseconds. A function accesses
// memory only if its comment says so. A privileged instruction outside ring 0 causes a fault.
//
// In8, In16 and In32 read an I/O port, and Out8, Out16 and Out32 write one; the number is the width in bits.
// ReadMSR and WriteMSR access a model-specific register; the Read and Write functions of CR0, CR2, CR3, CR4 and
// XCR0 access control registers. LoadIDT loads the interrupt descriptor table at base; limit is the size of the
// table in bytes minus one.

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

// CPUID executes CPUID with EAX = leaf and ECX = sub.
//
//go:linkname CPUID
func CPUID(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// ReadMSR reads a model-specific register. A register that does not exist causes a general-protection fault.
//
//go:linkname ReadMSR
func ReadMSR(msr uint32) uint64

//go:linkname WriteMSR
func WriteMSR(msr uint32, v uint64)

//go:linkname ReadCR0
func ReadCR0() uint64

//go:linkname WriteCR0
func WriteCR0(v uint64)

// ReadCR2 returns the address of the last page fault.
//
//go:linkname ReadCR2
func ReadCR2() uint64

// ReadCR3 returns the physical address of the root page table.
//
//go:linkname ReadCR3
func ReadCR3() uint64

// WriteCR3 sets the physical address of the root page table and flushes all translations that are not global.
//
//go:linkname WriteCR3
func WriteCR3(v uint64)

//go:linkname ReadCR4
func ReadCR4() uint64

//go:linkname WriteCR4
func WriteCR4(v uint64)

// WriteXCR0 sets the components of the register state that XSAVE saves.
//
//go:linkname WriteXCR0
func WriteXCR0(v uint64)

// InvalidatePage flushes the translation of the page that contains va, on this CPU.
//
//go:linkname InvalidatePage
func InvalidatePage(va uint64)

// LoadGDT loads the global descriptor table at base and reloads all segment registers, with the selectors of
// NewGDT. limit is the size of the table in bytes minus one.
//
//go:linkname LoadGDT
func LoadGDT(base uintptr, limit uint16)

//go:linkname LoadIDT
func LoadIDT(base uintptr, limit uint16)

// LoadTask loads the task register with a selector.
//
//go:linkname LoadTask
func LoadTask(selector uint16)

// LoadLocal loads the local descriptor table register with a selector; 0 means that there is no table.
//
//go:linkname LoadLocal
func LoadLocal(selector uint16)

// Timestamp reads the time stamp counter after all earlier instructions have completed.
//
//go:linkname Timestamp
func Timestamp() uint64

// XSave stores components of the vector state (bits of XCR0) at an address, which must be a multiple of 64.
//
//go:linkname XSave
func XSave(addr uintptr, components uint32)

// Random executes RDRAND; false if it returns no number.
//
//go:linkname Random
func Random() (v uint64, ok bool)

// Fence orders all earlier reads and writes before all later ones, including writes of model-specific registers.
//
//go:linkname Fence
func Fence()

// Pause executes PAUSE, for the body of a spin loop.
//
//go:linkname Pause
func Pause()

// Doze enables interrupts, halts the CPU until an interrupt has been handled, and disables interrupts again.
//
//go:linkname Doze
func Doze()

// Halt stops the CPU for good, with interrupts disabled. It does not return.
//
//go:linkname Halt
func Halt()
