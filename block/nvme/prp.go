package nvme

import (
	"encoding/binary"

	"loam/driver"
)

// Physical region pages (section 4.3): the first entry may point into a page, all
// others point to whole pages. A command has two; with more pages, the second points
// to a list.

const (
	// mostPages is how many pages a request may touch: its data may begin inside one.
	mostPages = mostBytes/pageSize + 1
	// listLen is room for the list of a command, a power of two: a list that starts at
	// a multiple of it lies in one page.
	listLen = 512
)

// fits reports whether pieces of memory can be named by PRPs: only the first may begin
// inside a page, at a multiple of 4, and only the last may end inside one.
func fits(pieces []driver.Segment) bool {
	pages := 0
	for i, p := range pieces {
		from, end := p.Address%pageSize, p.Address+uint64(p.Size)
		if from%4 != 0 || i > 0 && from != 0 || i < len(pieces)-1 && end%pageSize != 0 {
			return false
		}
		pages += int((end+pageSize-1)/pageSize - p.Address/pageSize)
	}
	return pages <= mostPages
}

// prps returns the two entries for pieces that fit. list is memory of listLen bytes
// for the others.
func prps(pieces []driver.Segment, list driver.Buffer) (prp1, prp2 uint64) {
	n := 0
	for _, p := range pieces {
		for at := p.Address; at < p.Address+uint64(p.Size); at = at&^(pageSize-1) + pageSize {
			if n == 0 {
				prp1 = at
			} else {
				binary.LittleEndian.PutUint64(list.Bytes[8*(n-1):], at)
			}
			n++
		}
	}
	switch {
	case n == 2:
		prp2 = binary.LittleEndian.Uint64(list.Bytes)
	case n > 2:
		prp2 = list.Address
	}
	return prp1, prp2
}
