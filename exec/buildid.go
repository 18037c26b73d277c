package exec

import (
	"encoding/binary"
	"io"
	"slices"
)

// The build ID is a note with this name and type, of at most maxBuildID bytes (ld(1), --build-id).
const (
	noteName      = "GNU\x00"
	noteBuildID   = 3
	noteHeader    = 12
	maxBuildID    = 20
	ptNote        = 4
	mostNoteBytes = 64 << 10 // maximum size of all segments of notes that are read
	mostPrograms  = 256      // as on Linux, later program headers are ignored
)

// BuildID returns the build ID of an ELF file, or nil if it has none.
func BuildID(r io.ReaderAt) []byte {
	le := binary.LittleEndian
	var h [headerSize]byte
	if readFull(r, h[:], 0) != nil || string(h[:4]) != "\x7fELF" || h[4] != 2 {
		return nil
	}
	if kind := le.Uint16(h[16:]); kind != typeExec && kind != typeDyn {
		return nil
	}
	headers := make([]byte, min(le.Uint16(h[56:]), mostPrograms)*programSize)
	if at := le.Uint64(h[32:]); at > 1<<62 || readFull(r, headers, int64(at)) != nil {
		return nil
	}
	var buffer []byte
	for left := uint64(mostNoteBytes); len(headers) > 0; headers = headers[programSize:] {
		at, size := le.Uint64(headers[8:]), min(le.Uint64(headers[32:]), left)
		if le.Uint32(headers) != ptNote || at > 1<<62 {
			continue
		}
		left -= size
		buffer = slices.Grow(buffer[:0], int(size))
		notes := buffer[:size]
		if readFull(r, notes, int64(at)) != nil {
			continue
		}
		if id := buildIDOf(notes); id != nil {
			return id
		}
	}
	return nil
}

// buildIDOf returns the build ID in a segment of notes, or nil.
func buildIDOf(notes []byte) []byte {
	le := binary.LittleEndian
	for len(notes) > noteHeader+len(noteName) {
		name, size := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:]))
		at := noteHeader + (name+3)&^3
		next := at + (size+3)&^3
		if next > uint64(len(notes)) {
			return nil
		}
		if le.Uint32(notes[8:]) == noteBuildID && string(notes[noteHeader:][:min(name, uint64(len(noteName)))]) == noteName &&
			name == uint64(len(noteName)) && size > 0 && size <= maxBuildID {
			return notes[at:][:size]
		}
		notes = notes[next:]
	}
	return nil
}
