package machine

import (
	"cmp"
	"slices"

	"loam/boot"
	"loam/boot/acpi"
	"loam/driver/pci"
	"loam/kernel"
)

// place gives the devices of a bus their addresses if firmware has given none: qboot
// leaves that to the system.
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
	hole := largestHole(used)
	return b.Assign(hole.Start, hole.End)
}

// Where a PC has the registers of its devices: above them are those of the chipset, the
// processors and the firmware (Intel 9 Series chipset datasheet, 9.4).
const (
	deviceStart = 0xc000_0000
	deviceEnd   = 0xfe00_0000
)

// largestHole is the largest piece of that range in which nothing lies that is used.
func largestHole(used []boot.Range) (hole boot.Range) {
	slices.SortFunc(used, func(a, b boot.Range) int { return cmp.Compare(a.Start, b.Start) })
	at := uint64(deviceStart)
	for _, r := range append(used, boot.Range{Start: deviceEnd, End: deviceEnd}) {
		if end := min(r.Start, deviceEnd); end > at && end-at > hole.Size() {
			hole = boot.Range{Start: at, End: end}
		}
		at = max(at, r.End)
	}
	return hole
}
