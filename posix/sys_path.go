package posix

import (
	"syscall"
	"time"

	"loam/fs"
)

// Calls that take paths, and their kin that take a descriptor.

// StatAt is newfstatat(2), and statx(2) as far as they are the same.
func (p *Process) StatAt(dirfd int, path string, flags int) (Stat, Errno) {
	if flags&^(atSymlinkNoFollow|atEmptyPath|atNoAutomount|atStatxSync) != 0 {
		return Stat{}, syscall.EINVAL
	}
	follow := flags&atSymlinkNoFollow == 0
	if path == "" && flags&atEmptyPath != 0 && dirfd != atFDCWD {
		return p.Fstat(dirfd)
	}
	if fd, ok := p.descriptorIn(path); ok && follow {
		st, errno := p.Fstat(fd)
		if errno == syscall.EBADF {
			errno = syscall.ENOENT
		}
		return st, errno
	}
	_, place, errno := p.lookup(dirfd, path, follow, flags&atEmptyPath != 0)
	if errno != 0 {
		return Stat{}, errno
	}
	return statOf(place), 0
}

// AccessAt is faccessat2(2). Real and effective IDs are the same here.
func (p *Process) AccessAt(dirfd int, path string, mode uint32, flags int) Errno {
	if mode&^7 != 0 || flags&^(atEaccess|atSymlinkNoFollow|atEmptyPath) != 0 {
		return syscall.EINVAL
	}
	v, place, errno := p.lookup(dirfd, path, flags&atSymlinkNoFollow == 0, flags&atEmptyPath != 0)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Access(place, fs.Wish(mode)))
}

// MkdirAt is mkdirat(2).
func (p *Process) MkdirAt(dirfd int, path string, mode uint32) Errno {
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Mkdir(at, path, fs.Mode(mode)))
}

// MknodAt is mknodat(2).
func (p *Process) MknodAt(dirfd int, path string, mode uint32, device uint64) Errno {
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Mknod(at, path, fs.Mode(mode), fs.DeviceOf(device)))
}

// UnlinkAt is unlinkat(2).
func (p *Process) UnlinkAt(dirfd int, path string, flags int) Errno {
	if flags&^atRemoveDir != 0 {
		return syscall.EINVAL
	}
	v, at, errno := p.at(dirfd, path)
	switch {
	case errno != 0:
		return errno
	case flags != 0:
		return toErrno(v.Rmdir(at, path))
	}
	return toErrno(v.Unlink(at, path))
}

// RenameAt is renameat2(2).
func (p *Process) RenameAt(dirfd int, path string, newDirfd int, newPath string, flags uint32) Errno {
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	_, newAt, errno := p.at(newDirfd, newPath)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Rename(at, path, newAt, newPath, fs.RenameFlags(flags)))
}

// LinkAt is linkat(2).
func (p *Process) LinkAt(dirfd int, path string, newDirfd int, newPath string, flags int) Errno {
	if flags&^(atSymlinkFollow|atEmptyPath) != 0 {
		return syscall.EINVAL
	}
	v, old, errno := p.lookup(dirfd, path, flags&atSymlinkFollow != 0, flags&atEmptyPath != 0)
	if errno != 0 {
		return errno
	}
	_, newAt, errno := p.at(newDirfd, newPath)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Link(old, newAt, newPath))
}

// SymlinkAt is symlinkat(2).
func (p *Process) SymlinkAt(text string, dirfd int, path string) Errno {
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Symlink(text, at, path))
}

// ReadlinkAt is readlinkat(2), with the whole text.
func (p *Process) ReadlinkAt(dirfd int, path string) (string, Errno) {
	if fd, ok := p.descriptorIn(path); ok {
		return p.nameOf(fd)
	}
	if path == "" { // the link that was opened with O_PATH | O_NOFOLLOW
		_, f, errno := p.tree(dirfd, syscall.ENOENT)
		if errno != 0 {
			return "", errno
		}
		link, ok := f.Place().Node.(fs.Link)
		if !ok {
			return "", syscall.ENOENT
		}
		text, err := link.Target()
		return text, toErrno(err)
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return "", errno
	}
	text, err := v.Readlink(at, path)
	return text, toErrno(err)
}

// ChmodAt is fchmodat2(2), and fchmodat(2) with flags 0.
func (p *Process) ChmodAt(dirfd int, path string, mode uint32, flags int) Errno {
	if flags&^(atSymlinkNoFollow|atEmptyPath) != 0 {
		return syscall.EINVAL
	}
	v, place, errno := p.lookup(dirfd, path, flags&atSymlinkNoFollow == 0, flags&atEmptyPath != 0)
	if errno != 0 {
		return errno
	}
	return chmod(v, place, mode)
}

