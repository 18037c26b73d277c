package nvme

import (
	"encoding/binary"

	"loam/driver"
)

// Physical region pages (section 4.3). The first entry may point into a page; all others point to
// whole pages. A command has two entries. For more than two pages, the second entry points to a
// list of entries.

const (
	// mostPages is the maximum number of pages of a request, whose data may begin inside a page.
	mostPages = mostBytes/pageSize + 1
	// listLen is the size in bytes of a PRP list: a power of two, so that a list at a multiple of
	// it does not cross a page boundary.
	listLen = 512
)

// fits reports whether PRPs can address the pieces of memory: only the first may begin inside a
// page, at a multiple of 4, and only the last may end inside a page.
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

// prps returns the two PRP entries of a command for a transfer to or from pieces. It writes the other entries to list,
// which has listLen bytes. The caller has checked that the pieces fit into one command.
func prps(pieces []driver.Segment, list driver.Buffer) (prp1, prp2 uint64) {
	if len(pieces) == 0 {
		return 0, 0 // Write Zeroes
	}
	prp1 = pieces[0].Address
	n, last := 0, uint64(0) // number of entries in the list, and the last one
	for i, p := range pieces {
		at, end := p.Address, p.Address+uint64(p.Size)
		if i == 0 {
			at = at&^(pageSize-1) + pageSize
		}
		for ; at < end; at += pageSize {
			binary.LittleEndian.PutUint64(list.Bytes[8*n:], at)
			n, last = n+1, at
		}
	}
	if n > 1 {
		return prp1, list.Address
	}
	return prp1, last
}
