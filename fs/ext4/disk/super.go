package disk

import (
	"errors"
	"fmt"
)

// Super is a view of a superblock: SuperSize bytes at offset SuperOffset of the device, with copies
// in some groups ("The Super Block").
type Super []byte

// Offset and size of the primary superblock in bytes, and its magic number, which statfs(2) also
// returns as f_type.
const (
	SuperOffset = 1024
	SuperSize   = 1024
	Magic       = 0xef53
)

// Bits of the superblock's State.
const (
	StateValid  = 1 // the file system was unmounted cleanly
	StateErrors = 2
)

// Numbers of reserved inodes ("Special inodes").
const (
	RootInode    = 2
	ResizeInode  = 7
	JournalInode = 8
)

// Bits of Flags: whether directory hashes use signed or unsigned characters.
const (
	SignedHash   = 1
	UnsignedHash = 2
)

// Fields of the superblock. High halves that exist only with the feature 64bit read as zero without the feature.
func (s Super) Inodes() uint32          { return le.Uint32(s[0x0:]) }
func (s Super) Blocks() uint64          { return s.wide(0x4, 0x150) }
func (s Super) Reserved() uint64        { return s.wide(0x8, 0x154) }
func (s Super) FreeBlocks() uint64      { return s.wide(0xc, 0x158) }
func (s Super) FreeInodes() uint32      { return le.Uint32(s[0x10:]) }
func (s Super) FirstData() uint32       { return le.Uint32(s[0x14:]) }
func (s Super) LogBlockSize() uint32    { return le.Uint32(s[0x18:]) }
func (s Super) LogClusterSize() uint32  { return le.Uint32(s[0x1c:]) }
func (s Super) BlocksPerGroup() uint32  { return le.Uint32(s[0x20:]) }
func (s Super) InodesPerGroup() uint32  { return le.Uint32(s[0x28:]) }
func (s Super) Signature() uint16       { return le.Uint16(s[0x38:]) }
func (s Super) State() uint16           { return le.Uint16(s[0x3a:]) }
func (s Super) Revision() uint32        { return le.Uint32(s[0x4c:]) }
func (s Super) FirstInode() uint32      { return le.Uint32(s[0x54:]) }
func (s Super) InodeSize() uint16       { return le.Uint16(s[0x58:]) }
func (s Super) Compat() uint32          { return le.Uint32(s[0x5c:]) }
func (s Super) Incompat() uint32        { return le.Uint32(s[0x60:]) }
func (s Super) ROCompat() uint32        { return le.Uint32(s[0x64:]) }
func (s Super) UUID() []byte            { return s[0x68:0x78] }
func (s Super) Label() []byte           { return s[0x78:0x88] }
func (s Super) ReservedGDT() uint16     { return le.Uint16(s[0xce:]) }
func (s Super) JournalInode() uint32    { return le.Uint32(s[0xe0:]) }
func (s Super) LastOrphan() uint32      { return le.Uint32(s[0xe8:]) }
func (s Super) HashVersion() uint8      { return s[0xfc] }
func (s Super) DescSize() uint16        { return le.Uint16(s[0xfe:]) }
func (s Super) FirstMetaGroup() uint32  { return le.Uint32(s[0x104:]) }
func (s Super) WantExtraIsize() uint16  { return le.Uint16(s[0x15e:]) }
func (s Super) Flags() uint32           { return le.Uint32(s[0x160:]) }
func (s Super) FlexShift() uint8        { return s[0x174] }
func (s Super) ChecksumType() uint8     { return s[0x175] }
func (s Super) BackupGroups() [2]uint32 { return [2]uint32{le.Uint32(s[0x24c:]), le.Uint32(s[0x250:])} }
func (s Super) ChecksumSeed() uint32    { return le.Uint32(s[0x270:]) }
func (s Super) OrphanInode() uint32     { return le.Uint32(s[0x280:]) }
func (s Super) Checksum() uint32        { return le.Uint32(s[0x3fc:]) }
func (s Super) wide(lo, hi int) uint64 {
	n := uint64(le.Uint32(s[lo:]))
	if s.Incompat()&Incompat64Bit != 0 {
		n |= uint64(le.Uint32(s[hi:])) << 32
	}
	return n
}

