//go:build linux

package interop

import (
	"cmp"
	"slices"
	"testing"
)

// variant is a link on which a test is repeated.
type variant struct {
	name  string
	setup setup
	size  int // MiB that TestTransfer sends, unless the run is a quick one
}

// variants are the links for bulk transfers.
var variants = []variant{
	{"offloads", setup{}, 1024},
	{"no offloads", setup{noOffloads: true}, 1024},
	{"jumbo", setup{mtu: 9000}, 128},
	{"jumbo without offloads", setup{mtu: 9000, noOffloads: true}, 128},
	{"small MTU", setup{mtu: 576}, 64},
	{"small MTU without offloads", setup{mtu: 576, noOffloads: true}, 64},
	{"two queues", setup{queues: 2}, 128},
	{"two queues without offloads", setup{queues: 2, noOffloads: true}, 128},
}

// linkMTU returns the MTU of both ends.
func (s setup) linkMTU() int { return cmp.Or(s.mtu, 1500) }

// each runs a test in a lab of its own for each variant.
func each(t *testing.T, test func(l *lab, v variant)) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) { test(newLab(t, v.setup), v) })
	}
}

// eachSize runs a test for each variant and each of the sizes that matter for its MTU, the largest
// first, so that the first packet between the two ends is the largest.
func eachSize(t *testing.T, sizes func(mtu int) []int, test func(l *lab, size int)) {
	each(t, func(l *lab, v variant) {
		list := sizes(v.setup.linkMTU())
		slices.Sort(list)
		for _, size := range slices.Backward(list) {
			test(l, size)
		}
	})
}
