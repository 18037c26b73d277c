package acpi

// MCFG (PCI Firmware Specification 3.3 section 4.1.2): where the configuration space of PCI Express devices is
// mapped in memory.

const (
	mcfgLen      = 44
	mcfgEntryLen = 16
)

// ECAM is a range of memory that maps the configuration space of a range of PCI buses: 4 KiB for each function, 1 MiB
// for each bus. Address is the address that bus 0 has or would have, even if First is not 0.
type ECAM struct {
	Address     uint64
	Segment     uint16
	First, Last uint8 // numbers of the first and the last bus
}

// ECAM returns the i-th range that firmware lists; ok is false if there are not that many, or if the range is invalid.
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
