package boot

import "encoding/binary"

// ZeroSegment is the type of a program header that package unikernel/image adds. It describes the zero-initialised
// variables after the last segment, with their address and size. They are not loaded; a page of them is allocated when
// it is first used.
const ZeroSegment = 0x6c6f_616d

// loadSegment is the type of a loaded segment (System V ABI: PT_LOAD).
const loadSegment = 1

// Segment is a segment of the program in memory.
type Segment struct {
	Start, End        uint64 // virtual addresses
	Writable, Program bool   // Program: it contains code
}

// NextSegment returns the segments of a program one by one. header is the first page of the program's file. The first
// call passes 0 as at, and each later call the previous next. ok is false after the last segment.
func NextSegment(header []byte, at int) (s Segment, next int, ok bool) {
	const executable, writable = 1, 2
	for ; ; at++ {
		p, ok := programHeader(header, at)
		if !ok {
			return Segment{}, 0, false
		}
		if flags, start := le.Uint32(p[4:]), le.Uint64(p[16:]); le.Uint32(p) == loadSegment && start >= Image {
			return Segment{start, start + le.Uint64(p[40:]), flags&writable != 0, flags&executable != 0}, at + 1, true
		}
	}
}

// Files returns the range of physical memory that contains the files of the program. It is a segment that is mapped
// only in the window. The Range is empty if the program has no files.
func Files(header []byte) Range {
	for at := 0; ; at++ {
		p, ok := programHeader(header, at)
		if !ok {
			return Range{}
		}
		if start := le.Uint64(p[16:]); le.Uint32(p) == loadSegment && start < Image {
			start = le.Uint64(p[24:])
			return Range{start, start + le.Uint64(p[40:])}
		}
	}
}

// Zeroed returns the virtual addresses in the program's ZeroSegment; an empty Range if it has none.
func Zeroed(header []byte) Range {
	for at := 0; ; at++ {
		p, ok := programHeader(header, at)
		if !ok {
			return Range{}
		}
		if le.Uint32(p) == ZeroSegment {
			start := le.Uint64(p[16:])
			return Range{start, start + le.Uint64(p[40:])}
		}
	}
}

// programHeader returns the program header with an index (the parameter at) from the
// first page of a file; false after the last.
func programHeader(header []byte, at int) ([]byte, bool) {
	const size = 56
	first, count := int(le.Uint16(header[32:])), int(le.Uint16(header[56:]))
	start := first + at*size
	if at >= count || start+size > len(header) {
		return nil, false
	}
	return header[start : start+size], true
}

var le = binary.LittleEndian
