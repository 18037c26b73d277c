package pci

// Numbers of capabilities (PCI Code and ID Assignment Specification 1.11).
const (
	CapabilityVendor = 0x09
	CapabilityMSIX   = 0x11
)

// Capability is an entry of the list of what a function can do besides (PCI 3.0
// section 6.7). At is a multiple of 4, and inside of the first 256 bytes.
type Capability struct {
	ID uint8
	At int
}

// Capabilities returns the list. A list that leads outside or in a circle ends
// there.
func (f *Function) Capabilities() []Capability {
	if f.read(regCommand)&statusCapabilities == 0 {
		return nil
	}
	const first = 0x40 // behind what every function has
	var list []Capability
	var seen [configSize / 4]bool
	at := int(f.read(regCapability)) & 0xfc
	for at >= first && !seen[at/4] {
		seen[at/4] = true
		v := f.read(at)
		if v == ^uint32(0) {
			break // the device has gone
		}
		list = append(list, Capability{ID: uint8(v), At: at})
		at = int(v>>8) & 0xfc
	}
	return list
}
