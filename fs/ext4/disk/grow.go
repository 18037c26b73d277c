package disk

// Sizes of a file system that grows (resize2fs(8)).

// groupsOf returns the number of groups of a file system with a number of blocks.
func (g *Geometry) groupsOf(blocks uint64) uint64 {
	return (blocks - g.FirstData + uint64(g.BlocksPerGroup) - 1) / uint64(g.BlocksPerGroup)
}

// tablesOf returns the number of blocks of descriptors for a number of groups.
func (g *Geometry) tablesOf(groups uint64) uint64 {
	per := uint64(g.BlockSize / g.DescSize)
	return (groups + per - 1) / per
}

// FirstTable returns the first block of descriptors. The blocks of descriptors, and then the reserved ones, follow one
// another.
func (g *Geometry) FirstTable() uint64 { return SuperOffset>>g.BlockBits + 1 }

// ReservedTables returns the n blocks, from a first one, that are reserved for descriptors.
func (g *Geometry) ReservedTables() (from, n uint64) {
	return g.FirstTable() + g.tablesOf(uint64(g.Groups)), uint64(g.reservedGDT)
}

// HasTables reports whether a file system can grow to a size in blocks: the blocks reserved for group descriptors suffice,
// and the number of inodes stays below 2^32.
func (g *Geometry) HasTables(blocks uint64) bool {
	groups := g.groupsOf(blocks)
	return g.tablesOf(groups) <= g.tablesOf(uint64(g.Groups))+uint64(g.reservedGDT) && groups*uint64(g.InodesPerGroup) < 1<<32
}

// WholeGroups returns the largest number of blocks, at most blocks, whose last group has room for its metadata and some files.
func (g *Geometry) WholeGroups(blocks uint64) uint64 {
	const some = 50
	last := uint32(g.groupsOf(blocks) - 1)
	if last == 0 || blocks-g.GroupStart(last) >= uint64(g.Overhead(last))+2+g.TableBlocks()+some {
		return blocks
	}
	return g.GroupStart(last)
}

// SetBlocks changes the number of blocks. Blocks for the descriptors of more groups come from the reserved ones:
// see HasTables. The caller holds the lock that readers of the geometry hold.
func (g *Geometry) SetBlocks(blocks uint64) {
	groups := g.groupsOf(blocks)
	g.reservedGDT -= uint32(g.tablesOf(groups) - g.tablesOf(uint64(g.Groups)))
	g.Blocks, g.Groups, g.Inodes = blocks, uint32(groups), uint32(groups)*g.InodesPerGroup
}

// PutBlockNumber writes an entry of a block map ("Direct/Indirect Block Addressing").
func PutBlockNumber(b []byte, number uint64) { le.PutUint32(b, uint32(number)) }

// BlockNumber reads an entry of a block map.
func BlockNumber(b []byte) uint64 { return uint64(le.Uint32(b)) }

// CountBlocks returns the number of entries before the first empty one, in a block of a block map.
func CountBlocks(b []byte) (n int) {
	for 4*n < len(b) && BlockNumber(b[4*n:]) != 0 {
		n++
	}
	return n
}

// ReservedAt returns the offset of a reserved block in the list of the resize inode; false if it is not there.
func (g *Geometry) ReservedAt(list []byte, number uint64) (int, bool) {
	at := 4 * int((number-g.FirstTable())%uint64(g.BlockSize/4))
	return at, BlockNumber(list[at:]) == number
}