// HashSeed returns the key of directory hashes.
func (s Super) HashSeed() (seed [4]uint32) {
	for i := range seed {
		seed[i] = le.Uint32(s[0xec+4*i:])
	}
	return seed
}

// Setters of the fields that a mounted file system changes. Call Seal afterwards.
func (s Super) SetFreeBlocks(n uint64)   { s.setWide(0xc, 0x158, n) }
func (s Super) SetFreeInodes(n uint32)   { le.PutUint32(s[0x10:], n) }
func (s Super) SetMountTime(t uint32)    { le.PutUint32(s[0x2c:], t) }
func (s Super) SetWriteTime(t uint32)    { le.PutUint32(s[0x30:], t) }
func (s Super) SetMounts(n uint16)       { le.PutUint16(s[0x34:], n) }
func (s Super) Mounts() uint16           { return le.Uint16(s[0x34:]) }
func (s Super) SetState(state uint16)    { le.PutUint16(s[0x3a:], state) }
func (s Super) SetIncompat(f uint32)     { le.PutUint32(s[0x60:], f) }
func (s Super) SetROCompat(f uint32)     { le.PutUint32(s[0x64:], f) }
func (s Super) SetReserved(n uint64)     { s.setWide(0x8, 0x154, n) }
func (s Super) SetGroup(n uint16)        { le.PutUint16(s[0x5a:], n) } // the group that holds this copy of the superblock
func (s Super) SetLastOrphan(ino uint32) { le.PutUint32(s[0xe8:], ino) }

func (s Super) setWide(lo, hi int, n uint64) {
	le.PutUint32(s[lo:], uint32(n))
	if s.Incompat()&Incompat64Bit != 0 {
		le.PutUint32(s[hi:], uint32(n>>32))
	}
}

// SetSize writes the fields that change when the file system grows. It clears the number of blocks for metadata, which
// is a hint that Linux then computes.
func (s Super) SetSize(g *Geometry) {
	s.setWide(0x4, 0x150, g.Blocks)
	le.PutUint32(s[0x0:], g.Inodes)
	le.PutUint16(s[0xce:], uint16(g.reservedGDT))
	le.PutUint32(s[0x248:], 0)
}

// Seal writes the checksum of the superblock, if the file system has checksums.
func (s Super) Seal() {
	if s.ROCompat()&ROCompatMetadataCsum != 0 {
		le.PutUint32(s[0x3fc:], CRC(^uint32(0), s[:0x3fc]))
	}
}

// Geometry holds fields of a checked superblock. They never change while a file system is mounted, except by SetBlocks. All
// derived sizes are nonzero and do not overflow.
type Geometry struct {
	BlockSize      int    // size of a block in bytes: 1 to 64 KiB
	BlockBits      uint   // binary logarithm of BlockSize
	Blocks         uint64 // number of blocks, at most 2^48
	FirstData      uint64 // the first block of group 0
	BlocksPerGroup uint32
	Groups         uint32
	Inodes         uint32
	InodesPerGroup uint32
	InodeSize      int // size of an inode in bytes
	ExtraIsize     int // bytes of fields after the first 128 in new inodes
	FirstInode     uint32
	DescSize       int // size of a group descriptor in bytes
	FlexGroups     uint32
	FileType       bool // directory entries have types
	LargeDir       bool
	HashSeed       [4]uint32
	HashVersion    uint8 // version of the hash for new indexes; includes whether characters are signed
	HashUnsigned   bool
	Sums           Checksums

	reservedGDT uint32
	sparse      bool
	sparse2     bool
	backups     [2]uint32
	cluster     uint32 // blocks per bit of a block bitmap (bigalloc)
	metaBG      bool
	firstMeta   uint32
}

// ErrNone is the error of ParseSuper for bytes that are not a superblock.
var ErrNone = errors.New("there is no ext4 file system")

