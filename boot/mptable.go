package boot

// The tables of the MultiProcessor Specification (Intel, version 1.4, chapter 4), in which firmware without ACPI
// describes the processors and the interrupt lines. The default configurations (chapter 5), which have no table,
// are not supported: no firmware that starts 64-bit machines uses them.

// MPTable is the configuration table. Its length and checksum have been verified.
type MPTable []byte

const (
	mpPointerSize = 16
	mpHeaderSize  = 44
)

// FindMPTable searches for the table in the areas where firmware stores it: the first KiB of the extended BIOS data
// area, the last KiB of the lowest 640 KiB, and the BIOS's memory (4.1). It returns nil if there is none. memory
// returns size bytes of physical memory at an address, or nil if they are not accessible.
func FindMPTable(memory func(address, size uint64) []byte) MPTable {
	const dataArea, kib = 0x40e, 1 << 10
	extended := uint64(639 * kib)
	if b := memory(dataArea, 2); len(b) == 2 {
		if at := uint64(le.Uint16(b)) << 4; at != 0 {
			extended = at
		}
	}
	for _, area := range [...]struct{ address, size uint64 }{{extended, kib}, {639 * kib, kib}, {0xf_0000, 0x1_0000}} {
		b := memory(area.address, area.size)
		for at := 0; at+mpPointerSize <= len(b); at += mpPointerSize {
			if t := openMPTable(memory, b[at:at+mpPointerSize]); t != nil {
				return t
			}
		}
	}
	return nil
}

// openMPTable returns the table to which a floating pointer structure refers; nil if the structure or the table is
// invalid.
func openMPTable(memory func(address, size uint64) []byte, pointer []byte) MPTable {
	if string(pointer[:4]) != "_MP_" || checksum(pointer) != 0 {
		return nil
	}
	address := uint64(le.Uint32(pointer[4:]))
	head := memory(address, mpHeaderSize)
	if address == 0 || len(head) != mpHeaderSize || string(head[:4]) != "PCMP" {
		return nil
	}
	size := uint64(le.Uint16(head[4:]))
	table := memory(address, size)
	if size < mpHeaderSize || uint64(len(table)) != size || checksum(table) != 0 {
		return nil
	}
	return table
}

func checksum(b []byte) (sum uint8) {
	for _, c := range b {
		sum += c
	}
	return sum
}

// MPKind is the type of an MPEntry.
type MPKind uint8

// Kinds of entries, with the fields that are set: table 4-3.
const (
	MPProcessor MPKind = 0 // ID, Enabled
	MPBus       MPKind = 1 // ID, ISA
	MPIOAPIC    MPKind = 2 // ID, Enabled, Address
	MPInterrupt MPKind = 3 // an interrupt line: Vectored, Flags, Bus, IRQ, ID, Input
	mpLocal     MPKind = 4
)

// MPEntry is an entry of the table. Kind determines which fields are set.
type MPEntry struct {
	Kind     MPKind
	ID       uint8 // ID of the local APIC, the bus, or the I/O APIC, depending on Kind
	Enabled  bool
	ISA      bool // the bus is an ISA bus
	Vectored bool // an ordinary interrupt, not an NMI, an SMI, or an interrupt through the 8259
	Flags    uint16
	Bus      uint8 // MPInterrupt: the source bus
	IRQ      uint8 // interrupt number on bus Bus
	Input    uint8 // MPInterrupt: the input of the I/O APIC
	Address  uint64
}

// Next returns the entry at offset at. The first call passes 0 as at, and each later call the previous next. ok is
// false after the last entry.
func (t MPTable) Next(at int) (e MPEntry, next int, ok bool) {
	const processorSize, size = 20, 8
	if len(t) < mpHeaderSize {
		return MPEntry{}, 0, false
	}
	at = max(at, mpHeaderSize)
	if at+size > len(t) || t[at] > uint8(mpLocal) {
		return MPEntry{}, 0, false
	}
	b := t[at : at+size]
	e = MPEntry{Kind: MPKind(b[0]), ID: b[1]}
	switch next = at + size; e.Kind {
	case MPProcessor:
		next = at + processorSize
		e.Enabled = b[3]&1 != 0
	case MPBus:
		e.ISA = string(b[2:5]) == "ISA"
	case MPIOAPIC:
		e.Enabled, e.Address = b[3]&1 != 0, uint64(le.Uint32(b[4:]))
	case MPInterrupt:
		e = MPEntry{Kind: e.Kind, Vectored: b[1] == 0, Flags: le.Uint16(b[2:]), Bus: b[4], IRQ: b[5], ID: b[6], Input: b[7]}
	}
	return e, next, next <= len(t)
}

// Route returns the ID of the I/O APIC and the input at which an ISA IRQ arrives, and whether the line is
// level-triggered and active low (table 4-10). ok is false if the table has no entry for the IRQ.
func (t MPTable) Route(irq uint8) (ioapic, input uint8, level, low, ok bool) {
	const set = 3 // value of the polarity or trigger mode that differs from the bus's default
	bus, there := t.isaBus()
	for at := 0; there; {
		e, next, more := t.Next(at)
		if !more {
			break
		}
		if e.Kind == MPInterrupt && e.Vectored && e.Bus == bus && e.IRQ == irq {
			return e.ID, e.Input, e.Flags>>2&3 == set, e.Flags&3 == set, true
		}
		at = next
	}
	return 0, 0, false, false, false
}

// isaBus returns the ID of the ISA bus.
func (t MPTable) isaBus() (uint8, bool) {
	for at := 0; ; {
		e, next, ok := t.Next(at)
		if !ok {
			return 0, false
		}
		if e.Kind == MPBus && e.ISA {
			return e.ID, true
		}
		at = next
	}
}
