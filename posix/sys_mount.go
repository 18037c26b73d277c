package posix

import (
	"strconv"
	"strings"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/posix/file"
)

// Mount implements mount(2) for a caller that may mount. Processes share their mounts, except after CopyMounts. New file systems are of
// type tmpfs; proc, sysfs and devpts are mounted again. Errors: those of paths; EPERM, EINVAL, ENODEV for another type, ENOTDIR.
func (p *Process) Mount(source, target, kind string, flags uint64, data string) Errno {
	const propagation = linux.MS_SHARED | linux.MS_PRIVATE | linux.MS_SLAVE | linux.MS_UNBINDABLE
	v, at, errno := p.lookup(linux.AT_FDCWD, target, true, false)
	switch {
	case errno != 0:
		return errno
	case !p.may(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	}
	if flags&linux.MS_MGC_MSK == linux.MS_MGC_VAL {
		flags &^= linux.MS_MGC_MSK
	}
	about := fs.Mounted{Source: source, Kind: kind, Flags: mountFlags(flags)}
	about.Path = target // of a file; the path of a directory is made absolute
	if path, err := v.Path(at); err == nil {
		about.Path = path
	}
	switch {
	case flags&linux.MS_REMOUNT != 0:
		return file.ToErrno(v.Tree.Remount(at, about.Flags))
	case flags&linux.MS_BIND != 0:
		_, from, errno := p.lookup(linux.AT_FDCWD, source, true, false)
		if errno != 0 {
			return errno
		}
		about.Kind = "none"
		return file.ToErrno(v.Tree.Bind(about, from, at))
	case flags&propagation != 0: // without namespaces, no mount is propagated
		return 0
	case flags&linux.MS_MOVE != 0, kind == "":
		return linux.EINVAL
	}
	return p.mountNew(v, about, at, data)
}

// mountFlags converts flags of mount(2).
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

// places are the mount points of file systems that are mounted again, by type.
var places = map[string]string{"proc": "/proc", "sysfs": "/sys", "devpts": "/dev/pts"}

// mountNew mounts a file system of type about.Kind.
func (p *Process) mountNew(v *fs.View, about fs.Mounted, at fs.Place, data string) Errno {
	if path, ok := places[about.Kind]; ok {
		from, err := v.Lookup(v.Tree.Root(), path, true)
		if err == nil {
			err = v.Tree.Again(about, from, at)
		}
		return file.ToErrno(err)
	}
	if about.Kind != "tmpfs" && about.Kind != "ramfs" {
		return linux.ENODEV
	}
	c, owner, ok := memoryOptions(data)
	if !ok {
		return linux.EINVAL
	}
	f := p.newMemory(c)
	if owner.Fields != 0 {
		f.Root().Change(owner)
	}
	return file.ToErrno(v.Tree.Attach(about, f, at))
}

// memoryOptions reads the options of tmpfs(5): size, nr_inodes, mode, uid and gid. ok is false if an option is not known.
func memoryOptions(text string) (c memfs.Config, owner fs.Change, ok bool) {
	c.Mode = 0o777 | fs.Sticky
	for option := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(option, "=")
		base := 10
		if name == "mode" {
			base = 8
		}
		n, err := strconv.ParseInt(value, base, 64)
		switch name {
		case "":
			continue
		case "size":
			n, err = sizeOption(value)
			c.Bytes = n
		case "nr_inodes":
			c.Files = n
		case "mode":
			c.Mode = fs.Mode(n) & 0o7777
		case "uid":
			owner.Fields |= fs.SetOwner
			owner.UID = uint32(n)
		case "gid":
			owner.Fields |= fs.SetGroup
			owner.GID = uint32(n)
		default:
			return c, owner, false
		}
		if err != nil || n < 0 {
			return c, owner, false
		}
	}
	return c, owner, true
}

// sizeOption reads a number of bytes with a suffix of k, m or g. A percentage means no limit of its own.
func sizeOption(text string) (int64, error) {
	if strings.HasSuffix(text, "%") {
		return 0, nil
	}
	shift := 0
	if i := strings.IndexAny(text, "kKmMgG"); i > 0 && i == len(text)-1 {
		shift = map[byte]int{'k': 10, 'm': 20, 'g': 30}[text[i]|0x20]
		text = text[:i]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n << shift, err
}

// newMemory returns a file system in memory.
func (p *Process) newMemory(c memfs.Config) *memfs.FileSystem {
	if p.System.newMemoryFS == nil {
		return memfs.New(c)
	}
	return p.System.newMemoryFS(c)
}

// Mounted returns the mounts that processes have made.
func (p *Process) Mounted() []fs.Mounted { return p.sight().Tree.Mounted() }

// Unmount implements umount2(2) for a caller that may mount. It does not check whether files are open, as with MNT_DETACH.
// Errors: those of paths; EPERM, EINVAL, EBUSY.
func (p *Process) Unmount(target string, flags int) Errno {
	const known = linux.MNT_FORCE | linux.MNT_DETACH | linux.MNT_EXPIRE | linux.UMOUNT_NOFOLLOW
	if flags&^known != 0 {
		return linux.EINVAL
	}
	v, at, errno := p.lookup(linux.AT_FDCWD, target, flags&linux.UMOUNT_NOFOLLOW == 0, false)
	switch {
	case errno != 0:
		return errno
	case !p.may(linux.CAP_SYS_ADMIN):
		return linux.EPERM
	case flags&linux.MNT_EXPIRE != 0:
		return linux.EINVAL
	}
	return file.ToErrno(v.Tree.Unmount(at))
}

// CopyMounts gives the process mounts of its own (CLONE_NEWNS).
func (p *Process) CopyMounts() {
	p.look(func(v *fs.View) {
		tree, moved := v.Tree.Copy()
		v.Tree, v.Root, v.Dir = tree, moved(v.Root), moved(v.Dir)
	})
}
