package disk

// Group is a view of a group descriptor of Geometry.DescSize bytes ("Block Group Descriptors"). A
// descriptor of 64 bytes or more also has the high halves of its fields.
type Group []byte

// Bits of Group.Flags.
const (
	InodesUninit = 1 // the inode bitmap was never written: all inodes are free
	BlocksUninit = 2 // the block bitmap was never written: all blocks are free except the group's metadata
	TableZeroed  = 4
)

func (d Group) wide() bool { return len(d) >= 64 }

func (d Group) block(lo, hi int) uint64 {
	n := uint64(le.Uint32(d[lo:]))
	if d.wide() {
		n |= uint64(le.Uint32(d[hi:])) << 32
	}
	return n
}

func (d Group) setBlock(lo, hi int, n uint64) {
	le.PutUint32(d[lo:], uint32(n))
	if d.wide() {
		le.PutUint32(d[hi:], uint32(n>>32))
	}
}

func (d Group) count(lo, hi int) uint32 {
	n := uint32(le.Uint16(d[lo:]))
	if d.wide() {
		n |= uint32(le.Uint16(d[hi:])) << 16
	}
	return n
}

func (d Group) setCount(lo, hi int, n uint32) {
	le.PutUint16(d[lo:], uint16(n))
	if d.wide() {
		le.PutUint16(d[hi:], uint16(n>>16))
	}
}

// Fields of a descriptor.
func (d Group) BlockBitmap() uint64 { return d.block(0x0, 0x20) }
func (d Group) InodeBitmap() uint64 { return d.block(0x4, 0x24) }
func (d Group) InodeTable() uint64  { return d.block(0x8, 0x28) }
func (d Group) FreeBlocks() uint32  { return d.count(0xc, 0x2c) }
func (d Group) FreeInodes() uint32  { return d.count(0xe, 0x2e) }
func (d Group) Directories() uint32 { return d.count(0x10, 0x30) }
func (d Group) Flags() uint16       { return le.Uint16(d[0x12:]) }
func (d Group) Unused() uint32      { return d.count(0x1c, 0x32) } // number of inodes at the end of the table that were never used

// Setters. Call Checksums.SealGroup afterwards.
func (d Group) SetPlaces(blockBitmap, inodeBitmap, table uint64) {
	d.setBlock(0x0, 0x20, blockBitmap)
	d.setBlock(0x4, 0x24, inodeBitmap)
	d.setBlock(0x8, 0x28, table)
}
func (d Group) SetFreeBlocks(n uint32)  { d.setCount(0xc, 0x2c, n) }
func (d Group) SetFreeInodes(n uint32)  { d.setCount(0xe, 0x2e, n) }
func (d Group) SetDirectories(n uint32) { d.setCount(0x10, 0x30, n) }
func (d Group) SetFlags(f uint16)       { le.PutUint16(d[0x12:], f) }
func (d Group) SetUnused(n uint32)      { d.setCount(0x1c, 0x32, n) }

// DescriptorBlock returns the location of a group's descriptor: a block and an offset in it. With
// meta_bg, a block of descriptors is in the first of the groups that it describes.
func (g *Geometry) DescriptorBlock(group uint32) (block uint64, offset int) {
	per := uint32(g.BlockSize / g.DescSize)
	index := group / per
	offset = int(group%per) * g.DescSize
	if !g.metaBG || index < g.firstMeta {
		return SuperOffset>>g.BlockBits + 1 + uint64(index), offset
	}
	first := index * per
	block = g.GroupStart(first)
	if g.HasSuper(first) {
		block++
	}
	return block, offset
}

// GroupStart returns the first block of a group.
func (g *Geometry) GroupStart(group uint32) uint64 {
	return g.FirstData + uint64(group)*uint64(g.BlocksPerGroup)
}

// GroupBlocks returns the number of blocks in a group. The last group may be shorter.
func (g *Geometry) GroupBlocks(group uint32) uint32 {
	return uint32(min(uint64(g.BlocksPerGroup), g.Blocks-g.GroupStart(group)))
}

