package mount

import (
	"encoding/binary"
	"math/bits"

	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/posix/call"
	"loam/posix/file"
)

// attributes are the known attributes of a mount. Attributes about access times and symbolic links have no effect.
const attributes = linux.MOUNT_ATTR_RDONLY | linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV | linux.MOUNT_ATTR_NOEXEC |
	linux.MOUNT_ATTR__ATIME | linux.MOUNT_ATTR_NODIRATIME | linux.MOUNT_ATTR_NOSYMFOLLOW

// validAttributes reports whether all attributes are known, and those about access times do not contradict each other.
func validAttributes(a uint64) bool {
	times := a & linux.MOUNT_ATTR__ATIME
	return a&^attributes == 0 && (times == 0 || times == linux.MOUNT_ATTR_NOATIME || times == linux.MOUNT_ATTR_STRICTATIME)
}

// fsmount implements fsmount(2). Errors: EPERM, EINVAL, EBADF, EBUSY.
func fsmount(c call.Caller, a call.Args) (uint64, linux.Errno) {
	switch {
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	case number(a.A2)&^linux.FSMOUNT_CLOEXEC != 0, !validAttributes(uint64(uint32(a.A3))):
		return 0, linux.EINVAL
	}
	x, errno := contextOf(c, a.A1)
	if errno != 0 {
		return 0, errno
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.root == fs.Place{}:
		return 0, linux.EINVAL
	case x.phase != created:
		return 0, linux.EBUSY
	}
	c.Process.View().Tree.SetFlags(x.root, false, func(f fs.MountFlags) fs.MountFlags { return f | mountFlags(a.A3) })
	x.phase = changing
	return result(c.Process.InstallPlace(x.root, fs.PathOnly, number(a.A2)&linux.FSMOUNT_CLOEXEC != 0))
}

// moveMount implements move_mount(2). Errors: EPERM, EINVAL, ELOOP, those of paths.
func moveMount(c call.Caller, a call.Args) (uint64, linux.Errno) {
	const known = linux.MOVE_MOUNT_F_SYMLINKS | linux.MOVE_MOUNT_F_AUTOMOUNTS | linux.MOVE_MOUNT_F_EMPTY_PATH |
		linux.MOVE_MOUNT_T_SYMLINKS | linux.MOVE_MOUNT_T_AUTOMOUNTS | linux.MOVE_MOUNT_T_EMPTY_PATH
	flags := number(a.A5)
	switch {
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	case flags&^known != 0: // MOVE_MOUNT_SET_GROUP is about groups of mounts, which do not exist
		return 0, linux.EINVAL
	}
	_, from, errno := find(c, a.A1, a.A2, flags&linux.MOVE_MOUNT_F_SYMLINKS != 0, flags&linux.MOVE_MOUNT_F_EMPTY_PATH != 0)
	if errno != 0 {
		return 0, errno
	}
	v, at, errno := find(c, a.A3, a.A4, flags&linux.MOVE_MOUNT_T_SYMLINKS != 0, flags&linux.MOVE_MOUNT_T_EMPTY_PATH != 0)
	if errno != 0 {
		return 0, errno
	}
	path, _ := c.Memory.String(a.A4, fs.MaxPath)
	return 0, file.ToErrno(v.Tree.Move(from, at, pathOf(v, at, path)))
}

// openTree implements open_tree(2). Mounts below the file are not visible in the copy. Errors: EINVAL, EPERM, those of paths.
func openTree(c call.Caller, a call.Args) (uint64, linux.Errno) {
	const known = linux.AT_EMPTY_PATH | linux.AT_NO_AUTOMOUNT | linux.AT_RECURSIVE | linux.AT_SYMLINK_NOFOLLOW |
		linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC
	flags := number(a.A3)
	clone := flags&linux.OPEN_TREE_CLONE != 0
	switch {
	case flags&^known != 0, flags&linux.AT_RECURSIVE != 0 && !clone:
		return 0, linux.EINVAL
	case clone && !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	}
	v, at, errno := find(c, a.A1, a.A2, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return 0, errno
	}
	if clone {
		var err error
		if at, err = v.Tree.DetachedBind(fs.Mounted{Source: pathOf(v, at, ""), Kind: "none"}, at); err != nil {
			return 0, file.ToErrno(err)
		}
	}
	return result(c.Process.InstallPlace(at, fs.PathOnly, flags&linux.OPEN_TREE_CLOEXEC != 0))
}

// setAttributes implements mount_setattr(2). Errors: EINVAL, E2BIG, EPERM, EFAULT, those of paths.
func setAttributes(c call.Caller, a call.Args) (uint64, linux.Errno) {
	const known = linux.AT_EMPTY_PATH | linux.AT_NO_AUTOMOUNT | linux.AT_RECURSIVE | linux.AT_SYMLINK_NOFOLLOW
	flags := number(a.A3)
	switch {
	case flags&^known != 0, a.A5 < linux.MOUNT_ATTR_SIZE_VER0:
		return 0, linux.EINVAL
	case a.A5 > mem.PageSize:
		return 0, linux.E2BIG
	case !c.Process.May(linux.CAP_SYS_ADMIN):
		return 0, linux.EPERM
	}
	set, clear, errno := readAttributes(c, a.A4, int(a.A5))
	if errno != 0 {
		return 0, errno
	}
	v, at, errno := find(c, a.A1, a.A2, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return 0, errno
	}
	return 0, file.ToErrno(v.Tree.SetFlags(at, flags&linux.AT_RECURSIVE != 0, func(f fs.MountFlags) fs.MountFlags {
		return f&^mountFlags(clear) | mountFlags(set)
	}))
}

// readAttributes reads a struct mount_attr. Errors: EFAULT, EINVAL, E2BIG if bytes beyond the known ones are not zero.
func readAttributes(c call.Caller, addr uint64, size int) (set, clear uint64, errno linux.Errno) {
	const propagation = linux.MS_SHARED | linux.MS_PRIVATE | linux.MS_SLAVE | linux.MS_UNBINDABLE
	b := make([]byte, size)
	if errno := c.Memory.Read(b, addr); errno != 0 {
		return 0, 0, errno
	}
	for _, x := range b[linux.MOUNT_ATTR_SIZE_VER0:] {
		if x != 0 {
			return 0, 0, linux.E2BIG
		}
	}
	set, clear = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	kind := binary.LittleEndian.Uint64(b[16:])
	times := clear & linux.MOUNT_ATTR__ATIME
	switch {
	case kind&^propagation != 0, bits.OnesCount64(kind) > 1,
		!validAttributes(set), clear&^attributes != 0,
		times != 0 && times != linux.MOUNT_ATTR__ATIME, times == 0 && set&linux.MOUNT_ATTR__ATIME != 0:
		return 0, 0, linux.EINVAL
	}
	return set, clear, 0
}
