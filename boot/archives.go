package boot

import "encoding/binary"

// The files that a program is given are archives (package fs/tarfs), which lie side
// by side in a segment of their own behind the program: a number, how many there
// are; the place and the size of each, in bytes from the begin; and the archives,
// each at a multiple of archiveAlign. Numbers have 64 bits.

// ConfigArchive is the number of an archive that is none: it is an encoded Config, for
// a machine that was started without one, or empty.
const ConfigArchive = 0

const (
	archiveAlign = 16
	archiveEntry = 16
)

// EncodeArchives puts archives side by side.
func EncodeArchives(archives [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, uint64(len(archives)))
	at := uint64(len(b) + archiveEntry*len(archives))
	for _, a := range archives {
		at = (at + archiveAlign - 1) &^ (archiveAlign - 1)
		b = le.AppendUint64(le.AppendUint64(b, at), uint64(len(a)))
		at += uint64(len(a))
	}
	for i, a := range archives {
		b = append(b, make([]byte, int(le.Uint64(b[8+archiveEntry*i:]))-len(b))...)
		b = append(b, a...)
	}
	return b
}

// Archive is the archive of a number, from 0; false if there is none.
func Archive(b []byte, number int) ([]byte, bool) {
	le := binary.LittleEndian
	if len(b) < 8 || number < 0 || uint64(number) >= le.Uint64(b) || len(b)-8 < archiveEntry*(number+1) {
		return nil, false
	}
	entry := b[8+archiveEntry*number:]
	at, size := le.Uint64(entry), le.Uint64(entry[8:])
	return window(b, at, size)
}
