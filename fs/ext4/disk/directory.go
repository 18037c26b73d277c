package disk

import "slices"

// Directory entries ("Directory Entries"). A block of a directory is filled by a chain of entries;
// each has room for a name, used or unused. With metadata_csum the last entry of a leaf holds the
// checksum instead of a name.

// DirEntry is a directory entry in a block.
type DirEntry struct {
	Inode  uint32
	Name   []byte // a part of the block, not a copy
	Type   uint8  // one of the Type constants; 0 if entries have no types
	Offset int    // offset of the entry in the block
	Length int    // in bytes, including unused room after the name
}

// File types in directory entries.
const (
	TypeUnknown = iota
	TypeRegular
	TypeDirectory
	TypeCharDevice
	TypeBlockDevice
	TypeFifo
	TypeSocket
	TypeSymlink

	typeTail = 0xde
)

// typeModes has the file type of an inode's mode (inode(7)) for each type of a directory entry.
var typeModes = [8]uint16{0, 0o100000, 0o040000, 0o020000, 0o060000, 0o010000, 0o140000, 0o120000}

// TypeOf returns the type of a directory entry for a mode.
func TypeOf(mode uint16) uint8 {
	return uint8(max(0, slices.Index(typeModes[:], mode&0o170000)))
}

// ModeOf returns the file type, as in a mode, for the type of a directory entry; 0 if it is unknown.
func ModeOf(entry uint8) uint16 {
	if int(entry) < len(typeModes) {
		return typeModes[entry]
	}
	return 0
}

const (
	entryHead = 8
	tailSize  = 12
)

// EntrySize returns the number of bytes that an entry needs for a name of that length.
func EntrySize(name int) int { return (entryHead + name + 3) &^ 3 }

// entryLength decodes the length of an entry. In blocks of 64 KiB, the length may exceed 16 bits
// and is encoded differently.
func entryLength(b []byte, at int) int {
	n := int(le.Uint16(b[at+4:]))
	if len(b) < 1<<16 {
		return n
	}
	if n == 0 || n == 0xffff {
		return 1 << 16
	}
	return n&^3 | n&3<<16
}

func setEntryLength(b []byte, at, n int) {
	if n == 1<<16 {
		n = 0xffff
	}
	le.PutUint16(b[at+4:], uint16(n&^3|n>>16&3|n&3))
}

func entry(b []byte, at int) DirEntry {
	name := int(b[at+6])
	return DirEntry{
		Inode: le.Uint32(b[at:]), Name: b[at+entryHead : at+entryHead+name], Type: b[at+7],
		Offset: at, Length: entryLength(b, at),
	}
}

// NextEntry returns the first used entry at or after an offset; ok is false if there is none. The
// offset is 0 at first, and then e.Offset+e.Length of the previous entry.
func NextEntry(b []byte, at int) (e DirEntry, ok bool) {
	for at < len(b) {
		if e = entry(b, at); e.Inode != 0 {
			return e, true
		}
		at += e.Length
	}
	return DirEntry{}, false
}

// FindEntry returns the entry of a name.
func FindEntry(b []byte, name string) (DirEntry, bool) {
	for at := 0; at < len(b); at += entryLength(b, at) {
		if int(b[at+6]) == len(name) && string(b[at+entryHead:at+entryHead+len(name)]) == name && le.Uint32(b[at:]) != 0 {
			return entry(b, at), true
		}
	}
	return DirEntry{}, false
}

// CheckDirectory checks that a chain of valid entries fills a block, and that their inode numbers
// exist. Errors: ErrCorrupt.
func (g *Geometry) CheckDirectory(b []byte) error {
	for at := 0; at < len(b); {
		if len(b)-at < entryHead {
			return ErrCorrupt
		}
		n := entryLength(b, at)
		name := int(b[at+6])
		if n < EntrySize(1) && n != entryHead || n%4 != 0 || at+n > len(b) || entryHead+name > n || le.Uint32(b[at:]) > g.Inodes {
			return ErrCorrupt
		}
		if le.Uint32(b[at:]) != 0 && name == 0 {
			return ErrCorrupt
		}
		at += n
	}
	return nil
}

// hasTail reports whether a block ends with the entry that holds a checksum.
func hasTail(b []byte) bool {
	at := len(b) - tailSize
	return le.Uint32(b[at:]) == 0 && le.Uint16(b[at+4:]) == tailSize && b[at+6] == 0 && b[at+7] == typeTail
}

// InitDirectory writes a leaf without names.
func (g *Geometry) InitDirectory(b []byte) {
	clear(b)
	room := len(b)
	if g.Sums.metadata {
		room -= tailSize
		setEntryLength(b, room, tailSize)
		b[room+7] = typeTail
	}
	setEntryLength(b, 0, room)
}

// InitFirst writes the first block of a directory, with "." and "..".
func (g *Geometry) InitFirst(b []byte, self, parent uint32) {
	g.InitDirectory(b)
	g.AddEntry(b, ".", self, TypeDirectory)
	g.AddEntry(b, "..", parent, TypeDirectory)
}

// AddEntry adds an entry for a name. It returns false if the block has no room.
func (g *Geometry) AddEntry(b []byte, name string, inode uint32, kind uint8) bool {
	need := EntrySize(len(name))
	for at := 0; at < len(b); {
		length, used := entryLength(b, at), 0
		if le.Uint32(b[at:]) != 0 {
			used = EntrySize(int(b[at+6]))
		} else if b[at+7] == typeTail {
			return false
		}
		if length-used >= need {
			if used > 0 {
				setEntryLength(b, at, used)
				at += used
			}
			g.putEntry(b, at, length-used, name, inode, kind)
			return true
		}
		at += length
	}
	return false
}

func (g *Geometry) putEntry(b []byte, at, length int, name string, inode uint32, kind uint8) {
	le.PutUint32(b[at:], inode)
	setEntryLength(b, at, length)
	b[at+6] = uint8(len(name))
	b[at+7] = 0
	if g.FileType {
		b[at+7] = kind
	}
	copy(b[at+entryHead:], name)
}

// RemoveEntry removes an entry. Its room is added to the previous entry, or stays an unused entry
// at the start of the block.
func RemoveEntry(b []byte, e DirEntry) {
	before := -1
	for at := 0; at < e.Offset; at += entryLength(b, at) {
		before = at
	}
	clear(b[e.Offset+entryHead : e.Offset+entryHead+len(e.Name)])
	le.PutUint32(b[e.Offset:], 0)
	b[e.Offset+6], b[e.Offset+7] = 0, 0
	if before >= 0 {
		setEntryLength(b, before, e.Offset+e.Length-before)
	}
}

// SetEntry makes an entry refer to another inode.
func (g *Geometry) SetEntry(b []byte, e DirEntry, inode uint32, kind uint8) {
	le.PutUint32(b[e.Offset:], inode)
	if g.FileType {
		b[e.Offset+7] = kind
	}
}
