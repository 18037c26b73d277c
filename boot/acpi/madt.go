package acpi

// The Multiple APIC Description Table (ACPI 6.5 section 5.2.12): the processors and the interrupt controllers.

// MADT holds the bytes of the table. It is at least as long as the table's fixed part.
type MADT []byte

const madtLen = 44

// MADT returns the MADT, or nil if there is none.
func (t *Tables) MADT() MADT {
	if b := t.Find("APIC"); len(b) >= madtLen {
		return b
	}
	return nil
}

// LocalAPIC returns the physical address of the local APIC's registers, which is the same for every processor.
func (m MADT) LocalAPIC() uint64 {
	for at := 0; ; {
		e, next, ok := m.Next(at)
		if !ok {
			return uint64(le.Uint32(m[36:]))
		}
		if e.Kind == LocalAPICAddress {
			return e.Address
		}
		at = next
	}
}

// HasPIC reports whether the machine has a pair of 8259 controllers, which have to be masked before the APICs are
// used.
func (m MADT) HasPIC() bool { return m[40]&1 != 0 }

// Kind is the type of an Entry: the numbers of table 5.21.
type Kind uint8

// Kinds of entries that Next returns, with the fields that are set. Next skips all other entries.
const (
	Processor        Kind = 0 // APIC, Enabled
	IOAPIC           Kind = 1 // Address, GSI
	Override         Kind = 2 // Source, GSI, Flags
	LocalAPICAddress Kind = 5 // Address
	ProcessorX2      Kind = 9 // APIC, Enabled
)

// Entry is an entry of the table. Kind determines which fields are set.
type Entry struct {
	Kind    Kind
	Enabled bool   // the processor may be started
	APIC    uint32 // ID of the processor's local APIC
	GSI     uint32 // IOAPIC: GSI of its first input. Override: the GSI at which Source arrives
	Source  uint8  // IRQ of the ISA bus
	Flags   uint16 // section 5.2.12.5: bits 0 and 1 polarity, bits 2 and 3 trigger mode; 0: the default of the bus
	Address uint64
}

// Level reports whether an Override's line is level-triggered. ISA lines are edge-triggered by default.
func (e *Entry) Level() bool { return e.Flags>>2&3 == 3 }

// Low reports whether the line is active low.
func (e *Entry) Low() bool { return e.Flags&3 == 3 }

// madtLengths holds the minimum lengths of the supported kinds of entries in bytes; Next skips kinds with 0.
var madtLengths = [...]uint8{Processor: 8, IOAPIC: 12, Override: 10, LocalAPICAddress: 12, ProcessorX2: 16}

// Next returns the first entry at or after offset at. The first call passes 0 as at, and each later call the previous
// next. ok is false after the last entry.
func (m MADT) Next(at int) (e Entry, next int, ok bool) {
	at = max(at, madtLen)
	for at+2 <= len(m) {
		length := int(m[at+1])
		if length < 2 || length > len(m)-at {
			break // the rest of the table is invalid
		}
		b, kind := m[at:at+length], m[at]
		at += length
		if int(kind) >= len(madtLengths) || madtLengths[kind] == 0 || length < int(madtLengths[kind]) {
			continue
		}
		return madtEntry(Kind(kind), b), at, true
	}
	return Entry{}, len(m), false
}

// madtEntry decodes an entry, which has at least the length in madtLengths.
func madtEntry(kind Kind, b []byte) Entry {
	// Bit 0 is "enabled". Bit 1, "online capable", is for processors that are added later.
	const enabled = 1
	switch kind {
	case Processor:
		return Entry{Kind: kind, APIC: uint32(b[3]), Enabled: b[4]&enabled != 0}
	case ProcessorX2:
		return Entry{Kind: kind, APIC: le.Uint32(b[4:]), Enabled: b[8]&enabled != 0}
	case IOAPIC:
		return Entry{Kind: kind, Address: uint64(le.Uint32(b[4:])), GSI: le.Uint32(b[8:])}
	case Override:
		return Entry{Kind: kind, Source: b[3], GSI: le.Uint32(b[4:]), Flags: le.Uint16(b[8:])}
	}
	return Entry{Kind: kind, Address: le.Uint64(b[4:])} // LocalAPICAddress
}

// Route returns the GSI at which an ISA IRQ arrives, and whether its line is level-triggered and active low. Without an
// Override entry, IRQ n arrives at GSI n, edge-triggered and active high.
func (m MADT) Route(irq uint8) (gsi uint32, level, low bool) {
	for at := 0; ; {
		e, next, ok := m.Next(at)
		if !ok {
			return uint32(irq), false, false
		}
		if e.Kind == Override && e.Source == irq {
			return e.GSI, e.Level(), e.Low()
		}
		at = next
	}
}
