package nvme

import (
	"encoding/binary"
	"slices"
	"testing"

	"loam/driver"
)

// The first entry is the address of the first byte, and all others are whole pages (section 4.3).
func TestPRPs(t *testing.T) {
	const list = 0x9000
	page := func(n int) uint64 { return 0x100000 + uint64(n)*pageSize }
	pages := func(from, n int) (all []uint64) {
		for i := range n {
			all = append(all, page(from+i))
		}
		return all
	}
	for _, c := range []struct {
		pieces     []driver.Segment
		prp1, prp2 uint64
		list       []uint64
	}{
		{},
		{pieces: []driver.Segment{{Address: page(0), Size: 512}}, prp1: page(0)},
		{pieces: []driver.Segment{{Address: page(0) + 512, Size: pageSize - 512}}, prp1: page(0) + 512},
		{pieces: []driver.Segment{{Address: page(0) + 512, Size: pageSize}}, prp1: page(0) + 512, prp2: page(1)},
		{pieces: []driver.Segment{{Address: page(0), Size: 2 * pageSize}}, prp1: page(0), prp2: page(1)},
		{pieces: []driver.Segment{{Address: page(0) + 4, Size: pageSize - 4}, {Address: page(5), Size: 512}}, prp1: page(0) + 4, prp2: page(5)},
		{pieces: []driver.Segment{{Address: page(0), Size: 3 * pageSize}}, prp1: page(0), prp2: list, list: pages(1, 2)},
		{
			pieces: []driver.Segment{{Address: page(0) + 2048, Size: pageSize + 2048}, {Address: page(7), Size: pageSize}, {Address: page(9), Size: 512}},
			prp1:   page(0) + 2048, prp2: list, list: []uint64{page(1), page(7), page(9)},
		},
		{pieces: []driver.Segment{{Address: page(0) + 512, Size: mostBytes}}, prp1: page(0) + 512, prp2: list, list: pages(1, mostPages-1)},
	} {
		if !fits(c.pieces) {
			t.Errorf("%x do not fit", c.pieces)
		}
		b := make([]byte, listLen)
		prp1, prp2 := prps(c.pieces, driver.Buffer{Bytes: b, Address: list})
		var got []uint64
		for i := range c.list {
			got = append(got, binary.LittleEndian.Uint64(b[8*i:]))
		}
		if prp1 != c.prp1 || prp2 != c.prp2 || !slices.Equal(got, c.list) {
			t.Errorf("%x: %#x, %#x, %x; want %#x, %#x, %x", c.pieces, prp1, prp2, got, c.prp1, c.prp2, c.list)
		}
	}
}
