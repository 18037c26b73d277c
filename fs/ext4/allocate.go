package ext4

import (
	"loam/abi/linux"
	"loam/fs/ext4/disk"
)

// Allocation of blocks and inodes. Files are placed near their directory, and the blocks of a file
// after one another. Directories in the root are spread over the groups that have room (Orlov).

// blockBitmap returns a group's bitmap for reading. A bitmap that was never written to the disk is
// computed.
func (s *FileSystem) blockBitmap(group uint32) ([]byte, error) {
	d, err := s.descriptor(group)
	if err != nil {
		return nil, err
	}
	if d.Flags()&disk.BlocksUninit != 0 {
		b := make([]byte, s.geometry.BlockSize)
		s.geometry.FreshBlockBitmap(b, group, d)
		return b, nil
	}
	return s.image(d.BlockBitmap(), disk.Structure{Kind: disk.KindBlockBitmap, Index: group})
}

// editBlockBitmap returns a group's bitmap and descriptor for writing.
func (o *op) editBlockBitmap(group uint32) ([]byte, disk.Group, error) {
	d, err := o.descriptor(group)
	if err != nil {
		return nil, nil, err
	}
	w := disk.Structure{Kind: disk.KindBlockBitmap, Index: group}
	if d.Flags()&disk.BlocksUninit != 0 {
		b := o.make(d.BlockBitmap(), w)
		o.s.geometry.FreshBlockBitmap(b, group, d)
		d.SetFlags(d.Flags() &^ disk.BlocksUninit)
		return b, d, nil
	}
	b, err := o.edit(d.BlockBitmap(), w)
	return b, d, err
}

// busy returns a group's bitmap of blocks that cannot be allocated: blocks in use, and freed blocks
// that become free only with the next commit.
func (s *FileSystem) busy(group uint32) ([]byte, error) {
	b, err := s.blockBitmap(group)
	if err != nil {
		return nil, err
	}
	copied := false
	for _, t := range []*transaction{s.running, s.committing} {
		if t == nil || t.freed[group] == nil {
			continue
		}
		if !copied {
			b = append([]byte(nil), b...)
			copied = true
		}
		for i, bits := range t.freed[group] {
			b[i] |= bits
		}
	}
	return b, nil
}

// allocate allocates a run of at most want adjacent blocks. It prefers the run at goal if that
// block is free, then the first run of want blocks, then the longest run. Errors: ENOSPC.
func (o *op) allocate(goal, want uint64) (block, n uint64, err error) {
	g := o.s.geometry
	if !g.Holds(goal, 1) {
		goal = g.FirstData
	}
	want = min(want, uint64(g.BlocksPerGroup))
	spare := o.s.spare()
	if o.placing {
		spare = o.s.freeBlocks - min(o.s.freeBlocks, o.s.pending())
	}
	if want = min(want, spare); want == 0 {
		return 0, 0, linux.ENOSPC
	}
	first, bit := g.GroupOf(goal)
	var best, length uint64
	for i := range g.Groups {
		group := (first + i) % g.Groups
		d, err := o.s.descriptor(group)
		if err != nil {
			return 0, 0, err
		}
		if d.FreeBlocks() == 0 || uint64(d.FreeBlocks()) <= length {
			continue
		}
		if i > 0 {
			bit = 0
		}
		b, err := o.s.busy(group)
		if err != nil {
			return 0, 0, err
		}
		at, n := disk.FindRun(b, bit, g.GroupBlocks(group), uint32(want))
		if uint64(n) > length {
			best, length = g.GroupStart(group)+uint64(at), uint64(n)
		}
		if length == want || length > 0 && (i >= 16 || best == goal) {
			break
		}
	}
	if length == 0 {
		return 0, 0, linux.ENOSPC
	}
	return best, length, o.use(best, length)
}

// use marks free blocks of one group as used in the group's bitmap.
func (o *op) use(block, n uint64) error {
	group, bit := o.s.geometry.GroupOf(block)
	b, d, err := o.editBlockBitmap(group)
	if err != nil {
		return err
	}
	if d.FreeBlocks() < uint32(n) {
		return errDamaged
	}
	disk.SetBits(b, bit, uint32(n))
	d.SetFreeBlocks(d.FreeBlocks() - uint32(n))
	o.s.freeBlocks -= n
	return nil
}

// free frees blocks with the next commit. For metadata, it also revokes older images in the
// journal.
func (o *op) free(block, n uint64, metadata bool) error {
	g := o.s.geometry
	for n > 0 {
		group, bit := g.GroupOf(block)
		part := min(n, uint64(g.GroupBlocks(group)-bit))
		if err := o.freeInGroup(group, bit, uint32(part)); err != nil {
			return err
		}
		for i := range part {
			o.forget(block+i, metadata)
		}
		block, n = block+part, n-part
	}
	return nil
}

