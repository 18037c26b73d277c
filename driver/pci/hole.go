package pci

import (
	"cmp"
	"slices"

	"loam/boot"
)

// deviceStart and deviceEnd are the bounds of the physical addresses at which a PC has
// the registers of PCI devices. The registers of the chipset (the I/O APIC is at
// 0xfec00000) and of the processors, and the firmware, are above this range.
const (
	deviceStart = 0xc000_0000
	deviceEnd   = 0xfe00_0000
)

// Hole returns a range of addresses for Assign: the largest range between deviceStart and
// deviceEnd that overlaps no range in the list used. It sorts that list.
func Hole(used []boot.Range) (hole boot.Range) {
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
