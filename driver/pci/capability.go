package pci

// IDs of capabilities (PCI Code and ID Assignment Specification 1.11).
const (
	CapabilityVendor = 0x09
	CapabilityMSIX   = 0x11
)

// Capability is an entry of a function's list of capabilities (PCI 3.0 section 6.7). At is its offset in
// configuration space: a multiple of 4 below 256.
type Capability struct {
	ID uint8
	At int
}

// Capabilities returns the list of capabilities. The list ends at a pointer that is invalid or refers to an earlier
// entry.
func (f *Function) Capabilities() []Capability {
	if f.read(regCommand)&statusCapabilities == 0 {
		return nil
	}
	const first = 0x40 // lowest offset after the standard header
	var list []Capability
	var seen [configSize / 4]bool
	at := int(f.read(regCapability)) & 0xfc
	for at >= first && !seen[at/4] {
		seen[at/4] = true
		v := f.read(at)
		if v == ^uint32(0) {
			break // all ones: the device was removed
		}
		list = append(list, Capability{ID: uint8(v), At: at})
		at = int(v>>8) & 0xfc
	}
	return list
}
