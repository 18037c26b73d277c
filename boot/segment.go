package boot

import "encoding/binary"

// Segment is a part of the program as it lies in memory.
type Segment struct {
	Start, End        uint64 // virtual addresses
	Writable, Program bool   // Program: it holds instructions
}

// NextSegment finds the segments of a program by the first page of its file,
// which is loaded: begin with at = 0, and go on with next. It returns false after
// the last.
func NextSegment(header []byte, at int) (s Segment, next int, ok bool) {
	const (
		size                 = 56
		load                 = 1
		executable, writable = 1, 2
	)
	le := binary.LittleEndian
	first, count := int(le.Uint16(header[32:])), int(le.Uint16(header[56:]))
	for ; at < count; at++ {
		p := header[first+at*size:]
		if le.Uint32(p) != load {
			continue
		}
		flags := le.Uint32(p[4:])
		start := le.Uint64(p[16:])
		return Segment{start, start + le.Uint64(p[40:]), flags&writable != 0, flags&executable != 0}, at + 1, true
	}
	return Segment{}, 0, false
}
