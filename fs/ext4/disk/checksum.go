package disk

// Checksums computes the checksums of metadata ("Checksums"). With metadata_csum each structure has
// a crc32c. Its seed is the file system's UUID, in most cases followed by the number of the inode
// or group that the structure belongs to. With uninit_bg alone, group descriptors have a crc16.
type Checksums struct {
	metadata bool
	group16  bool
	seed     uint32
	uuid     [16]byte
}

func newChecksums(s Super) Checksums {
	c := Checksums{metadata: s.ROCompat()&ROCompatMetadataCsum != 0, group16: s.ROCompat()&ROCompatGroupCsum != 0}
	copy(c.uuid[:], s.UUID())
	c.seed = CRC(^uint32(0), s.UUID())
	if s.Incompat()&IncompatCsumSeed != 0 {
		c.seed = s.ChecksumSeed()
	}
	return c
}

// Metadata reports whether the file system has metadata_csum.
func (c *Checksums) Metadata() bool { return c.metadata }

// Groups reports whether descriptors have checksums. Only then may bitmaps be uninitialised.
func (c *Checksums) Groups() bool { return c.metadata || c.group16 }

// group returns the checksum of a descriptor; ok is false if descriptors have none.
func (c *Checksums) group(d Group, number uint32) (sum uint16, ok bool) {
	var n [4]byte
	le.PutUint32(n[:], number)
	switch {
	case c.metadata:
		crc := CRC(CRC(CRC(c.seed, n[:]), d[:0x1e]), []byte{0, 0})
		return uint16(CRC(crc, d[0x20:])), true
	case c.group16:
		crc := crc16(crc16(crc16(^uint16(0), c.uuid[:]), n[:]), d[:0x1e])
		return crc16(crc, d[0x20:]), true
	}
	return 0, false
}

// GroupOK verifies a descriptor, SealGroup writes its checksum.
func (c *Checksums) GroupOK(d Group, number uint32) bool {
	sum, ok := c.group(d, number)
	return !ok || sum == le.Uint16(d[0x1e:])
}
func (c *Checksums) SealGroup(d Group, number uint32) {
	if sum, ok := c.group(d, number); ok {
		le.PutUint16(d[0x1e:], sum)
	}
}

// Offsets in bytes in a group descriptor: of the low and of the high half of a bitmap's checksum.
var (
	blockBitmapSum = [2]int{0x18, 0x38}
	inodeBitmapSum = [2]int{0x1a, 0x3a}
)

// SealBlockBitmap and SealInodeBitmap write a bitmap's checksum into its group's descriptor. b has
// Geometry.BlocksPerGroup or InodesPerGroup bits. The caller then calls SealGroup.
func (c *Checksums) SealBlockBitmap(d Group, b []byte) { c.sealBitmap(d, b, blockBitmapSum) }
func (c *Checksums) SealInodeBitmap(d Group, b []byte) { c.sealBitmap(d, b, inodeBitmapSum) }

func (c *Checksums) sealBitmap(d Group, b []byte, at [2]int) {
	if !c.metadata {
		return
	}
	d.setCount(at[0], at[1], CRC(c.seed, b))
}

// BlockBitmapOK and InodeBitmapOK verify the checksum of a bitmap.
func (c *Checksums) BlockBitmapOK(d Group, b []byte) bool { return c.bitmapOK(d, b, blockBitmapSum) }
func (c *Checksums) InodeBitmapOK(d Group, b []byte) bool { return c.bitmapOK(d, b, inodeBitmapSum) }

func (c *Checksums) bitmapOK(d Group, b []byte, at [2]int) bool {
	if !c.metadata {
		return true
	}
	sum := CRC(c.seed, b)
	if !d.wide() {
		sum &= 0xffff
	}
	return d.count(at[0], at[1]) == sum
}

// owner returns the seed for structures that belong to an inode.
func (c *Checksums) owner(ino, generation uint32) uint32 {
	return crcNumber(crcNumber(c.seed, ino), generation)
}

// inode returns the checksum of an inode, computed with zeros in the checksum field.
func (c *Checksums) inode(i Inode, ino uint32) (sum uint32, high bool) {
	high = i.ExtraIsize() >= 4
	crc := c.owner(ino, i.Generation())
	crc = CRC(CRC(crc, i[:0x7c]), []byte{0, 0})
	switch {
	case len(i) <= 128 || !high:
		crc = CRC(crc, i[0x7e:])
	default:
		crc = CRC(CRC(CRC(crc, i[0x7e:0x82]), []byte{0, 0}), i[0x84:])
	}
	return crc, high
}

