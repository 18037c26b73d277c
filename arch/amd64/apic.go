package amd64

import (
	"unsafe"
)

// The local APIC: SDM volume 3, chapter 11. In xAPIC mode its registers are words in
// a page of memory, at the same address for each CPU, which sees its own. In x2APIC
// mode they are model-specific registers (11.12), in the same order, and numbers of
// CPUs have 32 bits and not 8.

// APIC is where the registers are seen in xAPIC mode; 0 means x2APIC mode.
type APIC uintptr

// X2APIC is the APIC in x2APIC mode.
const X2APIC APIC = 0

// APICAddress is the physical address of the registers, unless MSRAPICBase says
// otherwise.
const APICAddress = 0xfee0_0000

// Offsets of registers: SDM volume 3, table 11-1.
const (
	apicID       = 0x020
	apicEOI      = 0x0b0
	apicSpurious = 0x0f0
	apicCommand  = 0x300 // and its upper half at 0x310
	apicTimer    = 0x320
	apicInitial  = 0x380
	apicCurrent  = 0x390
	apicDivide   = 0x3e0
)

const (
	apicEnable     = 1 << 8  // in apicSpurious
	apicDeadline   = 2 << 17 // in apicTimer: TSC-deadline mode, else one shot
	apicDivideBy16 = 0b0011
	apicPending    = 1 << 12 // in apicCommand: not delivered yet
	apicAssert     = 1 << 14
	apicInit       = 5 << 8
	apicStartup    = 6 << 8
)

func (a APIC) register(offset uintptr) *uint32 {
	// Safety: a is the page of the registers, offset one of the constants above.
	addr := uintptr(a) + offset
	return *(**uint32)(unsafe.Pointer(&addr))
}

// register2 is the model-specific register that takes the place of an offset: SDM
// volume 3, table 11-6.
func register2(offset uintptr) uint32 { return 0x800 + uint32(offset>>4) }

func (a APIC) read(offset uintptr) uint32 {
	if a == X2APIC {
		return uint32(ReadMSR(register2(offset)))
	}
	return load32(a.register(offset))
}

func (a APIC) write(offset uintptr, v uint32) {
	if a == X2APIC {
		WriteMSR(register2(offset), uint64(v))
		return
	}
	store32(a.register(offset), v)
}

// Enable switches the APIC of this CPU on, in its mode, with its timer at rest.
func (a APIC) Enable(deadline bool) {
	if a == X2APIC {
		WriteMSR(MSRAPICBase, ReadMSR(MSRAPICBase)|APICBaseEnable|APICBaseX2)
	}
	a.write(apicSpurious, apicEnable|VectorSpurious)
	a.write(apicDivide, apicDivideBy16)
	mode := uint32(VectorTimer)
	if deadline {
		mode |= apicDeadline
	}
	a.write(apicTimer, mode)
}

// ID is the number by which other CPUs reach this one.
func (a APIC) ID() uint32 {
	if a == X2APIC {
		return a.read(apicID)
	}
	return a.read(apicID) >> 24
}

// MaxID is the greatest number that a CPU can have; the one behind it means all.
func (a APIC) MaxID() uint32 {
	if a == X2APIC {
		return 1<<32 - 2
	}
	return 0xfe
}

// Done ends the interrupt that is being served.
func (a APIC) Done() { a.write(apicEOI, 0) }

// StartTimer has VectorTimer come once, after so many ticks; 0 stops it.
func (a APIC) StartTimer(ticks uint32) { a.write(apicInitial, ticks) }

// Timer is how many ticks are left.
func (a APIC) Timer() uint32 { return a.read(apicCurrent) }

// send writes the command register and waits until the APIC has taken it, which
// takes some cycles; if it has not after many tries it never will.
func (a APIC) send(id, command uint32) {
	if a == X2APIC {
		Fence() // what was written before is seen by who is interrupted: 11.12.3
		WriteMSR(register2(apicCommand), uint64(id)<<32|uint64(command))
		return
	}
	a.write(apicCommand+0x10, id<<24)
	a.write(apicCommand, command)
	for tries := 0; a.read(apicCommand)&apicPending != 0 && tries < 1e6; tries++ {
		Pause()
	}
}

// Kick interrupts another CPU.
func (a APIC) Kick(id uint32) { a.send(id, apicAssert|VectorKick) }

// Reset has another CPU wait for Start: SDM volume 3, 9.4.4.
func (a APIC) Reset(id uint32) { a.send(id, apicAssert|apicInit) }

// Start has a CPU that was reset begin in real mode at a page below 1 MiB.
func (a APIC) Start(id uint32, page uint64) {
	a.send(id, apicAssert|apicStartup|uint32(page>>pageShift))
}
