package amd64

import (
	"unsafe"
)

// The local APIC: SDM volume 3, chapter 11. In xAPIC mode its registers are 32-bit words in a page of memory; the
// page has the same address on each CPU, and each CPU accesses its own APIC there. In x2APIC mode they are
// model-specific registers (11.12), in the same order, and APIC IDs have 32 bits instead of 8.

// APIC is a local APIC: the virtual address of its registers in xAPIC mode, or 0 in x2APIC mode.
type APIC uintptr

// X2APIC is the APIC in x2APIC mode.
const X2APIC APIC = 0

// APICAddress is the default physical address of the registers. MSRAPICBase contains the current address.
const APICAddress = 0xfee0_0000

// Offsets of registers: SDM volume 3, table 11-1.
const (
	apicID       = 0x020
	apicEOI      = 0x0b0
	apicSpurious = 0x0f0
	apicCommand  = 0x300 // the upper half is at 0x310
	apicTimer    = 0x320
	apicInitial  = 0x380
	apicCurrent  = 0x390
	apicDivide   = 0x3e0
)

const (
	apicEnable     = 1 << 8  // bit of apicSpurious: the APIC is enabled
	apicDeadline   = 2 << 17 // in apicTimer: TSC-deadline mode; otherwise, one-shot mode
	apicDivideBy16 = 0b0011
	apicPending    = 1 << 12 // in apicCommand: not delivered yet
	apicAssert     = 1 << 14
	apicInit       = 5 << 8
	apicStartup    = 6 << 8
)

func (a APIC) register(offset uintptr) *uint32 {
	// Safety: a is the address of the page of registers, offset one of the constants above.
	addr := uintptr(a) + offset
	return *(**uint32)(unsafe.Pointer(&addr))
}

// register2 returns the model-specific register for an offset: SDM volume 3, table 11-6.
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

// Enable enables this CPU's APIC in mode a, with its timer stopped. The timer is in TSC-deadline mode if deadline is
// set, and otherwise in one-shot mode.
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

// ID returns the APIC ID of this CPU, by which other CPUs send it interrupts.
func (a APIC) ID() uint32 {
	if a == X2APIC {
		return a.read(apicID)
	}
	return a.read(apicID) >> 24
}

// MaxID returns the largest APIC ID of a CPU. The next larger number addresses all CPUs.
func (a APIC) MaxID() uint32 {
	if a == X2APIC {
		return 1<<32 - 2
	}
	return 0xfe
}

// Done reports to the APIC that the handler of the current interrupt has finished (end of interrupt, EOI).
func (a APIC) Done() { a.write(apicEOI, 0) }

// StartTimer starts the timer, which raises one interrupt with vector VectorTimer after a number of its
// ticks; 0 stops the timer.
func (a APIC) StartTimer(ticks uint32) { a.write(apicInitial, ticks) }

// Timer returns the number of ticks until the timer's interrupt.
func (a APIC) Timer() uint32 { return a.read(apicCurrent) }

// send writes the command register and waits until the interrupt is delivered, which takes some cycles. It stops
// waiting after a million polls.
func (a APIC) send(id, command uint32) {
	if a == X2APIC {
		Fence() // the target must see all earlier writes: 11.12.3
		WriteMSR(register2(apicCommand), uint64(id)<<32|uint64(command))
		return
	}
	a.write(apicCommand+0x10, id<<24)
	a.write(apicCommand, command)
	for tries := 0; a.read(apicCommand)&apicPending != 0 && tries < 1e6; tries++ {
		Pause()
	}
}

// Kick sends VectorKick to another CPU.
func (a APIC) Kick(id uint32) { a.send(id, apicAssert|VectorKick) }

// Reset sends INIT to another CPU, which then waits for Start: SDM volume 3, 9.4.4.
func (a APIC) Reset(id uint32) { a.send(id, apicAssert|apicInit) }

// Start starts a CPU after Reset. The CPU begins in real mode at the first byte of page, the address of a page below 1
// MiB.
func (a APIC) Start(id uint32, page uint64) {
	a.send(id, apicAssert|apicStartup|uint32(page>>pageShift))
}