func chmod(v *fs.View, place fs.Place, mode uint32) Errno {
	if place.Node.Attr().Mode.Type() == fs.Symlink {
		return syscall.EOPNOTSUPP
	}
	return toErrno(v.Change(place, fs.Change{Fields: fs.SetMode, Mode: fs.Mode(mode)}, false))
}

// Fchmod is fchmod(2).
func (p *Process) Fchmod(fd int, mode uint32) Errno {
	f, errno := p.real(fd, 0)
	if errno != 0 || f == nil { // of a socket or a pipe nobody looks at it
		return errno
	}
	return chmod(p.view.Load(), f.Place(), mode)
}

// ChownAt is fchownat(2). An ID of -1 stays as it is.
func (p *Process) ChownAt(dirfd int, path string, uid, gid int32, flags int) Errno {
	if flags&^(atSymlinkNoFollow|atEmptyPath) != 0 {
		return syscall.EINVAL
	}
	v, place, errno := p.lookup(dirfd, path, flags&atSymlinkNoFollow == 0, flags&atEmptyPath != 0)
	if errno != 0 {
		return errno
	}
	return toErrno(v.Change(place, ownership(uid, gid), false))
}

// Fchown is fchown(2).
func (p *Process) Fchown(fd int, uid, gid int32) Errno {
	f, errno := p.real(fd, 0)
	if errno != 0 || f == nil {
		return errno
	}
	return toErrno(p.view.Load().Change(f.Place(), ownership(uid, gid), false))
}

func ownership(uid, gid int32) fs.Change {
	c := fs.Change{UID: uint32(uid), GID: uint32(gid)}
	if uid != -1 {
		c.Fields |= fs.SetOwner
	}
	if gid != -1 {
		c.Fields |= fs.SetGroup
	}
	return c
}

// Moment is a time to set by UtimensAt: a Time, or one of the two that follow.
type Moment struct {
	Time fs.Time
	Now  bool // UTIME_NOW
	Omit bool // UTIME_OMIT
}

// UtimensAt is utimensat(2); with an empty path it is futimens(3), whose
// descriptor is dirfd.
func (p *Process) UtimensAt(dirfd int, path string, access, modify Moment, flags int) Errno {
	if flags&^(atSymlinkNoFollow|atEmptyPath) != 0 {
		return syscall.EINVAL
	}
	if access.Omit && modify.Omit {
		return 0
	}
	var v *fs.View
	var place fs.Place
	var errno Errno
	if path == "" && flags&atEmptyPath == 0 && dirfd != atFDCWD {
		f, errno := p.real(dirfd, 0)
		if errno != 0 || f == nil {
			return errno
		}
		v, place = p.view.Load(), f.Place()
	} else if v, place, errno = p.lookup(dirfd, path, flags&atSymlinkNoFollow == 0, flags&atEmptyPath != 0); errno != 0 {
		return errno
	}
	return toErrno(v.Change(place, times(access, modify), access.Now && modify.Now))
}

func times(access, modify Moment) fs.Change {
	var c fs.Change
	now := fs.Time(time.Now().UnixNano())
	at := func(m Moment, field fs.Fields, to *fs.Time) {
		switch {
		case m.Omit:
			return
		case m.Now:
			m.Time = now
		}
		c.Fields |= field
		*to = m.Time
	}
	at(access, fs.SetAccess, &c.Access)
	at(modify, fs.SetModify, &c.Modify)
	return c
}

// Truncate is truncate(2).
func (p *Process) Truncate(path string, size int64) Errno {
	v, place, errno := p.lookup(atFDCWD, path, true, false)
	switch {
	case errno != 0:
		return errno
	case size < 0:
		return syscall.EINVAL
	}
	return toErrno(v.Change(place, fs.Change{Fields: fs.SetSize, Size: size}, false))
}

// Statfs is statfs(2).
func (p *Process) Statfs(path string) (fs.Usage, Errno) {
	_, place, errno := p.lookup(atFDCWD, path, true, false)
	if errno != 0 {
		return fs.Usage{}, errno
	}
	return place.Usage(), 0
}

// Fstatfs is fstatfs(2). Errors: EBADF; ENOSYS for what is on no file system.
func (p *Process) Fstatfs(fd int) (fs.Usage, Errno) {
	_, f, errno := p.tree(fd, syscall.ENOSYS)
	if errno != 0 {
		return fs.Usage{}, errno
	}
	return f.Place().Usage(), 0
}
