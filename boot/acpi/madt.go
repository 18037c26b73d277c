package acpi

// The Multiple APIC Description Table (ACPI 6.5 section 5.2.12): which processors
// there are, and how interrupts reach them.

// MADT is that table, checked to be long enough for its fixed part.
type MADT []byte

const madtLen = 44

// MADT is the table, or nil.
func (t *Tables) MADT() MADT {
	if b := t.Find("APIC"); len(b) >= madtLen {
		return b
	}
	return nil
}

// LocalAPIC is the physical address of the registers of every processor's local
// interrupt controller.
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

// HasPIC reports whether the machine has a pair of 8259 controllers, which have
// to be masked before the others are used.
func (m MADT) HasPIC() bool { return m[40]&1 != 0 }

// Kind says what an Entry is: the numbers of table 5.21.
type Kind uint8

// Kinds of entries that Next returns; it leaves out all others.
const (
	Processor        Kind = 0 // APIC, Enabled
	IOAPIC           Kind = 1 // Address, GSI
	Override         Kind = 2 // Source, GSI, Flags
	LocalAPICAddress Kind = 5 // Address
	ProcessorX2      Kind = 9 // APIC, Enabled
)

// Entry is one of the things that the table lists. Kind says which fields count.
type Entry struct {
	Kind    Kind
	Enabled bool   // the processor may be started
	APIC    uint32 // number of the processor's interrupt controller
	GSI     uint32 // IOAPIC: the number of its first input. Override: where Source arrives
	Source  uint8  // IRQ of the ISA bus
	Flags   uint16 // section 5.2.12.5: bits 0 and 1 polarity, bits 2 and 3 trigger mode; 0: as the bus has it
	Address uint64
}

// Level and low say how an Override's line is driven. An ISA line is neither.
func (e *Entry) Level() bool { return e.Flags>>2&3 == 3 }

// Low reports whether the line asks for attention while it is low.
func (e *Entry) Low() bool { return e.Flags&3 == 3 }

// madtLengths are the lengths of the kinds that are read, by kind.
var madtLengths = [...]uint8{Processor: 8, IOAPIC: 12, Override: 10, LocalAPICAddress: 12, ProcessorX2: 16}

// Next returns the first entry at or behind a place: begin with 0, go on with
// next. ok is false behind the last.
func (m MADT) Next(at int) (e Entry, next int, ok bool) {
	at = max(at, madtLen)
	for at+2 <= len(m) {
		length := int(m[at+1])
		if length < 2 || length > len(m)-at {
			break // the rest makes no sense
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

func madtEntry(kind Kind, b []byte) Entry {
	// Bit 0: enabled. Bit 1, online capable, is about processors that are plugged
	// in later.
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

// Route is where an IRQ of the ISA bus arrives: its global system interrupt, and
// whether the line is level-triggered and active low. Without an override IRQ n is
// interrupt n, rising.
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
