package boot

import "encoding/binary"

// ZeroSegment is the type of a program header that package unikernel/image makes: it
// has the address and size of variables behind the last segment that are zero in the
// beginning. They are not loaded, and no memory is theirs before they are used.
const ZeroSegment = 0x6c6f_616d

// loadSegment is the type of what is loaded (System V ABI: PT_LOAD).
const loadSegment = 1

// Segment is a part of the program as it lies in memory.
type Segment struct {
	Start, End        uint64 // virtual addresses
	Writable, Program bool   // Program: it holds instructions
}

// NextSegment finds the segments of a program by the first page of its file,
// which is loaded: begin with at = 0, and go on with next. It returns false after
// the last.
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

// Files is where in physical memory the files are that came with the program: a segment
// that is seen in the window only. The Range is empty if there are none.
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

// Zeroed are the virtual addresses that the program's ZeroSegment names; an empty
// Range if it has none.
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

// programHeader is one of the program headers in the first page of a file.
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
