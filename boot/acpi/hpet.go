package acpi

// HPET returns the physical address of the registers of the High Precision Event Timer (IA-PC HPET specification 1.0a,
// section 3.2.4); 0 if the machine has no such timer, or only one that is not mapped in memory.
func (t *Tables) HPET() uint64 {
	const tableLen = 56
	b := t.Find("HPET")
	if len(b) < tableLen {
		return 0
	}
	if a := parseGAS(b[40:]); a.Space == SpaceMemory {
		return a.Address
	}
	return 0
}
