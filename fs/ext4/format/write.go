package format

import (
	"encoding/binary"
	"errors"

	"loam/fs/ext4/disk"
	"loam/fs/ext4/journal"
)

var le = binary.LittleEndian

// describeSizes writes the sizes of a file system into the superblock.
func (w *writer) describeSizes(blocks, first, perGroup, groups, inodesPerGroup uint64) {
	c, s := &w.config, w.super
	log := uint32(0)
	for n := c.BlockSize; n > 1024; n >>= 1 {
		log++
	}
	le.PutUint32(s[0x0:], uint32(inodesPerGroup*groups))
	le.PutUint32(s[0x4:], uint32(blocks))
	le.PutUint32(s[0x150:], uint32(blocks>>32))
	reserved := blocks * uint64(c.Reserved) / 100
	le.PutUint32(s[0x8:], uint32(reserved))
	le.PutUint32(s[0x154:], uint32(reserved>>32))
	le.PutUint32(s[0x14:], uint32(first))
	le.PutUint32(s[0x18:], log)
	le.PutUint32(s[0x1c:], log) // size of a cluster: one block
	le.PutUint32(s[0x20:], uint32(perGroup))
	le.PutUint32(s[0x24:], uint32(perGroup))
	le.PutUint32(s[0x28:], uint32(inodesPerGroup))
	le.PutUint16(s[0xce:], uint16(reservedDescriptors(c.BlockSize, blocks, groups, perGroup)))
}

// reservedDescriptors returns the number of blocks to reserve for descriptors of groups that
// resize2fs may add. Like mke2fs(8), it reserves enough to grow to 1024 times the size.
func reservedDescriptors(blockSize int, blocks, groups, perGroup uint64) uint64 {
	per := uint64(blockSize / descSize)
	most := min(blocks*1024, 1<<32-1)
	want := ((most+perGroup-1)/perGroup + per - 1) / per
	have := (groups + per - 1) / per
	return min(max(want, have+1)-have, uint64(blockSize/4))
}

// describeRest writes the fields of the superblock that do not depend on the size.
func (w *writer) describeRest() {
	c, s := &w.config, w.super
	now := uint32(c.Now.Unix())
	for _, f := range []struct {
		at int
		v  uint16
	}{
		{0x36, 0xffff}, // no periodic check after a number of mounts
		{0x38, disk.Magic}, {0x3a, disk.StateValid}, {0x3c, 1 /* errors: continue */},
		{0x58, inodeSize}, {0xfe, descSize}, {0x15c, extraSize}, {0x15e, extraSize},
	} {
		le.PutUint16(s[f.at:], f.v)
	}
	for _, f := range []struct {
		at int
		v  uint32
	}{
		{0x30, now}, {0x40, now}, {0x108, now}, {0x4c, 1 /* revision */}, {0x54, lostInode},
		{0x5c, compat}, {0x60, incompat}, {0x64, roCompat}, {0xe0, disk.JournalInode},
		{0x100, 0xc /* user_xattr, acl */}, {0x160, disk.SignedHash},
	} {
		le.PutUint32(s[f.at:], f.v)
	}
	copy(s[0x68:], c.UUID[:])
	copy(s[0x78:], c.Label)
	copy(s[0xec:], c.Seed[:])
	s[0xfc] = 1 // s_def_hash_version: half MD4
	s[0xfd] = 1 // 0x10c holds a copy of the journal's inode
	s[0x174] = flexShift
	s[0x175] = 1 // s_checksum_type: crc32c
	s.Seal()
}

// write writes all structures.
func (w *writer) write() error {
	if err := w.zero(extent{0, min(w.geometry.FirstData+1, w.geometry.Blocks)}); err != nil {
		return err
	}
	for i := range w.groups {
		if err := w.zero(extent{w.groups[i].table, w.geometry.TableBlocks()}); err != nil {
			return err
		}
	}
	steps := []func() error{w.writeTables, w.writeDirectories, w.writeResize, w.writeJournal, w.writeGroups, w.io.Flush, w.writeSuper, w.io.Flush}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) put(number uint64, b []byte) error {
	_, err := w.io.WriteAt(b, int64(number)<<w.geometry.BlockBits)
	return err
}

func (w *writer) zero(e extent) error {
	return w.io.WriteZeroes(int64(e.start)<<w.geometry.BlockBits, int64(e.length)<<w.geometry.BlockBits, 0)
}

