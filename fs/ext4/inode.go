package ext4

import (
	"math/rand/v2"

	"loam/fs"
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
	if err != nil {
		return 0, nil, err
	}
	b, err := o.edit(number, inodeTable, func([]byte) bool { return true }, nil)
	if err != nil {
		return 0, nil, err
	}
	if !o.has(ino) {
		o.inodes = append(o.inodes, ino)
	}
	i := disk.Inode(b[at : at+g.InodeSize])
	clear(i)
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
	return ino, i, nil
}

// isMetadata reports whether changes to the blocks of a file are journaled.
func (s *FileSystem) isMetadata(i disk.Inode) bool {
	kind := fs.Mode(i.Mode()).Type()
	return kind == fs.Dir || kind == fs.Symlink
}

const second = 1_000_000_000

func setTime(i disk.Inode, f disk.TimeField, t fs.Time) {
	seconds, rest := int64(t)/second, int64(t)%second
	if rest < 0 {
		seconds, rest = seconds-1, rest+second
	}
	i.SetTime(f, seconds, uint32(rest))
}

// timeOf converts a time of an inode to package fs, whose range ends in 2262.
func timeOf(i disk.Inode, f disk.TimeField) fs.Time {
	seconds, rest := i.Time(f)
	const most = 1<<63/second - 1
	return fs.Time(min(seconds, most)*second + int64(rest))
}

// attr returns the attributes of an inode for stat(2).
func (s *FileSystem) attr(ino uint32, i disk.Inode) fs.Attr {
	a := fs.Attr{
		Inode: uint64(ino), Mode: fs.Mode(i.Mode()), Links: uint32(i.Links()), UID: i.UID(), GID: i.GID(),
		Size: int64(i.Size() & (1<<63 - 1)), Blocks: int64(i.Sectors(s.geometry)) + s.delayedSectors(ino), BlockSize: int64(s.geometry.BlockSize),
		Access: timeOf(i, disk.AccessTime), Modify: timeOf(i, disk.ModifyTime), Status: timeOf(i, disk.StatusTime),
	}
	if kind := a.Mode.Type(); kind == fs.CharDevice || kind == fs.BlockDevice {
		a.Device.Major, a.Device.Minor = i.Device()
	}
	return a
}

// entryType returns the file type for a directory entry.
func entryType(mode fs.Mode) uint8 {
	switch mode.Type() {
	case fs.Regular:
		return disk.TypeRegular
	case fs.Dir:
		return disk.TypeDirectory
	case fs.CharDevice:
		return disk.TypeCharDevice
	case fs.BlockDevice:
		return disk.TypeBlockDevice
	case fs.Fifo:
		return disk.TypeFifo
	case fs.Socket:
		return disk.TypeSocket
	case fs.Symlink:
		return disk.TypeSymlink
	}
	return disk.TypeUnknown
}

// entryModes maps the file type of a directory entry to its mode.
var entryModes = [8]fs.Mode{0, fs.Regular, fs.Dir, fs.CharDevice, fs.BlockDevice, fs.Fifo, fs.Socket, fs.Symlink}
