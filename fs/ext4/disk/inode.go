package disk

// Inode is a view of an inode of Geometry.InodeSize bytes ("Index Nodes"). Of the fields after the
// first 128 bytes, only the first ExtraIsize bytes exist.
type Inode []byte

// Bits of an inode's Flags.
const (
	FlagImmutable  = 0x10
	FlagAppend     = 0x20
	FlagEncrypted  = 0x800
	FlagIndex      = 0x1000 // the directory has an index
	FlagHugeFile   = 0x40000
	FlagExtents    = 0x80000
	FlagEAInode    = 0x200000
	FlagInlineData = 0x10000000
)

// BlockArea is the size in bytes of the area that holds a block map, an extent tree's root, a short
// symbolic link or a device number.
const BlockArea = 60

// MaxLinks is the maximum link count; a directory with more links has count 1 (dir_nlink).
const MaxLinks = 65000

// Fields in the first 128 bytes of an inode.
func (i Inode) Mode() uint16         { return le.Uint16(i[0x0:]) }
func (i Inode) UID() uint32          { return uint32(le.Uint16(i[0x2:])) | uint32(le.Uint16(i[0x78:]))<<16 }
func (i Inode) GID() uint32          { return uint32(le.Uint16(i[0x18:])) | uint32(le.Uint16(i[0x7a:]))<<16 }
func (i Inode) Size() uint64         { return uint64(le.Uint32(i[0x4:])) | uint64(le.Uint32(i[0x6c:]))<<32 }
func (i Inode) DeletionTime() uint32 { return le.Uint32(i[0x14:]) } // time of deletion; of an orphan: the number of the next orphan
func (i Inode) Links() uint16        { return le.Uint16(i[0x1a:]) }
func (i Inode) Flags() uint32        { return le.Uint32(i[0x20:]) }
func (i Inode) Area() []byte         { return i[0x28 : 0x28+BlockArea] }
func (i Inode) Generation() uint32   { return le.Uint32(i[0x64:]) }
func (i Inode) AttrBlock() uint64 {
	return uint64(le.Uint32(i[0x68:])) | uint64(le.Uint16(i[0x76:]))<<32
}

// rawBlocks returns i_blocks, in units of 512 bytes, or of blocks with FlagHugeFile.
func (i Inode) rawBlocks() uint64 {
	return uint64(le.Uint32(i[0x1c:])) | uint64(le.Uint16(i[0x74:]))<<32
}

// Sectors returns the size of the file's allocated blocks, in units of 512 bytes.
func (i Inode) Sectors(g *Geometry) uint64 {
	n := i.rawBlocks()
	if i.Flags()&FlagHugeFile != 0 {
		n <<= g.BlockBits - 9
	}
	return n
}

// SetSectors sets the allocated size. It changes the unit to blocks when the count no longer fits.
func (i Inode) SetSectors(g *Geometry, n uint64) {
	flags := i.Flags() &^ FlagHugeFile
	if n >= 1<<48 {
		flags |= FlagHugeFile
		n >>= g.BlockBits - 9
	}
	i.SetFlags(flags)
	le.PutUint32(i[0x1c:], uint32(n))
	le.PutUint16(i[0x74:], uint16(n>>32))
}

// Setters. Call Checksums.SealInode afterwards.
func (i Inode) SetMode(m uint16)         { le.PutUint16(i[0x0:], m) }
func (i Inode) SetDeletionTime(t uint32) { le.PutUint32(i[0x14:], t) }
func (i Inode) SetLinks(n uint16)        { le.PutUint16(i[0x1a:], n) }
func (i Inode) SetFlags(f uint32)        { le.PutUint32(i[0x20:], f) }
func (i Inode) SetGeneration(n uint32)   { le.PutUint32(i[0x64:], n) }
func (i Inode) SetUID(n uint32) {
	le.PutUint16(i[0x2:], uint16(n))
	le.PutUint16(i[0x78:], uint16(n>>16))
}
func (i Inode) SetGID(n uint32) {
	le.PutUint16(i[0x18:], uint16(n))
	le.PutUint16(i[0x7a:], uint16(n>>16))
}
func (i Inode) SetSize(n uint64) {
	le.PutUint32(i[0x4:], uint32(n))
	le.PutUint32(i[0x6c:], uint32(n>>32))
}
func (i Inode) SetAttrBlock(b uint64) {
	le.PutUint32(i[0x68:], uint32(b))
	le.PutUint16(i[0x76:], uint16(b>>32))
}

