package amd64

import (
	"unsafe"
)

// The I/O APIC, to whose inputs the interrupt lines of devices lead: Intel 82093AA
// data sheet. One register holds the number of another, which a second register
// then shows, so whoever uses it must be alone.

// IOAPIC is where the registers are seen.
type IOAPIC uintptr

const (
	ioapicSelect = 0x00
	ioapicWindow = 0x10

	ioapicVersion = 0x01
	ioapicTable   = 0x10 // two registers of 32 bits for each input
)

// Bits of an entry of the table.
const (
	IOAPICLow    = 1 << 13 // the line asks for attention while it is low
	IOAPICLevel  = 1 << 15 // and for as long as it does
	IOAPICMasked = 1 << 16

	ioapicCPUShift = 24 // in the upper half
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

// Inputs is how many there are.
func (a IOAPIC) Inputs() uint32 { return a.read(ioapicVersion)>>16&0xff + 1 }

// Route has an input interrupt a CPU with a vector. The flags are those above.
func (a IOAPIC) Route(input, vector, cpu, flags uint32) {
	for _, w := range routing(input, vector, cpu, flags) {
		a.write(w.register, w.value)
	}
}

// Change gives an input that has been routed other flags: masks it, or lets it interrupt again.
func (a IOAPIC) Change(input, vector, flags uint32) {
	w := changing(input, vector, flags)
	a.write(w.register, w.value)
}

// ioapicWrite is one of a register of 32 bits.
type ioapicWrite struct {
	register, value uint32
}

// routing is what Route writes: both halves of an entry, the first while it is masked.
func routing(input, vector, cpu, flags uint32) [3]ioapicWrite {
	return [...]ioapicWrite{
		changing(input, vector, flags|IOAPICMasked),
		{ioapicTable + 2*input + 1, cpu << ioapicCPUShift},
		changing(input, vector, flags),
	}
}

// changing is what Change writes. The trigger is in it each time: while it is not that of a level,
// if only from one write to the next, a line that rises at a masked input is forgotten ("Interrupt
// Mask" in section 3.2.4 of the data sheet): who waits for it sees what it was about at the next.
func changing(input, vector, flags uint32) ioapicWrite {
	return ioapicWrite{ioapicTable + 2*input, vector | flags}
}
