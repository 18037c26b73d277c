package acpi

// MCFG (PCI Firmware Specification 3.3 section 4.1.2): where the configuration space of PCI Express devices is
// mapped in memory.

const (
	mcfgLen      = 44
	mcfgEntryLen = 16
)

// ECAM is the configuration space of a range of buses: 4 KiB for each function, 1 MiB for each bus. Address is
// where bus 0 would be, even if First is not 0.
type ECAM struct {
	Address     uint64
	Segment     uint16
	First, Last uint8 // buses
}

// ECAM returns the i-th range that firmware lists; ok is false after the last, and for an invalid range.
func (t *Tables) ECAM(i int) (e ECAM, ok bool) {
	b := t.Find("MCFG")
	at := mcfgLen + i*mcfgEntryLen
	if i < 0 || len(b) < at+mcfgEntryLen {
		return e, false
	}
	b = b[at:]
	e = ECAM{Address: le.Uint64(b), Segment: le.Uint16(b[8:]), First: b[10], Last: b[11]}
	const most = 1 << 52 // the largest physical address, as in package boot
	return e, e.Address != 0 && e.Address < most && e.Address%(1<<20) == 0 && e.First <= e.Last
}
