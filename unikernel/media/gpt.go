package media

import "hash/crc32"

// A disk with a GUID partition table: UEFI Specification 2.10, chapter 5.

const (
	gptHeaderSize = 92
	gptEntries    = 128
	gptEntrySize  = 128
	gptSectors    = gptEntries * gptEntrySize / sector // size of the table
	mebibyte      = 1 << 20
	gptFirst      = mebibyte / sector // first sector of the partition
)

// systemPartition is the type of an EFI system partition, C12A7328-F81F-11D2-BA4B-00A0C93EC93B.
const systemPartition = "\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b"

// gpt returns a disk with a volume as its only partition. Its size is a multiple of 1 MiB, as clouds require.
func gpt(volume *image, application []byte) *image {
	size := align(volume.size, mebibyte) // of the partition
	m := &image{size: mebibyte + size + mebibyte}
	last := m.size/sector - 1

	table := make([]byte, gptEntries*gptEntrySize)
	copy(table, systemPartition)
	copy(table[16:], guid(application, "partition"))
	le.PutUint64(table[32:], gptFirst)
	le.PutUint64(table[40:], uint64(gptFirst+size/sector-1)) // last sector
	for i, c := range "Loam" {
		le.PutUint16(table[56+2*i:], uint16(c))
	}
	header := func(at, other, entries int64) []byte {
		b := make([]byte, sector)
		copy(b, "EFI PART\x00\x00\x01\x00") // signature and version
		le.PutUint32(b[12:], gptHeaderSize)
		le.PutUint64(b[24:], uint64(at))
		le.PutUint64(b[32:], uint64(other))
		le.PutUint64(b[40:], 2+gptSectors) // first and last usable sector
		le.PutUint64(b[48:], uint64(last-gptSectors-1))
		copy(b[56:], guid(application, "disk"))
		le.PutUint64(b[72:], uint64(entries))
		le.PutUint32(b[80:], gptEntries)
		le.PutUint32(b[84:], gptEntrySize)
		le.PutUint32(b[88:], crc32.ChecksumIEEE(table))
		le.PutUint32(b[16:], crc32.ChecksumIEEE(b[:gptHeaderSize]))
		return b
	}
	m.add(0, protectiveMBR(last))
	m.add(sector, header(1, last, 2))
	m.add(2*sector, table)
	for _, e := range volume.extents {
		m.add(mebibyte+e.at, e.data)
	}
	m.add((last-gptSectors)*sector, table)
	m.add(last*sector, header(last, 1, last-gptSectors))
	return m
}

// protectiveMBR returns the first sector: a partition table in the older format (UEFI, 5.2.3), which has one partition
// from sector 1 to the last.
func protectiveMBR(last int64) []byte {
	b := make([]byte, sector)
	copy(b, "\xcd\x18\xeb\xfe") // int 18h, which lets the BIOS try the next disk; a loop
	p := b[446:]
	copy(p, "\x00\x00\x02\x00\xee\xff\xff\xff") // not active; start; type; end, too large for this field
	le.PutUint32(p[8:], 1)
	le.PutUint32(p[12:], uint32(min(last, 1<<32-1)))
	copy(b[510:], "\x55\xaa")
	return b
}

// guid returns a GUID that depends on the application and the purpose (RFC 9562, version 8). In this encoding, the first
// three fields are little-endian.
func guid(application []byte, purpose string) []byte {
	g := identifier(application, purpose, 16)
	g[7] = g[7]&0x0f | 8<<4
	g[8] = g[8]&0x3f | 0x80
	return g
}
