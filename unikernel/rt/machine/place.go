package machine

import (
	"slices"

	"loam/boot"
	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/kernel"
)

// place assigns addresses to the devices of a bus if firmware has not: qboot leaves that to the operating
// system.
func place(b *pci.Bus, firmware *acpi.Tables) error {
	if b.Placed() {
		return nil
	}
	used := slices.Clone(kernel.UsableMemory())
	if firmware != nil {
		if e, ok := firmware.ECAM(0); ok {
			const bus = 1 << 20
			used = append(used, boot.Range{Start: e.Address + uint64(e.First)*bus, End: e.Address + uint64(e.Last)*bus + bus})
		}
	}
	hole := pci.Hole(used)
	return b.Assign(hole.Start, hole.End)
}
