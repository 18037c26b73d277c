// Package disk is the on-disk format of ext4: each structure is a view of bytes in a block, with
// accessors for its fields.
//
// The setters of a view change the bytes of the block directly. The package has no cache, no
// journal and no device. Fields are little-endian. (The journal's fields are big-endian, and in
// package journal.)
//
// # Check once
//
// The bytes of an image are not trusted. [ParseSuper] checks the superblock and returns a
// [Geometry], whose fields are then trusted. [CheckDirectory] checks a block of a directory,
// [CheckExtents] a block of an extent tree, [CheckIndex] a block of an index, and [ReadAttributes]
// a block of attributes. The accessors of a view that has not been checked may panic.
//
// Sources: Documentation/filesystems/ext4 of the Linux kernel ("Data Structures and Algorithms"),
// section names in the comments; ext4(5); mke2fs(8).
//
// Rejected: structs that encoding/binary fills. A file system changes one or two fields of a
// structure at a time, and its state is the block (see package ext4).
package disk

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrCorrupt is the error for bytes that are not a valid structure of the expected kind.
var ErrCorrupt = errors.New("the file system is damaged")

var le = binary.LittleEndian

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC is crc32c as ext4 uses it: without inverting the seed or the result.
func CRC(seed uint32, p []byte) uint32 { return ^crc32.Update(^seed, castagnoli, p) }

// crcNumber continues a checksum with a number of 32 bits.
func crcNumber(seed, n uint32) uint32 {
	var b [4]byte
	le.PutUint32(b[:], n)
	return CRC(seed, b[:])
}

// crc16 is the checksum of group descriptors without metadata_csum
// (polynomial 0x8005, reflected).
func crc16(crc uint16, p []byte) uint16 {
	for _, c := range p {
		crc ^= uint16(c)
		for range 8 {
			low := crc & 1
			crc >>= 1
			if low != 0 {
				crc ^= 0xa001
			}
		}
	}
	return crc
}