func (o *op) freeInGroup(group, bit, n uint32) error {
	b, d, err := o.editBlockBitmap(group)
	if err != nil {
		return err
	}
	if disk.ClearBits(b, bit, n) != n || d.FreeBlocks()+n > o.s.geometry.GroupBlocks(group) {
		return errDamaged // one of the blocks was free already: two files contained the block
	}
	d.SetFreeBlocks(d.FreeBlocks() + n)
	o.s.freeBlocks += uint64(n)
	freed := o.s.running.freed
	if freed[group] == nil {
		freed[group] = make([]byte, o.s.geometry.BlockSize)
	}
	disk.SetBits(freed[group], bit, n)
	r := o.s.running
	r.freedBlocks += uint64(n)
	o.undo = append(o.undo, func() {
		disk.ClearBits(freed[group], bit, n)
		r.freedBlocks -= uint64(n)
	})
	return nil
}

// forget removes a freed block from the transaction and, when the op ends, from the cache.
func (o *op) forget(number uint64, metadata bool) {
	r := o.s.running
	if b := o.s.cache.find(number); b != nil {
		o.record(b)
		if b.tx == r {
			b.tx = nil
			delete(r.blocks, number)
		}
		o.dropped = append(o.dropped, number)
	}
	if _, ok := r.revoked[number]; metadata && !ok {
		r.revoked[number] = struct{}{}
		o.undo = append(o.undo, func() { delete(r.revoked, number) })
	}
}

// allocateInode allocates an inode for a new file or directory in the directory parent. Errors:
// ENOSPC.
func (o *op) allocateInode(parent uint32, isDir bool) (uint32, error) {
	g := o.s.geometry
	start, _ := g.InodeGroup(parent)
	if isDir && parent == disk.RootInode {
		start = o.s.spreadGroup()
	}
	for i := range g.Groups {
		group := (start + i) % g.Groups
		d, err := o.s.descriptor(group)
		if err != nil {
			return 0, err
		}
		if d.FreeInodes() == 0 {
			continue
		}
		ino, err := o.takeInode(group, isDir)
		if ino != 0 || err != nil {
			return ino, err
		}
	}
	return 0, linux.ENOSPC
}

// spreadGroup returns the next group with at least the average number of free inodes and blocks.
func (s *FileSystem) spreadGroup() uint32 {
	g := s.geometry
	for range g.Groups {
		s.spread = (s.spread + 1) % g.Groups
		d, err := s.descriptor(s.spread)
		if err == nil && d.FreeInodes() >= s.freeInodes/g.Groups && uint64(d.FreeBlocks()) >= s.freeBlocks/uint64(g.Groups) {
			break
		}
	}
	return s.spread
}

// takeInode allocates an inode in a group. It returns 0 if the group has no free inodes, other than reserved ones.
func (o *op) takeInode(group uint32, isDir bool) (uint32, error) {
	g := o.s.geometry
	d, err := o.descriptor(group)
	if err != nil {
		return 0, err
	}
	b, err := o.editInodeBitmap(group, d)
	if err != nil {
		return 0, err
	}
	from := uint32(0)
	if group == 0 {
		from = g.FirstInode - 1
	}
	bit := disk.NextClear(b, from, g.InodesPerGroup)
	if bit == g.InodesPerGroup {
		return 0, nil
	}
	disk.SetBits(b, bit, 1)
	d.SetFreeInodes(d.FreeInodes() - 1)
	d.SetUnused(min(d.Unused(), g.InodesPerGroup-bit-1))
	if isDir {
		d.SetDirectories(d.Directories() + 1)
	}
	if d.Flags()&disk.BlocksUninit != 0 {
		if _, _, err := o.editBlockBitmap(group); err != nil {
			return 0, err
		}
	}
	o.s.freeInodes--
	return group*g.InodesPerGroup + bit + 1, nil
}

func (o *op) editInodeBitmap(group uint32, d disk.Group) ([]byte, error) {
	w := disk.Structure{Kind: disk.KindInodeBitmap, Index: group}
	if d.Flags()&disk.InodesUninit != 0 {
		b := o.make(d.InodeBitmap(), w)
		o.s.geometry.FreshInodeBitmap(b)
		d.SetFlags(d.Flags() &^ disk.InodesUninit)
		return b, nil
	}
	return o.edit(d.InodeBitmap(), w)
}

// freeInode frees an inode.
func (o *op) freeInode(ino uint32, isDir bool) error {
	group, bit := o.s.geometry.InodeGroup(ino)
	d, err := o.descriptor(group)
	if err != nil {
		return err
	}
	b, err := o.editInodeBitmap(group, d)
	if err != nil {
		return err
	}
	if disk.ClearBits(b, bit, 1) != 1 || d.FreeInodes() >= o.s.geometry.InodesPerGroup {
		return errDamaged
	}
	d.SetFreeInodes(d.FreeInodes() + 1)
	if isDir && d.Directories() > 0 {
		d.SetDirectories(d.Directories() - 1)
	}
	o.s.freeInodes++
	return nil
}
