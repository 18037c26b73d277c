package ext4

import (
	"math/bits"
	"slices"

	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// Growth of a mounted file system (resize2fs(8), EXT4_IOC_RESIZE_FS).
//
// Each step is an op, after which the file system is whole: one op extends the last group to its full size, and one op adds
// each new group. A crash leaves a size between the old one and the new one. A new group holds its own bitmaps and inode
// table, which ext4 allows with and without flex_bg.
//
// The descriptors of new groups need room. The resize inode holds blocks that mke2fs(8) reserved for this purpose: its
// double-indirect block lists them, and each of them lists its copies in the groups that have copies of the superblock. A
// reserved block that becomes a block of descriptors leaves the resize inode. A new group with a copy of the superblock
// also has copies of the blocks that remain reserved.
//
// Copies of the superblock and of descriptors are written last and without the journal: only a repair reads them.
//
// The superblock in the journal may be larger than the one in its place: see reload.

// Grow makes the file system larger, to a number of blocks. A last group that is too short for its own metadata is left
// out. Errors: EROFS, EBUSY if it is growing already, EINVAL if it is larger than blocks, ENOSPC if the device is too
// small, EOPNOTSUPP if there is no room for descriptors of the new groups, EIO.
func (s *FileSystem) Grow(blocks uint64) error {
	if !s.growing.TryLock() {
		return linux.EBUSY
	}
	defer s.growing.Unlock()
	blocks, err := s.mayGrow(blocks)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = s.growStep(blocks)
	}
	if err != nil {
		return err
	}
	return s.finishGrowth()
}

// mayGrow checks a new size, and returns the size without a last group that is too short.
func (s *FileSystem) mayGrow(blocks uint64) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.geometry
	super, err := s.super()
	switch {
	case err != nil:
		return 0, err
	case s.readOnly != "":
		return 0, linux.EROFS
	case blocks < g.Blocks:
		return 0, linux.EINVAL
	case blocks > uint64(s.device.io.Size())>>g.BlockBits:
		return 0, linux.ENOSPC
	case blocks >= 1<<32 && super.Incompat()&disk.Incompat64Bit == 0:
		return 0, linux.EINVAL
	case super.Incompat()&disk.IncompatMetaBG != 0 || super.Compat()&disk.CompatSparse2 != 0:
		return 0, linux.EOPNOTSUPP
	}
	if blocks = max(g.Blocks, g.WholeGroups(blocks)); !g.HasTables(blocks) {
		return 0, linux.EOPNOTSUPP
	}
	return blocks, nil
}

// growStep extends the last group, or adds one. more is false if the file system has its size.
func (s *FileSystem) growStep(blocks uint64) (more bool, err error) {
	s.mu.RLock()
	g := s.geometry
	now, group := g.Blocks, g.Groups-1
	end := g.GroupStart(group + 1)
	s.mu.RUnlock()
	switch {
	case now == blocks:
		return false, nil
	case now < end:
		return true, s.update(func(o *op) error { return o.extendGroup(group, min(blocks, end)) })
	}
	group++
	if err := s.clearGroup(group, min(blocks, end+uint64(g.BlocksPerGroup))); err != nil {
		return false, err
	}
	return true, s.update(func(o *op) error { return o.addGroup(group, min(blocks, end+uint64(g.BlocksPerGroup))) })
}

// clearGroup zeroes the metadata of a group that is about to be added. A crash before it is added leaves it unused.
func (s *FileSystem) clearGroup(group uint32, end uint64) error {
	g := s.geometry
	start := g.GroupStart(group)
	n := uint64(g.Overhead(group)) + 2 + g.TableBlocks()
	s.cache.drop(start, n)
	if err := s.device.io.WriteZeroes(int64(start)<<g.BlockBits, int64(min(n, end-start))<<g.BlockBits, 0); err != nil {
		return linux.EIO
	}
	return nil
}

// setBlocks changes the size in memory and in the superblock.
func (o *op) setBlocks(blocks uint64) error {
	g := o.s.geometry
	super, err := o.super()
	if err != nil {
		return err
	}
	old := g.Blocks
	g.SetBlocks(blocks)
	o.undo = append(o.undo, func() { g.SetBlocks(old) })
	super.SetSize(g)
	high, low := bits.Mul64(min(super.Reserved(), old-1), blocks)
	share, _ := bits.Div64(high, low, old)
	super.SetReserved(share)
	return nil
}

// extendGroup adds blocks to the last group.
func (o *op) extendGroup(group uint32, blocks uint64) error {
	g := o.s.geometry
	from := g.GroupBlocks(group)
	b, d, err := o.editBlockBitmap(group)
	if err != nil {
		return err
	}
	if err := o.setBlocks(blocks); err != nil {
		return err
	}
	n := g.GroupBlocks(group) - from
	if disk.ClearBits(b, from, n) != n {
		return errDamaged
	}
	d.SetFreeBlocks(d.FreeBlocks() + n)
	o.s.freeBlocks += uint64(n)
	return nil
}