// ParseSuper checks a superblock. Its errors name the reason of a rejection.
func ParseSuper(s Super) (*Geometry, error) {
	switch {
	case len(s) < SuperSize || s.Signature() != Magic:
		return nil, ErrNone
	case s.ROCompat()&ROCompatMetadataCsum != 0 && (s.ChecksumType() != 1 || s.Checksum() != CRC(^uint32(0), s[:0x3fc])):
		return nil, errors.New("the superblock's checksum is wrong: run e2fsck")
	}
	if err := s.Unsupported(); err != nil {
		return nil, err
	}
	g := &Geometry{
		Blocks: s.Blocks(), FirstData: uint64(s.FirstData()), BlocksPerGroup: s.BlocksPerGroup(),
		Inodes: s.Inodes(), InodesPerGroup: s.InodesPerGroup(), InodeSize: 128, FirstInode: 11, DescSize: 32,
		FlexGroups: 1, FileType: s.Incompat()&IncompatFileType != 0, LargeDir: s.Incompat()&IncompatLargeDir != 0,
		HashSeed: s.HashSeed(), HashVersion: s.HashVersion(), HashUnsigned: s.Flags()&UnsignedHash != 0,
		reservedGDT: uint32(s.ReservedGDT()), sparse: s.ROCompat()&ROCompatSparseSuper != 0,
		sparse2: s.Compat()&CompatSparse2 != 0, backups: s.BackupGroups(),
		metaBG: s.Incompat()&IncompatMetaBG != 0, firstMeta: s.FirstMetaGroup(),
	}
	if s.LogBlockSize() > 6 {
		return nil, errors.New("the superblock is damaged: block size")
	}
	g.BlockBits = uint(10 + s.LogBlockSize())
	g.BlockSize = 1 << g.BlockBits
	if s.Revision() > 0 {
		g.InodeSize, g.FirstInode = int(s.InodeSize()), s.FirstInode()
	}
	if s.Incompat()&Incompat64Bit != 0 {
		g.DescSize = int(s.DescSize())
	}
	if s.Incompat()&IncompatFlexBG != 0 && s.FlexShift() < 31 {
		g.FlexGroups = 1 << s.FlexShift()
	}
	if g.InodeSize > 128 {
		g.ExtraIsize = max(32, min(int(s.WantExtraIsize()), g.InodeSize-128)&^3)
	}
	g.cluster = 1
	if s.ROCompat()&ROCompatBigalloc != 0 && s.LogClusterSize() >= s.LogBlockSize() && s.LogClusterSize() < 24 {
		g.cluster = 1 << (s.LogClusterSize() - s.LogBlockSize())
	}
	g.Sums = newChecksums(s)
	return g, g.check()
}

// check rejects values that would make the arithmetic of a Geometry wrong.
func (g *Geometry) check() error {
	perBlock := uint32(8 * g.BlockSize)
	blocks := uint64(perBlock) * uint64(g.cluster)
	wrong := ""
	switch {
	case g.BlocksPerGroup < 8 || uint64(g.BlocksPerGroup) > blocks || g.BlocksPerGroup%8 != 0:
		wrong = "blocks per group"
	case g.InodeSize < 128 || g.InodeSize > g.BlockSize || g.InodeSize&(g.InodeSize-1) != 0:
		wrong = "inode size"
	case g.InodesPerGroup < 8 || g.InodesPerGroup > perBlock || g.InodesPerGroup%8 != 0:
		wrong = "inodes per group"
	case g.DescSize != 32 && (g.DescSize < 64 || g.DescSize > g.BlockSize || g.DescSize&(g.DescSize-1) != 0):
		wrong = "descriptor size"
	case g.BlockSize == 1024 && g.cluster == 1 && g.FirstData != 1 || g.BlockSize == 1024 && g.FirstData > 1 || g.BlockSize > 1024 && g.FirstData != 0:
		wrong = "first data block"
	case g.Blocks <= g.FirstData+8 || g.Blocks > 1<<48:
		wrong = "number of blocks"
	case g.FirstInode < 11 || g.FirstInode > g.Inodes:
		wrong = "first inode"
	}
	if wrong != "" {
		return fmt.Errorf("the superblock is damaged: %s", wrong)
	}
	groups := g.groupsOf(g.Blocks)
	if groups*uint64(g.InodesPerGroup) != uint64(g.Inodes) {
		return errors.New("the superblock is damaged: number of inodes")
	}
	g.Groups = uint32(groups)
	return nil
}
