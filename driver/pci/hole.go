package pci

import (
	"cmp"
	"slices"

	"loam/boot"
)

// Where a PC has the registers of its devices: above them are those of the chipset (the I/O
// APIC is at 0xfec00000), of the processors, and the firmware.
const (
	deviceStart = 0xc000_0000
	deviceEnd   = 0xfe00_0000
)

// Hole is a place for Assign: the largest piece of where a PC has the registers of its
// devices in which nothing lies that is used. It sorts used.
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