func (w *writer) block() []byte { return make([]byte, w.geometry.BlockSize) }

// newInode fills in the fields of an inode.
func (w *writer) newInode(i disk.Inode, mode, links uint16, size, sectors uint64) {
	now := w.config.Now
	i.SetExtraIsize(extraSize)
	i.SetMode(mode)
	i.SetLinks(links)
	i.SetSize(size)
	i.SetSectors(w.geometry, sectors)
	for _, f := range []disk.TimeField{disk.AccessTime, disk.StatusTime, disk.ModifyTime, disk.CreateTime} {
		i.SetTime(f, now.Unix(), 0)
	}
}

// setExtents gives an inode its content.
func setExtents(i disk.Inode, list []extent) {
	i.SetFlags(disk.FlagExtents)
	x := disk.InitExtents(i.Area(), 0)
	logical := uint32(0)
	for n, e := range list {
		x.Open(n)
		x.SetExtent(n, disk.Extent{Logical: logical, Length: uint32(e.length), Physical: e.start})
		logical += uint32(e.length)
	}
}

// Modes of the files that a new file system contains.
const (
	modeFile = 0o100600
	modeRoot = 0o40755
	modeLost = 0o40700
)

// writeTables writes the first inodes, all in group 0.
func (w *writer) writeTables() error {
	g := w.geometry
	bits := g.BlockBits
	table := make([]byte, int(g.TableBlocks())<<bits)
	inode := func(n uint32) disk.Inode { return table[(n-1)*inodeSize:][:inodeSize] }
	sectors := func(blocks uint64) uint64 { return blocks << (bits - 9) }
	size := func(blocks uint64) uint64 { return blocks << bits }

	root := inode(disk.RootInode)
	w.newInode(root, modeRoot, 3, size(1), sectors(1))
	root.SetUID(w.config.UID)
	root.SetGID(w.config.GID)
	setExtents(root, []extent{{w.root, 1}})

	lost := inode(lostInode)
	w.newInode(lost, modeLost, 2, size(w.lost.length), sectors(w.lost.length))
	setExtents(lost, []extent{w.lost})

	log := inode(disk.JournalInode)
	length := total(w.journal)
	w.newInode(log, modeFile, 1, size(length), sectors(length))
	setExtents(log, w.journal)
	copy(w.super[0x10c:], log.Area())
	le.PutUint32(w.super[0x10c+4*15:], uint32(size(length)>>32))
	le.PutUint32(w.super[0x10c+4*16:], uint32(size(length)))

	resize := inode(disk.ResizeInode)
	per := uint64(g.BlockSize / 4)
	held := 1 + uint64(w.super.ReservedGDT())*uint64(1+len(w.backups()))
	w.newInode(resize, modeFile, 1, size(12+per+per*per), sectors(held))
	le.PutUint32(resize.Area()[4*13:], uint32(w.indirect))

	for _, n := range []uint32{disk.RootInode, disk.ResizeInode, disk.JournalInode, lostInode} {
		g.Sums.SealInode(inode(n), n)
	}
	used := (lostInode*inodeSize + g.BlockSize - 1) >> bits << bits
	return w.put(w.groups[0].table, table[:used])
}

func total(list []extent) (n uint64) {
	for _, e := range list {
		n += e.length
	}
	return n
}

// backups returns the groups with copies of the superblock.
func (w *writer) backups() (list []uint32) {
	for n := uint32(1); n < w.geometry.Groups; n++ {
		if w.geometry.HasSuper(n) {
			list = append(list, n)
		}
	}
	return list
}

// writeDirectories writes the root directory and lost+found.
func (w *writer) writeDirectories() error {
	g := w.geometry
	b := w.block()
	g.InitFirst(b, disk.RootInode, disk.RootInode)
	g.AddEntry(b, "lost+found", lostInode, disk.TypeDirectory)
	g.Sums.SealDirectory(b, disk.Owner{Inode: disk.RootInode})
	err := w.put(w.root, b)
	for i := range w.lost.length {
		if g.InitDirectory(b); i == 0 {
			g.InitFirst(b, lostInode, disk.RootInode)
		}
		g.Sums.SealDirectory(b, disk.Owner{Inode: lostInode})
		err = errors.Join(err, w.put(w.lost.start+i, b))
	}
	return err
}

