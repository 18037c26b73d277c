package boot

import "encoding/binary"

// The files of a program are archives (package fs/tarfs), in an ELF segment after the program. The segment contains the
// number of archives; for each archive its offset from the start of the segment and its size, in bytes; and the
// archives, aligned to archiveAlign bytes. All numbers have 64 bits.

// ConfigArchive is the number of an entry that contains an encoded Config instead of an archive. The kernel uses that
// Config if the machine is started without one. The entry may be empty.
const ConfigArchive = 0

const (
	archiveAlign = 16
	archiveEntry = 16
)

// EncodeArchives returns the content of the segment for a list of archives.
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

// Archive returns the archive with a number, counted from 0; false if there is none. b is the content of the segment
// with the archives.
func Archive(b []byte, number int) ([]byte, bool) {
	le := binary.LittleEndian
	if len(b) < 8 || number < 0 || uint64(number) >= le.Uint64(b) || len(b)-8 < archiveEntry*(number+1) {
		return nil, false
	}
	entry := b[8+archiveEntry*number:]
	at, size := le.Uint64(entry), le.Uint64(entry[8:])
	return window(b, at, size)
}
