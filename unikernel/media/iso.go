package media

import (
	"encoding/binary"
	"strings"
)

// A CD with the file system ISO 9660 (ECMA-119) and a boot catalog (Phoenix and IBM, "El Torito" Bootable CD-ROM Format
// Specification 1.0; UEFI Specification 2.10, 13.3.2.1). Firmware starts the volume that the catalog names. The same volume is
// the file EFI.IMG of the file system.

const block = 2048 // size of a block of a CD in bytes

// Blocks of the CD. The first 16 are reserved.
const (
	isoPrimary = 16 + iota
	isoBoot
	isoEnd
	isoPathsLittle
	isoPathsBig
	isoRoot
	isoCatalog
	isoVolume
)

// isoDate is 1 January 1980, in the format of folders (ECMA-119, 9.1.5).
var isoDate = []byte{80, 1, 1, 0, 0, 0, 0}

// iso returns a CD with a volume.
func iso(volume *image) *image {
	blocks := isoVolume + align(volume.size, block)/block
	paths := []byte{1, 0, isoRoot, 0, 0, 0, 1, 0, 0, 0} // the root folder, in block isoRoot; its name is one zero byte
	pathsBig := []byte{1, 0, 0, 0, 0, isoRoot, 0, 1, 0, 0}
	root := isoFolder(
		isoEntry("\x00", true, isoRoot, block), isoEntry("\x01", true, isoRoot, block),
		isoEntry("BOOT.CAT;1", false, isoCatalog, block), isoEntry("EFI.IMG;1", false, isoVolume, volume.size))

	m := &image{size: blocks * block}
	m.add(isoPrimary*block, isoDescriptor(blocks, int64(len(paths))))
	m.add(isoBoot*block, isoBootRecord())
	m.add(isoEnd*block, []byte("\xffCD001\x01"))
	m.add(isoPathsLittle*block, paths)
	m.add(isoPathsBig*block, pathsBig)
	m.add(isoRoot*block, root)
	m.add(isoCatalog*block, isoBootCatalog(volume.size))
	for _, e := range volume.extents {
		m.add(isoVolume*block+e.at, e.data)
	}
	return m
}

// isoDescriptor returns the primary volume descriptor (ECMA-119, 8.4).
func isoDescriptor(blocks, pathsSize int64) []byte {
	b := make([]byte, 0, block)
	text := func(s string, size int) { b = append(b, s+strings.Repeat(" ", size-len(s))...) }
	zero := func(size int) { b = append(b, make([]byte, size)...) }
	b = append(b, "\x01CD001\x01\x00"...)
	text("", 32)     // system
	text("LOAM", 32) // volume
	zero(8)
	b = both32(b, blocks)
	zero(32)
	b = both16(b, 1) // number of volumes of the set
	b = both16(b, 1) // number of this volume
	b = both16(b, block)
	b = both32(b, pathsSize)
	b = le.AppendUint32(b, isoPathsLittle)
	zero(4) // no copy of the path table
	b = binary.BigEndian.AppendUint32(b, isoPathsBig)
	zero(4)
	b = append(b, isoEntry("\x00", true, isoRoot, block)...)
	text("", 4*128+3*37) // names of the set, the publisher, the preparer and the application, and of three files
	for _, date := range []string{"1980010100000000\x00", "1980010100000000\x00", "0000000000000000\x00", "0000000000000000\x00"} {
		b = append(b, date...) // created, changed, expires, effective
	}
	return append(b, 1, 0) // version of the structure
}

// isoBootRecord returns the boot record, which names the block of the boot catalog.
func isoBootRecord() []byte {
	b := make([]byte, 75)
	copy(b, "\x00CD001\x01EL TORITO SPECIFICATION")
	le.PutUint32(b[71:], isoCatalog)
	return b
}

// isoBootCatalog returns the boot catalog: a validation entry, and an entry that makes the firmware start a volume without
// emulating a disk.
func isoBootCatalog(size int64) []byte {
	const uefi, bootable = 0xef, 0x88
	b := make([]byte, 64)
	b[0], b[1] = 1, uefi
	copy(b[4:], "LOAM")
	copy(b[30:], "\x55\xaa")
	sum := uint16(0)
	for i := 0; i < 32; i += 2 {
		sum += le.Uint16(b[i:])
	}
	le.PutUint16(b[28:], -sum) // the sum of all words is 0
	entry := b[32:]
	entry[0] = bootable
	// The size in sectors. 0 and 1 mean that the volume extends to the end of the CD.
	if sectors := size / sector; sectors < 1<<16 {
		le.PutUint16(entry[6:], uint16(sectors))
	}
	le.PutUint32(entry[8:], isoVolume)
	return b
}

// isoEntry returns an entry of a folder (ECMA-119, 9.1).
func isoEntry(name string, folder bool, at, size int64) []byte {
	const fixed, folderFlag = 33, 2
	length := fixed + len(name) + (len(name)+1)%2
	b := append(make([]byte, 0, length), byte(length), 0)
	b = both32(b, at)
	b = both32(b, size)
	b = append(b, isoDate...)
	flags := byte(0)
	if folder {
		flags = folderFlag
	}
	b = append(b, flags, 0, 0)
	b = both16(b, 1) // number of the volume
	b = append(append(b, byte(len(name))), name...)
	return b[:length]
}

// isoFolder returns a folder.
func isoFolder(entries ...[]byte) (b []byte) {
	for _, e := range entries {
		b = append(b, e...)
	}
	return append(b, make([]byte, block-len(b))...)
}

// both16 and both32 append a number in both byte orders, first the little-endian one (ECMA-119, 7.2.3 and 7.3.3).
func both16(b []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(le.AppendUint16(b, v), v)
}

func both32(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint32(le.AppendUint32(b, uint32(v)), uint32(v))
}
