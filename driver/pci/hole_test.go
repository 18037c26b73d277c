package pci

import (
	"testing"

	"loam/boot"
)

// Hole returns the largest range without memory and without the configuration space of the bus.
func TestHole(t *testing.T) {
	const end4G, ecam = 4 << 30, 256 << 20
	for name, c := range map[string]struct {
		used []boot.Range
		want boot.Range
	}{
		"nothing":            {nil, boot.Range{Start: deviceStart, End: deviceEnd}},
		"q35":                {[]boot.Range{{Start: end4G, End: end4G + 1}, {Start: 0, End: 2 << 30}, {Start: 0xb000_0000, End: 0xb000_0000 + ecam}}, boot.Range{Start: deviceStart, End: deviceEnd}},
		"pc":                 {[]boot.Range{{Start: 0, End: 0xe000_0000}}, boot.Range{Start: 0xe000_0000, End: deviceEnd}},
		"microvm with PCI":   {[]boot.Range{{Start: 0, End: 1 << 30}, {Start: 0xe000_0000, End: 0xe000_0000 + ecam}}, boot.Range{Start: deviceStart, End: 0xe000_0000}},
		"the end is used":    {[]boot.Range{{Start: 0xd000_0000, End: end4G}}, boot.Range{Start: deviceStart, End: 0xd000_0000}},
		"everything is used": {[]boot.Range{{Start: 0, End: end4G}}, boot.Range{}},
	} {
		if got := Hole(c.used); got != c.want {
			t.Errorf("%s: %x, want %x", name, got, c.want)
		}
	}
}
