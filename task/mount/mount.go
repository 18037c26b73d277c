// Package mount implements the calls by which Linux programs mount file systems: mount(2) and umount2(2) in this file, and the family of
// fsopen(2). context.go has file systems that are being configured, and detached.go the calls on mounts that are not attached yet.
//
// New file systems are of type tmpfs; proc, sysfs, cgroup2 and devpts are mounted again.
package mount

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/mem"
	"loam/posix"
	"loam/posix/call"
	"loam/posix/file"
)

// Calls maps the numbers of system calls to functions.
var Calls = map[int]call.Serve{
	linux.SYS_MOUNT: serveMount,
	linux.SYS_UMOUNT2: func(c call.Caller, a call.Args) (uint64, linux.Errno) {
		target, errno := c.Memory.String(a.A1, fs.MaxPath)
		if errno == 0 {
			errno = unmount(c.Process, target, number(a.A2))
		}
		return 0, errno
	},
	linux.SYS_FSOPEN:        fsopen,
	linux.SYS_FSPICK:        fspick,
	linux.SYS_FSCONFIG:      fsconfig,
	linux.SYS_FSMOUNT:       fsmount,
	linux.SYS_MOVE_MOUNT:    moveMount,
	linux.SYS_OPEN_TREE:     openTree,
	linux.SYS_MOUNT_SETATTR: setAttributes,
}

// number returns the int in the lower half of a register.
func number(a uint64) int { return int(int32(a)) }

// result returns the result of a call whose error is errno.
func result(n int, errno linux.Errno) (uint64, linux.Errno) { return uint64(n), errno }

// serveMount implements mount(2). The options of a file system are at most a page.
func serveMount(c call.Caller, a call.Args) (uint64, linux.Errno) {
	var texts [4]string // source, target, type, options; all but the target may be missing
	for i, addr := range [...]uint64{a.A1, a.A2, a.A3, a.A5} {
		if addr == 0 && i != 1 {
			continue
		}
		var errno linux.Errno
		if texts[i], errno = c.Memory.String(addr, mem.PageSize); errno != 0 {
			return 0, errno
		}
	}
	return 0, mount(c.Process, texts[0], texts[1], texts[2], a.A4, texts[3])
}

// mount mounts a file system, or changes a mount. Errors: those of paths; EPERM, EINVAL, ENODEV for another type, ENOTDIR.
func mount(p *posix.Process, source, target, kind string, flags uint64, data string) linux.Errno {
	const propagation = linux.MS_SHARED | linux.MS_PRIVATE | linux.MS_SLAVE | linux.MS_UNBINDABLE
	v, at, errno := p.Find(linux.AT_FDCWD, target, true, false)
	switch {
	case errno != 0:
		return errno
	case !p.May(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	}
	if flags&linux.MS_MGC_MSK == linux.MS_MGC_VAL {
		flags &^= linux.MS_MGC_MSK
	}
	about := fs.Mounted{Source: source, Kind: kind, Flags: mountFlags(flags), Path: pathOf(v, at, target)}
	switch {
	case flags&linux.MS_REMOUNT != 0:
		err := v.Tree.Remount(at, about.Flags)
		if err == nil && flags&linux.MS_BIND == 0 {
			err = v.Tree.SetReadOnly(at, flags&linux.MS_RDONLY != 0)
		}
		return file.ToErrno(err)
	case flags&(linux.MS_BIND|linux.MS_MOVE) != 0:
		return fromPlace(p, about, at, flags&linux.MS_BIND != 0)
	case flags&propagation != 0: // without namespaces, no mount is propagated
		return 0
	case kind == "":
		return linux.EINVAL
	}
	place, errno := newMount(p, v.Tree, about, data)
	if errno != 0 {
		return errno
	}
	if !isShared(kind) {
		v.Tree.SetReadOnly(place, flags&linux.MS_RDONLY != 0)
	}
	return attach(v.Tree, place, at, about.Path)
}

// attach attaches a detached mount. Errors: ENOTDIR if it is not of the same type as the place.
func attach(t *fs.Tree, mount, at fs.Place, path string) linux.Errno {
	if at.Node.Attr().Mode.Type() != fs.Dir {
		return linux.ENOTDIR
	}
	return file.ToErrno(t.Move(mount, at, path))
}

// fromPlace implements MS_BIND and MS_MOVE: about.Source is the path of a file or directory. Errors: those of paths, ENOTDIR, EINVAL, ELOOP.
func fromPlace(p *posix.Process, about fs.Mounted, at fs.Place, bind bool) linux.Errno {
	v, from, errno := p.Find(linux.AT_FDCWD, about.Source, true, false)
	switch {
	case errno != 0:
		return errno
	case bind:
		about.Kind = "none"
		return file.ToErrno(v.Tree.Bind(about, from, at))
	}
	return file.ToErrno(v.Tree.Move(from, at, about.Path))
}

// pathOf returns the absolute path of a directory, which does not depend on the root of the caller, or the path by which a
// file was found.
func pathOf(v *fs.View, at fs.Place, found string) string {
	if path, err := v.Whole().Path(at); err == nil {
		return path
	}
	return found
}

// mountFlags converts flags of mount(2). MOUNT_ATTR_RDONLY and the other attributes of fsmount(2) have the same values.
func mountFlags(flags uint64) (f fs.MountFlags) {
	for _, x := range [...]struct {
		flag uint64
		is   fs.MountFlags
	}{
		{linux.MS_RDONLY, fs.ReadOnlyMount}, {linux.MS_NOEXEC, fs.NoExecute}, {linux.MS_NOSUID, fs.NoSetID}, {linux.MS_NODEV, fs.NoDevices},
	} {
		if flags&x.flag != 0 {
			f |= x.is
		}
	}
	return f
}

// isMemory reports whether a type is a file system in memory.
func isMemory(kind string) bool { return kind == "tmpfs" || kind == "ramfs" }

// isShared reports whether all mounts of a type are read-only together, as they are the same file system. Each mount of proc and devpts
// is a file system of its own for this, although all mounts show the same files.
func isShared(kind string) bool { return kind == "sysfs" || kind == "cgroup2" }

// newMount returns the root of a new, detached mount of a file system of type about.Kind. Errors: ENODEV, EINVAL for a wrong option.
func newMount(p *posix.Process, t *fs.Tree, about fs.Mounted, data string) (fs.Place, linux.Errno) {
	if !isMemory(about.Kind) {
		at, err := t.DetachedSingle(about, isShared(about.Kind))
		return at, file.ToErrno(err)
	}
	c, owner, ok := memfs.ParseOptions(data)
	if !ok {
		return fs.Place{}, linux.EINVAL
	}
	f := p.NewMemory(c)
	if owner.Fields != 0 {
		f.Root().Change(owner)
	}
	return t.Detached(about, f), 0
}

// unmount does not check whether files are open, as with MNT_DETACH. Errors: those of paths; EPERM, EINVAL, EBUSY.
func unmount(p *posix.Process, target string, flags int) linux.Errno {
	const known = linux.MNT_FORCE | linux.MNT_DETACH | linux.MNT_EXPIRE | linux.UMOUNT_NOFOLLOW
	if flags&^known != 0 {
		return linux.EINVAL
	}
	v, at, errno := p.Find(linux.AT_FDCWD, target, flags&linux.UMOUNT_NOFOLLOW == 0, false)
	switch {
	case errno != 0:
		return errno
	case !p.May(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	case flags&linux.MNT_EXPIRE != 0:
		return linux.EINVAL
	}
	return file.ToErrno(v.Tree.Unmount(at))
}
