package acpi

// MCFG (PCI Firmware Specification 3.3 section 4.1.2): where the configuration
// space of PCI Express devices is in memory.

const (
	mcfgLen      = 44
	mcfgEntryLen = 16
)

// ECAM is the configuration space of some buses: 4 KiB a function, 1 MiB a bus.
// Address is where bus 0 would be, whether First is 0 or not.
type ECAM struct {
	Address     uint64
	Segment     uint16
	First, Last uint8 // buses
}

// ECAM is the i-th that firmware lists; ok is false behind the last, and for one
// that makes no sense.
func (t *Tables) ECAM(i int) (e ECAM, ok bool) {
	b := t.Find("MCFG")
	at := mcfgLen + i*mcfgEntryLen
	if i < 0 || len(b) < at+mcfgEntryLen {
		return e, false
	}
	b = b[at:]
	e = ECAM{Address: le.Uint64(b), Segment: le.Uint16(b[8:]), First: b[10], Last: b[11]}
	const most = 1 << 52 // see boot
	return e, e.Address != 0 && e.Address < most && e.Address%(1<<20) == 0 && e.First <= e.Last
}