// GroupOf returns the group of a block, and the block's bit in the group's bitmap.
func (g *Geometry) GroupOf(block uint64) (group, bit uint32) {
	n := block - g.FirstData
	return uint32(n / uint64(g.BlocksPerGroup)), uint32(n % uint64(g.BlocksPerGroup))
}

// InodeGroup returns the group of an inode, and the inode's bit in the group's bitmap.
func (g *Geometry) InodeGroup(ino uint32) (group, bit uint32) {
	return (ino - 1) / g.InodesPerGroup, (ino - 1) % g.InodesPerGroup
}

// TableBlocks returns the number of blocks of each inode table.
func (g *Geometry) TableBlocks() uint64 {
	return (uint64(g.InodesPerGroup)*uint64(g.InodeSize) + uint64(g.BlockSize) - 1) / uint64(g.BlockSize)
}

// Holds reports whether the n blocks that begin at block exist.
func (g *Geometry) Holds(block, n uint64) bool {
	return block >= g.FirstData && block < g.Blocks && n <= g.Blocks-block
}

// CheckGroup reports whether all blocks that a descriptor refers to exist.
func (g *Geometry) CheckGroup(d Group) bool {
	return g.Holds(d.BlockBitmap(), 1) && g.Holds(d.InodeBitmap(), 1) && g.Holds(d.InodeTable(), g.TableBlocks()) &&
		d.FreeBlocks() <= g.BlocksPerGroup && d.FreeInodes() <= g.InodesPerGroup && d.Unused() <= g.InodesPerGroup
}

// HasSuper reports whether a group holds a copy of the superblock (mke2fs(8): sparse_super, sparse_super2).
func (g *Geometry) HasSuper(group uint32) bool {
	switch {
	case group == 0:
		return true
	case g.sparse2:
		return group == g.backups[0] || group == g.backups[1]
	case group == 1 || !g.sparse:
		return true
	}
	for _, base := range []uint32{3, 5, 7} {
		n := base
		for n < group && n < 1<<28 {
			n *= base
		}
		if n == group {
			return true
		}
	}
	return false
}

// Overhead returns the number of blocks for copies of the superblock and descriptors at the start
// of a group.
func (g *Geometry) Overhead(group uint32) uint32 {
	per := uint32(g.BlockSize / g.DescSize)
	n := uint32(0)
	if g.HasSuper(group) {
		n = 1
	}
	if !g.metaBG || group/per < g.firstMeta {
		if n == 0 {
			return 0
		}
		tables := (g.Groups + per - 1) / per
		if g.metaBG {
			tables = min(tables, g.firstMeta)
		}
		return n + tables + g.reservedGDT
	}
	if in := group % per; in == 0 || in == 1 || in == per-1 {
		n++
	}
	return n
}

// FreshBlockBitmap writes the bitmap of a group with BlocksUninit. In use are the copies of the
// superblock and descriptors, the group's own bitmaps and table, and the bits after the end of a
// short group.
func (g *Geometry) FreshBlockBitmap(b []byte, group uint32, d Group) {
	clear(b)
	start, length := g.GroupStart(group), g.GroupBlocks(group)
	SetBits(b, 0, min(g.Overhead(group), length))
	for _, r := range [][2]uint64{{d.BlockBitmap(), 1}, {d.InodeBitmap(), 1}, {d.InodeTable(), g.TableBlocks()}} {
		from, to := max(r[0], start), min(r[0]+r[1], start+uint64(length))
		if from < to {
			SetBits(b, uint32(from-start), uint32(to-from))
		}
	}
	SetBits(b, length, uint32(8*len(b))-length)
}

// FreshInodeBitmap writes the bitmap of a group with InodesUninit.
func (g *Geometry) FreshInodeBitmap(b []byte) {
	clear(b)
	SetBits(b, g.InodesPerGroup, uint32(8*len(b))-g.InodesPerGroup)
}