// InodeOK verifies the checksum of an inode. An inode of zeros was never used, and is valid.
func (c *Checksums) InodeOK(i Inode, ino uint32) bool {
	if !c.metadata {
		return true
	}
	sum, high := c.inode(i, ino)
	got := uint32(le.Uint16(i[0x7c:]))
	if high {
		got |= uint32(le.Uint16(i[0x82:])) << 16
	} else {
		sum &= 0xffff
	}
	return got == sum || allZero(i)
}

// SealInode writes an inode's checksum.
func (c *Checksums) SealInode(i Inode, ino uint32) {
	if !c.metadata {
		return
	}
	sum, high := c.inode(i, ino)
	le.PutUint16(i[0x7c:], uint16(sum))
	if high {
		le.PutUint16(i[0x82:], uint16(sum>>16))
	}
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// Owner is the inode to which a block of a directory or of an extent tree belongs.
type Owner struct{ Inode, Generation uint32 }

// SealExtents writes the checksum of a block of an extent tree, which follows the last entry that
// the block has room for; ExtentsOK verifies it.
func (c *Checksums) SealExtents(b []byte, o Owner) {
	if c.metadata {
		at := extentTail(b)
		le.PutUint32(b[at:], CRC(c.owner(o.Inode, o.Generation), b[:at]))
	}
}
func (c *Checksums) ExtentsOK(b []byte, o Owner) bool {
	at := extentTail(b)
	return !c.metadata || at+4 <= len(b) && le.Uint32(b[at:]) == CRC(c.owner(o.Inode, o.Generation), b[:at])
}

// SealDirectory writes the checksum of a directory leaf, which is in its last entry; DirectoryOK
// verifies it.
func (c *Checksums) SealDirectory(b []byte, o Owner) {
	if c.metadata {
		at := len(b) - tailSize
		le.PutUint32(b[at+8:], CRC(c.owner(o.Inode, o.Generation), b[:at]))
	}
}
func (c *Checksums) DirectoryOK(b []byte, o Owner) bool {
	at := len(b) - tailSize
	return !c.metadata || hasTail(b) && le.Uint32(b[at+8:]) == CRC(c.owner(o.Inode, o.Generation), b[:at])
}

// SealIndex writes the checksum of an index block, which follows the last entry that the block has
// room for; IndexOK verifies it.
func (c *Checksums) SealIndex(x Index, o Owner) {
	if c.metadata {
		le.PutUint32(x.b[x.tail()+4:], c.index(x, o))
	}
}
func (c *Checksums) IndexOK(x Index, o Owner) bool {
	return !c.metadata || x.tail()+8 <= len(x.b) && le.Uint32(x.b[x.tail()+4:]) == c.index(x, o)
}

func (c *Checksums) index(x Index, o Owner) uint32 {
	crc := CRC(c.owner(o.Inode, o.Generation), x.b[:x.at+8*x.Count()])
	return CRC(CRC(crc, x.b[x.tail():x.tail()+4]), []byte{0, 0, 0, 0})
}

// SealAttributes writes the checksum of a block of attributes; AttributesOK verifies it.
func (c *Checksums) SealAttributes(b []byte, block uint64) {
	if c.metadata {
		le.PutUint32(b[0x10:], c.attributes(b, block))
	}
}
func (c *Checksums) AttributesOK(b []byte, block uint64) bool {
	return !c.metadata || le.Uint32(b[0x10:]) == c.attributes(b, block)
}

func (c *Checksums) attributes(b []byte, block uint64) uint32 {
	var n [8]byte
	le.PutUint64(n[:], block)
	return CRC(CRC(CRC(CRC(c.seed, n[:]), b[:0x10]), []byte{0, 0, 0, 0}), b[0x14:])
}

// orphanMagic is at the end of a block of the orphan file ("Orphan file").
const orphanMagic = 0x0b10ca04

// Orphans returns the inodes in a block of the orphan file. Errors: ErrCorrupt.
func (c *Checksums) Orphans(b []byte, block uint64, o Owner) ([]uint32, error) {
	end := len(b) - 8
	if le.Uint32(b[end:]) != orphanMagic || c.metadata && le.Uint32(b[end+4:]) != c.orphans(b, block, o) {
		return nil, ErrCorrupt
	}
	var all []uint32
	for at := 0; at < end; at += 4 {
		if ino := le.Uint32(b[at:]); ino != 0 {
			all = append(all, ino)
		}
	}
	return all, nil
}

// ClearOrphans empties a block of the orphan file.
func (c *Checksums) ClearOrphans(b []byte, block uint64, o Owner) {
	clear(b[:len(b)-8])
	if c.metadata {
		le.PutUint32(b[len(b)-4:], c.orphans(b, block, o))
	}
}

func (c *Checksums) orphans(b []byte, block uint64, o Owner) uint32 {
	var n [8]byte
	le.PutUint64(n[:], block)
	return CRC(CRC(c.owner(o.Inode, o.Generation), n[:]), b[:len(b)-8])
}
