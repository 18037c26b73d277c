package ext4

import (
	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// Reading blocks of metadata. Each block is checked as the structure that it must be.

// image returns a block that holds a structure. The image is valid until the block is changed. The caller must not modify it.
func (s *FileSystem) image(number uint64, w disk.Structure) ([]byte, error) {
	b, err := s.buffer(number, w)
	if err != nil {
		return nil, err
	}
	return b.data, nil
}

func (s *FileSystem) buffer(number uint64, w disk.Structure) (*buffer, error) {
	if number >= s.geometry.Blocks && number&standIn == 0 {
		return nil, errDamaged
	}
	b := s.cache.find(number)
	if b == nil {
		if number&standIn != 0 {
			return nil, errDamaged
		}
		b = &buffer{number: number, data: make([]byte, s.geometry.BlockSize)}
		mark := s.cache.mark()
		if err := s.device.read(number, b.data); err != nil {
			return nil, linux.EIO
		}
		b = s.cache.addRead(b, mark)
	}
	if disk.Kind(b.kind.Load()) == w.Kind {
		return b, nil
	}
	if b.tx != nil || b.dirty || !s.holds(b, w) {
		return nil, errDamaged // another structure uses the same block and has changed it
	}
	s.cache.classify(b, w)
	return b, nil
}

// holds reports whether a block that was read from the device has a valid structure. Superblocks and descriptors are checked
// when the file system is opened, and inodes one by one.
func (s *FileSystem) holds(b *buffer, w disk.Structure) bool {
	d, err := s.groupOf(w)
	return err == nil && s.geometry.Valid(b.data, b.number, w, d)
}

// groupOf returns the descriptor of a bitmap's group, and nil for other structures.
func (s *FileSystem) groupOf(w disk.Structure) (disk.Group, error) {
	if w.Kind == disk.KindBlockBitmap || w.Kind == disk.KindInodeBitmap {
		return s.descriptor(w.Index)
	}
	return nil, nil
}

// descriptor returns a group's descriptor. All descriptors were checked when the file system was
// opened.
func (s *FileSystem) descriptor(group uint32) (disk.Group, error) {
	number, at := s.geometry.DescriptorBlock(group)
	b, err := s.image(number, s.geometry.GroupsFrom(group, at))
	if err != nil {
		return nil, err
	}
	return disk.Group(b[at : at+s.geometry.DescSize]), nil
}

// checkDescriptor returns a group's descriptor after checking it.
func (s *FileSystem) checkDescriptor(group uint32) (disk.Group, error) {
	d, err := s.descriptor(group)
	if err == nil && (!s.geometry.Sums.GroupOK(d, group) || !s.geometry.CheckGroup(d)) {
		err = errDamaged
	}
	return d, err
}

// inodePlace returns the block of an inode, and its offset in the block.
func (s *FileSystem) inodePlace(ino uint32) (number uint64, at int, err error) {
	g := s.geometry
	if ino == 0 || ino > g.Inodes {
		return 0, 0, errDamaged
	}
	group, bit := g.InodeGroup(ino)
	d, err := s.descriptor(group)
	if err != nil {
		return 0, 0, err
	}
	offset := uint64(bit) * uint64(g.InodeSize)
	return d.InodeTable() + offset>>g.BlockBits, int(offset) & (g.BlockSize - 1), nil
}

// inode returns an inode for reading. Its checksum is verified once after its block was read.
func (s *FileSystem) inode(ino uint32) (disk.Inode, error) {
	number, at, err := s.inodePlace(ino)
	if err != nil {
		return nil, err
	}
	b, err := s.buffer(number, s.geometry.InodesFrom(ino, at))
	if err != nil {
		return nil, err
	}
	i := disk.Inode(b.data[at : at+s.geometry.InodeSize])
	if slot := at / s.geometry.InodeSize; !b.trusted(slot) {
		if !s.geometry.Sums.InodeOK(i, ino) {
			return nil, errDamaged
		}
		b.trust(slot)
	}
	return i, nil
}

func owner(ino uint32, i disk.Inode) disk.Owner {
	return disk.Owner{Inode: ino, Generation: i.Generation()}
}

// run is a part of a file: adjacent blocks, or a hole.
type run struct {
	logical   uint64
	length    uint64 // number of blocks
	physical  uint64 // first block on the device; 0: a hole
	unwritten bool
}

// zeros reports whether the run reads as zeros.
func (r run) zeros() bool { return r.physical == 0 || r.unwritten }

// find returns the run that contains a block of a file. The returned run begins at that block.
func (s *FileSystem) find(ino uint32, i disk.Inode, logical uint64) (run, error) {
	if logical >= disk.MaxLogical {
		return run{logical: logical, length: 1}, nil
	}
	if i.Flags()&disk.FlagExtents == 0 {
		return s.findMapped(i, logical)
	}
	x := disk.Extents(i.Area())
	if s.geometry.CheckExtents(x, -1) != nil {
		return run{}, errDamaged
	}
	bound := uint64(disk.MaxLogical)
	for {
		at := x.Search(uint32(logical))
		if at+1 < x.Count() {
			bound = uint64(x.Key(at + 1))
		}
		if at < 0 {
			return run{logical: logical, length: bound - logical}, nil
		}
		if x.Depth() == 0 {
			if e := x.Extent(at); e.End() > logical {
				e = e.Cut(logical, e.End())
				return run{logical, uint64(e.Length), e.Physical, e.Unwritten}, nil
			}
			return run{logical: logical, length: bound - logical}, nil
		}
		var err error
		if x, err = s.node(x.Child(at), x.Depth()-1, owner(ino, i)); err != nil {
			return run{}, err
		}
	}
}

// node returns a block of an extent tree, checked for its depth.
func (s *FileSystem) node(number uint64, depth int, o disk.Owner) (disk.Extents, error) {
	b, err := s.image(number, disk.Structure{Kind: disk.KindExtents, Owner: o})
	if err != nil {
		return nil, err
	}
	if x := disk.Extents(b); x.Depth() == depth {
		return x, nil
	}
	return nil, errDamaged
}

// findMapped is like find, but for a file with a block map instead of extents ("Direct/Indirect Block Addressing").
// The map has 12 block numbers, then the numbers of an indirect, a double-indirect and a triple-indirect block.
func (s *FileSystem) findMapped(i disk.Inode, logical uint64) (run, error) {
	per := uint64(s.geometry.BlockSize / 4)
	number, hole := uint64(0), uint64(1)
	index, span := logical, uint64(0)
	switch {
	case index < 12:
		number = disk.BlockNumber(i.Area()[4*index:])
	case index-12 < per:
		number, index, span = disk.BlockNumber(i.Area()[48:]), index-12, 1
	case index-12-per < per*per:
		number, index, span = disk.BlockNumber(i.Area()[52:]), index-12-per, per
	case index-12-per-per*per < per*per*per:
		number, index, span = disk.BlockNumber(i.Area()[56:]), index-12-per-per*per, per*per
	}
	for ; span > 0 && number != 0; span /= per {
		b, err := s.image(number, disk.Structure{Kind: disk.KindBlockMap})
		if err != nil {
			return run{}, err
		}
		hole = span
		number = disk.BlockNumber(b[4*(index/span):])
		index %= span
	}
	if number == 0 {
		return run{logical: logical, length: max(1, hole-index%max(hole, 1))}, nil
	}
	if !s.geometry.Holds(number, 1) {
		return run{}, errDamaged
	}
	return run{logical: logical, length: 1, physical: number}, nil
}