// writeResize writes the blocks of the resize inode: one block lists the blocks reserved for
// descriptors, and each of these lists its copies in other groups ("Special inodes").
func (w *writer) writeResize() error {
	g := w.geometry
	backups := w.backups()
	tables := uint32((g.Groups + uint32(g.BlockSize/descSize) - 1) / uint32(g.BlockSize/descSize))
	all := w.block()
	for i := range uint32(w.super.ReservedGDT()) {
		at := g.FirstData + 1 + uint64(tables+i)
		le.PutUint32(all[4*((tables+i)%uint32(g.BlockSize/4)):], uint32(at))
		b := w.block()
		for n, group := range backups {
			le.PutUint32(b[4*n:], uint32(at+uint64(group)*uint64(g.BlocksPerGroup)))
		}
		if err := w.put(at, b); err != nil {
			return err
		}
	}
	return w.put(w.indirect, all)
}

// writeJournal writes an empty journal.
func (w *writer) writeJournal() error {
	for _, e := range w.journal {
		if err := w.zero(e); err != nil {
			return err
		}
	}
	b := w.block()
	journal.Init(b, uint32(total(w.journal)), w.config.UUID)
	return w.put(w.journal[0].start, b)
}

// writeGroups writes the bitmaps, and the group descriptors with their copies.
func (w *writer) writeGroups() error {
	g := w.geometry
	per := g.BlockSize / descSize
	tables := make([]byte, (int(g.Groups)+per-1)/per*g.BlockSize)
	freeBlocks, freeInodes := uint64(0), uint32(0)
	b := w.block()
	for n := range g.Groups {
		d := disk.Group(tables[int(n)*descSize:][:descSize])
		w.blockBitmap(n, b)
		free := g.GroupBlocks(n) - uint32(w.used(n))
		d.SetPlaces(w.groups[n].blockBitmap, w.groups[n].inodeBitmap, w.groups[n].table)
		d.SetFreeBlocks(free)
		g.Sums.SealBlockBitmap(d, b[:g.BlocksPerGroup/8])
		if err := w.put(w.groups[n].blockBitmap, b); err != nil {
			return err
		}
		inodes := g.InodesPerGroup
		d.SetFlags(disk.InodesUninit | disk.TableZeroed)
		d.SetUnused(inodes)
		if n == 0 {
			inodes -= lostInode
			d.SetDirectories(2)
			d.SetFlags(disk.TableZeroed)
			d.SetUnused(inodes)
			g.FreshInodeBitmap(b)
			disk.SetBits(b, 0, lostInode)
			g.Sums.SealInodeBitmap(d, b[:g.InodesPerGroup/8])
			if err := w.put(w.groups[n].inodeBitmap, b); err != nil {
				return err
			}
		}
		d.SetFreeInodes(inodes)
		g.Sums.SealGroup(d, n)
		freeBlocks, freeInodes = freeBlocks+uint64(free), freeInodes+inodes
	}
	w.super.SetFreeBlocks(freeBlocks)
	w.super.SetFreeInodes(freeInodes)
	err := w.put(g.FirstData+1, tables)
	for _, n := range w.backups() {
		err = errors.Join(err, w.put(g.GroupStart(n)+1, tables))
	}
	return err
}

// used returns the number of blocks in use in a group.
func (w *writer) used(n uint32) uint64 {
	return uint64(min(w.geometry.Overhead(n), w.geometry.GroupBlocks(n))) + total(w.groups[n].used)
}

// blockBitmap writes the block bitmap of a group.
func (w *writer) blockBitmap(n uint32, b []byte) {
	g := w.geometry
	clear(b)
	length := g.GroupBlocks(n)
	disk.SetBits(b, 0, min(g.Overhead(n), length))
	for _, e := range w.groups[n].used {
		disk.SetBits(b, uint32(e.start-g.GroupStart(n)), uint32(e.length))
	}
	disk.SetBits(b, length, uint32(8*len(b))-length)
}

// writeSuper writes the copies of the superblock, and the superblock itself last.
func (w *writer) writeSuper() error {
	g := w.geometry
	for _, n := range w.backups() {
		b := w.block()
		copy(b, w.super)
		copied := disk.Super(b[:disk.SuperSize])
		le.PutUint16(copied[0x5a:], uint16(n))
		copied.Seal()
		if err := w.put(g.GroupStart(n), b); err != nil {
			return err
		}
	}
	w.super.Seal()
	if g.BlockSize == 1024 {
		return w.put(1, w.super)
	}
	b := w.block()
	copy(b[disk.SuperOffset:], w.super)
	return w.put(0, b)
}