// ExtraIsize is the number of bytes of fields after the first 128, limited to the size of the inode.
func (i Inode) ExtraIsize() int {
	if len(i) <= 128 {
		return 0
	}
	n := int(le.Uint16(i[0x80:]))
	if n > len(i)-128 || n%4 != 0 {
		return 0
	}
	return n
}

// SetExtraIsize sets the number of bytes of fields after the first 128.
func (i Inode) SetExtraIsize(n int) { le.PutUint16(i[0x80:], uint16(n)) }

// TimeField selects a time of an inode, for Time and SetTime.
type TimeField struct{ seconds, extra int }

// The times of an inode.
var (
	AccessTime = TimeField{0x8, 0x8c}
	StatusTime = TimeField{0xc, 0x84}
	ModifyTime = TimeField{0x10, 0x88}
	CreateTime = TimeField{0x90, 0x94}
)

// The range of times in seconds since 1970: 1901 to 2446 with the extra bits, 1901 to 2038 without
// them ("Inode Timestamps").
const (
	MinSeconds     = -1 << 31
	MaxSeconds     = 1<<34 - 1<<31 - 1
	MaxSecondsBare = 1<<31 - 1
)

// Time returns a time in seconds since 1970 and nanoseconds.
func (i Inode) Time(f TimeField) (seconds int64, nanoseconds uint32) {
	if f.seconds >= 0x80 && !i.holds(f.seconds) {
		return 0, 0
	}
	seconds = int64(int32(le.Uint32(i[f.seconds:])))
	if !i.holds(f.extra) {
		return seconds, 0
	}
	extra := le.Uint32(i[f.extra:])
	return seconds + int64(extra&3)<<32, min(extra>>2, 999_999_999)
}

// SetTime sets a time, limited to the range that the inode can hold.
func (i Inode) SetTime(f TimeField, seconds int64, nanoseconds uint32) {
	if f.seconds >= 0x80 && !i.holds(f.seconds) {
		return
	}
	if !i.holds(f.extra) {
		le.PutUint32(i[f.seconds:], uint32(min(max(seconds, MinSeconds), MaxSecondsBare)))
		return
	}
	seconds = min(max(seconds, MinSeconds), MaxSeconds)
	le.PutUint32(i[f.seconds:], uint32(seconds))
	epoch := uint32((seconds-int64(int32(seconds)))>>32) & 3
	le.PutUint32(i[f.extra:], nanoseconds<<2|epoch)
}

const second = 1_000_000_000

// Nanoseconds returns a time in nanoseconds since 1970, limited to the range of an int64, which ends in 2262.
func (i Inode) Nanoseconds(f TimeField) int64 {
	seconds, rest := i.Time(f)
	const most = 1<<63/second - 1
	return min(seconds, most)*second + int64(rest)
}

// SetNanoseconds is like SetTime, for a time in nanoseconds since 1970.
func (i Inode) SetNanoseconds(f TimeField, t int64) {
	seconds, rest := t/second, t%second
	if rest < 0 {
		seconds, rest = seconds-1, rest+second
	}
	i.SetTime(f, seconds, uint32(rest))
}

// holds reports whether the inode has a 4-byte field at this offset, after the first 128 bytes.
func (i Inode) holds(field int) bool { return field+4 <= 128+i.ExtraIsize() }

// Device returns the number of a device file. The old encoding has 16 bits, the new one 32.
func (i Inode) Device() (major, minor uint32) {
	area := i.Area()
	if old := le.Uint32(area); old != 0 {
		return old >> 8 & 0xff, old & 0xff
	}
	n := le.Uint32(area[4:])
	return n >> 8 & 0xfff, n&0xff | n>>12&0xfff00
}

// SetDevice sets the number of a device file, in the old encoding if it fits.
func (i Inode) SetDevice(major, minor uint32) {
	area := i.Area()
	if major < 256 && minor < 256 {
		le.PutUint32(area, major<<8|minor)
		return
	}
	le.PutUint32(area[4:], minor&0xff|major<<8|minor&^0xff<<12)
}

// FastLink reports whether a symbolic link's target is in the inode's area: the file has no blocks,
// except perhaps a block of attributes.
func (i Inode) FastLink(g *Geometry) bool {
	attr := uint64(0)
	if i.AttrBlock() != 0 {
		attr = uint64(g.BlockSize / 512)
	}
	return i.Flags()&(FlagExtents|FlagInlineData) == 0 && i.Sectors(g) == attr && i.Size() < BlockArea
}
