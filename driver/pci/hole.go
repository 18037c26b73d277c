package pci

import (
	"cmp"
	"slices"

	"loam/boot"
)

// The range in which a PC has the registers of its devices. Above it are the chipset's registers (the I/O APIC is
// at 0xfec00000), the processors' and the firmware.
const (
	deviceStart = 0xc000_0000
	deviceEnd   = 0xfe00_0000
)

// Hole returns a range for Assign: the largest part of a PC's range for device registers that overlaps no range in
// used. It sorts used.
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