// addGroup adds a group. Its metadata is zeroed.
func (o *op) addGroup(group uint32, blocks uint64) error {
	g := o.s.geometry
	number, at := g.DescriptorBlock(group)
	if at == 0 {
		if err := o.takeReserved(group, number); err != nil {
			return err
		}
	}
	if err := o.setBlocks(blocks); err != nil {
		return err
	}
	d, err := o.descriptor(group)
	if err != nil {
		return err
	}
	clear(d)
	first := g.GroupStart(group) + uint64(g.Overhead(group))
	d.SetPlaces(first, first+1, first+2)
	free := g.GroupBlocks(group) - g.Overhead(group) - 2 - uint32(g.TableBlocks())
	d.SetFreeBlocks(free)
	d.SetFreeInodes(g.InodesPerGroup)
	g.FreshBlockBitmap(o.make(first, disk.Structure{Kind: disk.KindBlockBitmap, Index: group}), group, d)
	if g.Sums.Groups() {
		d.SetFlags(disk.InodesUninit | disk.TableZeroed)
		d.SetUnused(g.InodesPerGroup)
	} else {
		g.FreshInodeBitmap(o.make(first+1, disk.Structure{Kind: disk.KindInodeBitmap, Index: group}))
	}
	o.s.freeBlocks += uint64(free)
	o.s.freeInodes += g.InodesPerGroup
	if g.HasSuper(group) {
		return o.reserveCopies(group)
	}
	return nil
}

// resizeInode returns the resize inode, and its double-indirect block, for writing.
func (o *op) resizeInode() (i disk.Inode, list []byte, err error) {
	if i, err = o.inode(disk.ResizeInode); err != nil {
		return nil, nil, err
	}
	number := disk.BlockNumber(i.Area()[4*13:])
	if !o.s.geometry.Holds(number, 1) {
		return nil, nil, errDamaged
	}
	list, err = o.editMap(number)
	return i, list, err
}

// editMap returns a block of a block map, which consists of block numbers, for writing.
func (o *op) editMap(number uint64) ([]byte, error) {
	return o.edit(number, disk.Structure{Kind: disk.KindBlockMap})
}

// takeReserved takes a reserved block out of the resize inode, and makes it an empty block of descriptors, from a group on.
func (o *op) takeReserved(group uint32, number uint64) error {
	s, g := o.s, o.s.geometry
	i, list, err := o.resizeInode()
	if err != nil {
		return err
	}
	at, ok := g.ReservedAt(list, number)
	if !ok {
		return errDamaged
	}
	copies, err := s.image(number, disk.Structure{Kind: disk.KindBlockMap})
	if err != nil {
		return err
	}
	disk.PutBlockNumber(list[at:], 0)
	i.SetSectors(g, i.Sectors(g)-uint64(1+disk.CountBlocks(copies))<<(g.BlockBits-9))
	o.make(number, s.geometry.GroupsFrom(group, 0))
	return nil
}

// reserveCopies adds the copies of reserved blocks in a new group to the resize inode.
func (o *op) reserveCopies(group uint32) error {
	g := o.s.geometry
	from, n := g.ReservedTables()
	if n == 0 {
		return nil
	}
	i, list, err := o.resizeInode()
	if err != nil {
		return err
	}
	for number := from; number < from+n; number++ {
		if _, ok := g.ReservedAt(list, number); !ok {
			return errDamaged
		}
		b, err := o.editMap(number)
		if err != nil {
			return err
		}
		at := 4 * disk.CountBlocks(b)
		copied := number + uint64(group)*uint64(g.BlocksPerGroup)
		if at == len(b) || copied >= 1<<32 {
			return linux.EOPNOTSUPP
		}
		disk.PutBlockNumber(b[at:], copied)
	}
	i.SetSectors(g, i.Sectors(g)+n<<(g.BlockBits-9))
	return nil
}

// finishGrowth makes the new size durable, in its place on the device too, where resize2fs(8) reads it, and then writes the
// copies of the superblock and of descriptors.
func (s *FileSystem) finishGrowth() error {
	if err := s.commit(); err != nil {
		return err
	}
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.journal != nil {
		if err := s.checkpoint(); err != nil {
			s.fail(err)
			return linux.EIO
		}
	}
	if err := s.writeCopies(); err != nil {
		return linux.EIO
	}
	return s.device.io.Flush()
}

// writeCopies writes the copies of the superblock and of descriptors.
func (s *FileSystem) writeCopies() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.geometry
	super, err := s.super()
	if err != nil {
		return err
	}
	var tables []byte
	first, _ := g.DescriptorBlock(0)
	reserved, _ := g.ReservedTables()
	perBlock := uint32(g.BlockSize / g.DescSize)
	for number := first; number < reserved; number++ {
		w := s.geometry.GroupsFrom(uint32(number-first)*perBlock, 0)
		b, err := s.image(number, w)
		if err != nil {
			return err
		}
		tables = append(tables, b...)
		g.Seal(tables[len(tables)-len(b):], number, w, nil) // ops may have changed the image since the commit
	}
	for group := uint32(1); group < g.Groups; group++ {
		if !g.HasSuper(group) {
			continue
		}
		b := make([]byte, g.BlockSize)
		copied := disk.Super(b[:disk.SuperSize])
		copy(copied, super)
		copied.SetIncompat(super.Incompat() &^ disk.IncompatRecover)
		copied.SetGroup(uint16(group))
		copied.Seal()
		if err := s.device.write(g.GroupStart(group), slices.Concat(b, tables)); err != nil {
			return err
		}
	}
	return nil
}

// reload reads the superblock again, after the journal was recovered: the file system may have grown.
func (s *FileSystem) reload() error {
	super, err := s.super()
	if err != nil {
		return err
	}
	g, err := disk.ParseSuper(super)
	if err != nil {
		return err
	}
	if err := g.Fits(s.device.io.Size()); err != nil {
		return err
	}
	s.geometry = g
	return nil
}
