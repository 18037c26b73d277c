package image

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"loam/boot"
)

// ErrTooLarge is returned for files that the page tables of the entry code could not map.
var ErrTooLarge = fmt.Errorf("image: the program and its files are larger than %d MiB together", most>>20)

// AddFiles appends a segment with files to a program that Prepare has changed. The segment is loaded after
// all others, and is visible only in the window onto physical memory. Its header replaces PT_PHDR, which
// only a dynamic linker reads. AddFiles changes data in place and returns it extended. Errors: ErrTooLarge, or
// one that wraps ErrNotProgram.
func AddFiles(data, files []byte) ([]byte, error) {
	header, ok := spareHeader(data)
	if !ok {
		return nil, fmt.Errorf("%w: no header is left for its files", ErrNotProgram)
	}
	start := pageEnd(End(data))
	if start+uint64(len(files)) > most {
		return nil, ErrTooLarge
	}
	data = append(data, make([]byte, -len(data)&(pageSize-1))...)
	le := binary.LittleEndian
	h := data[header:][:segmentSize]
	clear(h)
	le.PutUint32(h, uint32(elf.PT_LOAD))
	le.PutUint32(h[4:], uint32(elf.PF_R))
	le.PutUint64(h[segmentOffset:], uint64(len(data)))
	le.PutUint64(h[segmentVirtual:], boot.Window+start)
	le.PutUint64(h[segmentPhysical:], start)
	le.PutUint64(h[segmentInFile:], uint64(len(files)))
	le.PutUint64(h[segmentInMemory:], uint64(len(files)))
	return append(data, files...), nil
}

// spareHeader returns the offset of the PT_PHDR header in the file.
func spareHeader(data []byte) (at int, ok bool) {
	le := binary.LittleEndian
	first, count := int(le.Uint64(data[32:])), int(le.Uint16(data[56:])) // parse has checked the offset and the number of headers
	for i := range count {
		at = first + i*segmentSize
		if elf.ProgType(le.Uint32(data[at:])) == elf.PT_PHDR {
			return at, true
		}
	}
	return 0, false
}

// End returns the first physical address after a program that Prepare has changed, including its files.
func End(data []byte) uint64 {
	le := binary.LittleEndian
	first, count := int(le.Uint64(data[32:])), int(le.Uint16(data[56:])) // parse has checked the offset and the number of headers
	end := uint64(0)
	for i := range count {
		if h := data[first+i*segmentSize:]; elf.ProgType(le.Uint32(h)) == elf.PT_LOAD {
			end = max(end, le.Uint64(h[segmentPhysical:])+le.Uint64(h[segmentInMemory:]))
		}
	}
	return end
}
