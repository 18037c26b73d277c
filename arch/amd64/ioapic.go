package amd64

import (
	"unsafe"
)

// The I/O APIC, which receives the interrupt lines of devices: Intel 82093AA data sheet. Its registers are accessed
// indirectly, through an index and a data register, so the caller must prevent concurrent access.

// IOAPIC is the address at which the registers are mapped.
type IOAPIC uintptr

const (
	ioapicSelect = 0x00
	ioapicWindow = 0x10

	ioapicVersion = 0x01
	ioapicTable   = 0x10 // two 32-bit registers for each input
)

// Bits of an entry of the redirection table, which says how an interrupt line is delivered.
const (
	IOAPICLow    = 1 << 13 // the line is active low
	IOAPICLevel  = 1 << 15 // the line is level-triggered
	IOAPICMasked = 1 << 16

	ioapicCPUShift = 24 // position of the destination APIC ID in the upper half of an entry
)

func (a IOAPIC) at(offset uintptr) *uint32 {
	// Safety: a is the page of the registers, offset one of the constants above.
	addr := uintptr(a) + offset
	return *(**uint32)(unsafe.Pointer(&addr))
}

func (a IOAPIC) read(register uint32) uint32 {
	store32(a.at(ioapicSelect), register)
	return load32(a.at(ioapicWindow))
}

func (a IOAPIC) write(register, v uint32) {
	store32(a.at(ioapicSelect), register)
	store32(a.at(ioapicWindow), v)
}

// Inputs returns the number of inputs.
func (a IOAPIC) Inputs() uint32 { return a.read(ioapicVersion)>>16&0xff + 1 }

// Route connects an input to a vector of a CPU and unmasks it, unless flags contains IOAPICMasked. flags is a
// combination of the IOAPIC constants; cpu is an APIC ID.
func (a IOAPIC) Route(input, vector, cpu, flags uint32) {
	for _, w := range routing(input, vector, cpu, flags) {
		a.write(w.register, w.value)
	}
}

// Change replaces the flags of an input that Route has connected. It is used to mask or unmask the input.
func (a IOAPIC) Change(input, vector, flags uint32) {
	w := changing(input, vector, flags)
	a.write(w.register, w.value)
}

// ioapicWrite is a write to a 32-bit register.
type ioapicWrite struct {
	register, value uint32
}

// routing returns the writes that Route makes. They fill both halves of an entry, which stays masked until both are
// written.
func routing(input, vector, cpu, flags uint32) [3]ioapicWrite {
	return [...]ioapicWrite{
		changing(input, vector, flags|IOAPICMasked),
		{ioapicTable + 2*input + 1, cpu << ioapicCPUShift},
		changing(input, vector, flags),
	}
}

// changing returns the register write that Change makes. It always includes the trigger mode: if an input is
// edge-triggered even briefly, an interrupt raised while it is masked is lost (82093AA data sheet, section 3.2.4,
// "Interrupt Mask"). A driver then notices the event only at the next interrupt.
func changing(input, vector, flags uint32) ioapicWrite {
	return ioapicWrite{ioapicTable + 2*input, vector | flags}
}
