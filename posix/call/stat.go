package call

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
)

// Calls that return properties of files: stat(2), statx(2), statfs(2), and extended attributes.

func (c Caller) stat(dir int, addr, to uint64, flags int) (uint64, linux.Errno) {
	name, errno := c.path(addr)
	if errno != 0 {
		return fail(errno)
	}
	st, errno := c.Process.StatAt(dir, name, flags)
	return c.putStat(to, st, errno)
}

func fstat(c Caller, a Args) (uint64, linux.Errno) {
	st, errno := c.Process.Fstat(fd(a.A1))
	return c.putStat(a.A2, st, errno)
}

func (c Caller) putStat(to uint64, st posix.Stat, errno linux.Errno) (uint64, linux.Errno) {
	if errno != 0 {
		return fail(errno)
	}
	s := linux.Stat{
		Dev: st.On.Number(), Ino: st.Inode, Nlink: uint64(st.Links), Mode: uint32(st.Mode), UID: st.UID, GID: st.GID,
		Rdev: st.Device.Number(), Size: st.Size, Blksize: st.BlockSize, Blocks: st.Blocks,
		Atime: timespecOf(st.Access), Mtime: timespecOf(st.Modify), Ctime: timespecOf(st.Status),
	}
	l := c.borrow(linux.SizeofStat)
	defer l.giveBack()
	s.Put(l.b)
	return fail(c.Memory.Write(to, l.b))
}

func timespecOf(t fs.Time) linux.Timespec { return linux.NanoTimespec(int64(t)) }

func statx(c Caller, a Args) (uint64, linux.Errno) {
	name, errno := c.path(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	if a.A3&linux.AT_STATX_SYNC_TYPE == linux.AT_STATX_SYNC_TYPE || a.A4&linux.STATX__RESERVED != 0 {
		return fail(linux.EINVAL)
	}
	st, errno := c.Process.StatAt(fd(a.A1), name, number(a.A3))
	if errno != 0 {
		return fail(errno)
	}
	s := linux.Statx{
		Mask: linux.STATX_BASIC_STATS, Blksize: uint32(st.BlockSize), Nlink: st.Links, UID: st.UID, GID: st.GID,
		Mode: uint16(st.Mode), Ino: st.Inode, Size: uint64(st.Size), Blocks: uint64(st.Blocks),
		Atime: timespecOf(st.Access), Mtime: timespecOf(st.Modify), Ctime: timespecOf(st.Status),
		RdevMajor: st.Device.Major, RdevMinor: st.Device.Minor, DevMajor: st.On.Major, DevMinor: st.On.Minor,
	}
	l := c.borrow(linux.SizeofStatx)
	defer l.giveBack()
	s.Put(l.b)
	return fail(c.Memory.Write(a.A5, l.b))
}

func statfs(c Caller, a Args) (uint64, linux.Errno) {
	name, errno := c.path(a.A1)
	if errno != 0 {
		return fail(errno)
	}
	u, errno := c.Process.Statfs(name)
	return c.putStatfs(a.A2, u, errno)
}

func fstatfs(c Caller, a Args) (uint64, linux.Errno) {
	u, errno := c.Process.Fstatfs(fd(a.A1))
	return c.putStatfs(a.A2, u, errno)
}

func (c Caller) putStatfs(to uint64, u fs.Usage, errno linux.Errno) (uint64, linux.Errno) {
	if errno != 0 {
		return fail(errno)
	}
	s := linux.Statfs{
		Type: u.Type, Bsize: u.BlockSize, Frsize: u.BlockSize, Namelen: u.MaxNameLength,
		Blocks: u.Blocks, Bfree: u.BlocksFree, Bavail: u.BlocksFree, Files: u.Files, Ffree: u.FilesFree,
	}
	if u.ReadOnly {
		s.Flags |= linux.ST_RDONLY
	}
	for _, x := range [...]struct {
		mount fs.MountFlags
		flag  int64
	}{{fs.NoSetID, linux.ST_NOSUID}, {fs.NoDevices, linux.ST_NODEV}, {fs.NoExecute, linux.ST_NOEXEC}} {
		if u.Mount&x.mount != 0 {
			s.Flags |= x.flag
		}
	}
	return c.put(to, linux.SizeofStatfs, s.Put)
}

// xattrFile reads the file argument of a call on extended attributes. The call's variant determines its
// form: a path, a path whose last symbolic link is not followed, or a descriptor.
type xattrFile func(c Caller, first uint64) (posix.XattrFile, linux.Errno)

func byPath(c Caller, addr uint64) (posix.XattrFile, linux.Errno) {
	name, errno := c.path(addr)
	return posix.XattrFile{Path: name, Follow: true}, errno
}

func byLink(c Caller, addr uint64) (posix.XattrFile, linux.Errno) {
	name, errno := c.path(addr)
	return posix.XattrFile{Path: name}, errno
}

func byDescriptor(c Caller, a uint64) (posix.XattrFile, linux.Errno) {
	return posix.XattrFile{ByFD: true, FD: fd(a)}, c.opened(fd(a))
}

// xattrName reads the name of an attribute. Errors: EFAULT, ERANGE.
func (c Caller) xattrName(addr uint64) (string, linux.Errno) {
	name, errno := c.Memory.String(addr, linux.XATTR_NAME_MAX+1)
	if errno == linux.ENAMETOOLONG || errno == 0 && name == "" {
		errno = linux.ERANGE
	}
	return name, errno
}

func (by xattrFile) set(c Caller, a Args) (uint64, linux.Errno) {
	if a.A5&^(linux.XATTR_CREATE|linux.XATTR_REPLACE) != 0 {
		return fail(linux.EINVAL)
	}
	name, errno := c.xattrName(a.A2)
	switch {
	case errno != 0:
		return fail(errno)
	case a.A4 > linux.XATTR_SIZE_MAX:
		return fail(linux.E2BIG)
	}
	value, errno := c.copyIn(a.A3, int(a.A4))
	if errno != 0 {
		return fail(errno)
	}
	file, errno := by(c, a.A1)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetXattr(file, name, value, number(a.A5)))
}

func (by xattrFile) get(c Caller, a Args) (uint64, linux.Errno) {
	file, errno := by(c, a.A1)
	if errno != 0 {
		return fail(errno)
	}
	name, errno := c.xattrName(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	value, errno := c.Process.GetXattr(file, name)
	return c.putXattr(value, errno, a.A3, a.A4)
}

func (by xattrFile) list(c Caller, a Args) (uint64, linux.Errno) {
	file, errno := by(c, a.A1)
	if errno != 0 {
		return fail(errno)
	}
	list, errno := c.Process.ListXattr(file)
	return c.putXattr(list, errno, a.A2, a.A3)
}

// putXattr stores a value or a list of names at the address to. With size 0, it only returns the length.
func (c Caller) putXattr(b []byte, errno linux.Errno, to, size uint64) (uint64, linux.Errno) {
	switch {
	case errno != 0:
		return fail(errno)
	case size == 0 || len(b) == 0:
		return result(len(b), 0)
	case size < uint64(len(b)):
		return fail(linux.ERANGE)
	}
	return result(len(b), c.Memory.Write(to, b))
}

func (by xattrFile) remove(c Caller, a Args) (uint64, linux.Errno) {
	file, errno := by(c, a.A1)
	if errno != 0 {
		return fail(errno)
	}
	name, errno := c.xattrName(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.RemoveXattr(file, name))
}
