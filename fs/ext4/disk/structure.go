package disk

// Kind is the kind of structure in a block.
type Kind uint32

// Values of Kind.
const (
	KindUnknown Kind = iota
	KindContent
	KindSuper
	KindDescriptors
	KindBlockBitmap
	KindInodeBitmap
	KindInodeTable
	KindExtents
	KindDirectory
	KindIndexRoot
	KindIndexNode
	KindAttributes
	KindBlockMap
)

// Structure says what a block holds, for its check and its checksum.
type Structure struct {
	Kind  Kind
	Owner Owner  // of blocks of directories and of extent trees: the file
	Index uint32 // of bitmaps: the group; of descriptors and inode tables: the first group, or inode, in the block
}

// InodesFrom returns the structure of the block that has an inode at an offset.
func (g *Geometry) InodesFrom(ino uint32, at int) Structure {
	return Structure{Kind: KindInodeTable, Index: ino - uint32(at/g.InodeSize)}
}

// GroupsFrom returns the structure of the block that has the descriptor of a group at an offset.
func (g *Geometry) GroupsFrom(group uint32, at int) Structure {
	return Structure{Kind: KindDescriptors, Index: group - uint32(at/g.DescSize)}
}

// Valid reports whether a block that was read from the device holds a structure. d is the descriptor of a bitmap's group.
// Superblocks, descriptors and inodes are not checked.
func (g *Geometry) Valid(b []byte, number uint64, w Structure, d Group) bool {
	switch w.Kind {
	case KindBlockBitmap:
		return g.Sums.BlockBitmapOK(d, b[:g.BlocksPerGroup/8])
	case KindInodeBitmap:
		return g.Sums.InodeBitmapOK(d, b[:g.InodesPerGroup/8])
	case KindExtents:
		return g.CheckExtents(b, Extents(b).Depth()) == nil && g.Sums.ExtentsOK(b, w.Owner)
	case KindDirectory:
		return g.CheckDirectory(b) == nil && g.Sums.DirectoryOK(b, w.Owner)
	case KindIndexRoot:
		return g.CheckIndex(IndexRoot(b), g.IndexLevels()) == nil && g.Sums.IndexOK(IndexRoot(b), w.Owner)
	case KindIndexNode:
		return g.CheckIndex(IndexNode(b), 0) == nil && g.Sums.IndexOK(IndexNode(b), w.Owner)
	case KindAttributes:
		_, err := ReadAttributes(b, true)
		return err == nil && g.Sums.AttributesOK(b, number)
	}
	return true
}

// Seal writes the checksum of a structure, which is in the block or, for a bitmap, in the descriptor d. Inode tables have a
// checksum for each inode: see Checksums.SealInode.
func (g *Geometry) Seal(b []byte, number uint64, w Structure, d Group) {
	switch w.Kind {
	case KindSuper:
		at := SuperOffset & (g.BlockSize - 1)
		Super(b[at : at+SuperSize]).Seal()
	case KindDescriptors:
		for group := w.Index; len(b) > 0 && group < g.Groups; group++ {
			g.Sums.SealGroup(Group(b[:g.DescSize]), group)
			b = b[g.DescSize:]
		}
	case KindBlockBitmap:
		g.Sums.SealBlockBitmap(d, b[:g.BlocksPerGroup/8])
	case KindInodeBitmap:
		g.Sums.SealInodeBitmap(d, b[:g.InodesPerGroup/8])
	case KindExtents:
		g.Sums.SealExtents(b, w.Owner)
	case KindDirectory:
		g.Sums.SealDirectory(b, w.Owner)
	case KindIndexRoot:
		g.Sums.SealIndex(IndexRoot(b), w.Owner)
	case KindIndexNode:
		g.Sums.SealIndex(IndexNode(b), w.Owner)
	case KindAttributes:
		g.Sums.SealAttributes(b, number)
	}
}
