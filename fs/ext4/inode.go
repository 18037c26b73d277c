package ext4

import (
	"math/rand/v2"

	"loam/fs"
	"loam/fs/acl"
	"loam/fs/ext4/disk"
)

// Inodes: creating them, and converting their fields for package fs.

// newInode creates an inode without links, near the directory parent. Errors: ENOSPC.
func (o *op) newInode(parent uint32, mode fs.Mode, owner fs.Owner) (uint32, disk.Inode, error) {
	g := o.s.geometry
	ino, err := o.allocateInode(parent, mode.Type() == fs.Dir)
	if err != nil {
		return 0, nil, err
	}
	number, at, err := o.s.inodePlace(ino)
	if err == nil {
		err = o.clearTable(ino, number, at)
	}
	if err != nil {
		return 0, nil, err
	}
	b, err := o.editPart(number, at, g.InodeSize, o.s.geometry.InodesFrom(ino, at))
	if err != nil {
		return 0, nil, err
	}
	i := disk.Inode(b)
	clear(i)
	o.s.running.inodes[ino] = true
	o.trust(number, at/g.InodeSize)
	if g.ExtraIsize > 0 {
		i.SetExtraIsize(g.ExtraIsize)
	}
	i.SetMode(uint16(mode))
	i.SetUID(owner.UID)
	i.SetGID(owner.GID)
	i.SetGeneration(rand.Uint32())
	now := o.s.now()
	for _, f := range []disk.TimeField{disk.AccessTime, disk.ModifyTime, disk.StatusTime, disk.CreateTime} {
		setTime(i, f, now)
	}
	switch mode.Type() {
	case fs.Regular, fs.Dir:
		i.SetFlags(disk.FlagExtents)
		disk.InitExtents(i.Area(), 0)
	}
	if owner.ACL != (acl.Set{}) {
		err = o.setACL(ino, i, owner.ACL)
	}
	return ino, i, err
}

// clearTable makes an empty image of the block of a new inode, if no other inode in the block is in use and the block is not
// cached. This saves a read from the device.
func (o *op) clearTable(ino uint32, number uint64, at int) error {
	g := o.s.geometry
	if o.s.cache.find(number) != nil {
		return nil
	}
	group, bit := g.InodeGroup(ino)
	d, err := o.s.descriptor(group)
	if err != nil {
		return err
	}
	bits, err := o.s.image(d.InodeBitmap(), disk.Structure{Kind: disk.KindInodeBitmap, Index: group})
	if err != nil {
		return err
	}
	w := o.s.geometry.InodesFrom(ino, at)
	_, first := g.InodeGroup(w.Index)
	end := min(first+uint32(g.BlockSize/g.InodeSize), g.InodesPerGroup)
	if disk.NextSet(bits, first, bit) == bit && disk.NextSet(bits, bit+1, end) == end {
		o.make(number, w)
	}
	return nil
}

// isMetadata reports whether changes to the blocks of a file are journaled.
func (s *FileSystem) isMetadata(i disk.Inode) bool {
	kind := fs.Mode(i.Mode()).Type()
	return kind == fs.Dir || kind == fs.Symlink
}

func setTime(i disk.Inode, f disk.TimeField, t fs.Time) { i.SetNanoseconds(f, int64(t)) }

func timeOf(i disk.Inode, f disk.TimeField) fs.Time { return fs.Time(i.Nanoseconds(f)) }

// attr returns the attributes of an inode for stat(2). It adds them to the cache, unless the device has failed to read the lists.
func (s *FileSystem) attr(ino uint32, i disk.Inode) fs.Attr {
	lists, err := s.acl(i)
	a := fs.Attr{
		Inode: uint64(ino), Mode: fs.Mode(i.Mode()), Links: uint32(i.Links()), UID: i.UID(), GID: i.GID(),
		Size: int64(i.Size() & (1<<63 - 1)), Blocks: int64(i.Sectors(s.geometry)) + s.delayedSectors(ino), BlockSize: int64(s.geometry.BlockSize),
		Access: timeOf(i, disk.AccessTime), Modify: timeOf(i, disk.ModifyTime), Status: timeOf(i, disk.StatusTime), ACL: lists,
	}
	if kind := a.Mode.Type(); kind == fs.CharDevice || kind == fs.BlockDevice {
		a.Device.Major, a.Device.Minor = i.Device()
	}
	if err != nil && err != errDamaged {
		return a
	}
	return s.known.AddAttr(fileKey{Inode: ino, Generation: i.Generation()}, a)
}
