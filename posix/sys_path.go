package posix

import (
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Calls that take a path, and their variants that take a descriptor, such as fchmod(2).

// StatAt implements newfstatat(2), and the common part of statx(2).
func (p *Process) StatAt(dirfd int, path string, flags int) (Stat, Errno) {
	if flags&^(linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH|linux.AT_NO_AUTOMOUNT|linux.AT_STATX_SYNC_TYPE) != 0 {
		return Stat{}, linux.EINVAL
	}
	follow := flags&linux.AT_SYMLINK_NOFOLLOW == 0
	if path == "" && flags&linux.AT_EMPTY_PATH != 0 {
		if dirfd == linux.AT_FDCWD {
			return statOf(p.sight().Dir), 0
		}
		return p.Fstat(dirfd)
	}
	if fd, ok := p.descriptorIn(path); ok && follow {
		st, errno := p.Fstat(fd)
		if errno == linux.EBADF {
			errno = linux.ENOENT
		}
		return st, errno
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return Stat{}, errno
	}
	a, on, err := v.Stat(at, path, follow)
	return Stat{Attr: a, On: on}, file.ToErrno(err)
}

// AccessAt implements faccessat2(2). mode has only the bits R_OK, W_OK and X_OK. Without AT_EACCESS, it checks the real IDs: a
// set-user-ID program asks for the user that has started it.
func (p *Process) AccessAt(dirfd int, path string, mode uint32, flags int) Errno {
	if flags&^(linux.AT_EACCESS|linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return linux.EINVAL
	}
	if real, differs := p.Identity().ForAccess(); differs && p.who != nil && flags&linux.AT_EACCESS == 0 {
		q := *p
		q.SetIdentity(p.who.tid, real, p.who.rest)
		p = &q
	}
	v, place, errno := p.lookup(dirfd, path, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return errno
	}
	return file.ToErrno(v.Access(place, fs.Wish(mode)))
}

// change calls f with the view of p and the directory at which path begins.
func (p *Process) change(dirfd int, path string, f func(v *fs.View, at fs.Place) error) Errno {
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	return file.ToErrno(f(v, at))
}

// MkdirAt implements mkdirat(2).
func (p *Process) MkdirAt(dirfd int, path string, mode uint32) Errno {
	return p.change(dirfd, path, func(v *fs.View, at fs.Place) error { return v.Mkdir(at, path, fs.Mode(mode)) })
}

// MknodAt implements mknodat(2).
func (p *Process) MknodAt(dirfd int, path string, mode uint32, device uint64) Errno {
	d := fs.DeviceOf(device)
	return p.change(dirfd, path, func(v *fs.View, at fs.Place) error { return v.Mknod(at, path, fs.Mode(mode), d) })
}

// UnlinkAt implements unlinkat(2). flags is 0 or AT_REMOVEDIR.
func (p *Process) UnlinkAt(dirfd int, path string, flags int) Errno {
	return p.change(dirfd, path, func(v *fs.View, at fs.Place) error {
		if flags != 0 {
			return v.Rmdir(at, path)
		}
		return v.Unlink(at, path)
	})
}

// RenameAt implements renameat2(2).
func (p *Process) RenameAt(dirfd int, path string, newDirfd int, newPath string, flags uint32) Errno {
	_, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return errno
	}
	return p.change(newDirfd, newPath, func(v *fs.View, newAt fs.Place) error {
		return v.Rename(at, path, newAt, newPath, fs.RenameFlags(flags))
	})
}

// LinkAt implements linkat(2). As on Linux before 6.10, AT_EMPTY_PATH needs CAP_DAC_READ_SEARCH: a descriptor does not suffice to create a
// name.
func (p *Process) LinkAt(dirfd int, path string, newDirfd int, newPath string, flags int) Errno {
	switch {
	case flags&^(linux.AT_SYMLINK_FOLLOW|linux.AT_EMPTY_PATH) != 0:
		return linux.EINVAL
	case flags&linux.AT_EMPTY_PATH != 0 && !p.may(linux.CAP_DAC_READ_SEARCH):
		return linux.ENOENT
	}
	_, old, errno := p.lookup(dirfd, path, flags&linux.AT_SYMLINK_FOLLOW != 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return errno
	}
	return p.change(newDirfd, newPath, func(v *fs.View, newAt fs.Place) error { return v.Link(old, newAt, newPath) })
}

// SymlinkAt implements symlinkat(2).
func (p *Process) SymlinkAt(text string, dirfd int, path string) Errno {
	return p.change(dirfd, path, func(v *fs.View, at fs.Place) error { return v.Symlink(text, at, path) })
}

// ReadlinkAt implements readlinkat(2). It returns the whole target.
func (p *Process) ReadlinkAt(dirfd int, path string) (string, Errno) {
	if fd, ok := p.descriptorIn(path); ok {
		return p.nameOf(fd)
	}
	if path == "" { // an empty path reads the symbolic link that dirfd refers to, opened with O_PATH | O_NOFOLLOW
		_, f, errno := p.tree(dirfd, linux.ENOENT)
		if errno != 0 {
			return "", errno
		}
		link, ok := f.Place().Node.(fs.Link)
		if !ok {
			return "", linux.ENOENT
		}
		text, err := p.sight().TargetOf(link)
		return text, file.ToErrno(err)
	}
	v, at, errno := p.at(dirfd, path)
	if errno != 0 {
		return "", errno
	}
	text, err := v.Readlink(at, path)
	return text, file.ToErrno(err)
}

// ChmodAt implements fchmodat2(2), and fchmodat(2) with flags 0.
func (p *Process) ChmodAt(dirfd int, path string, mode uint32, flags int) Errno {
	if flags&^(linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return linux.EINVAL
	}
	v, place, errno := p.lookup(dirfd, path, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return errno
	}
	return chmod(v, place, mode)
}

func chmod(v *fs.View, place fs.Place, mode uint32) Errno {
	if place.Node.Attr().Mode.Type() == fs.Symlink {
		return linux.EOPNOTSUPP
	}
	return file.ToErrno(v.Change(place, fs.Change{Fields: fs.SetMode, Mode: fs.Mode(mode)}))
}

// Fchmod implements fchmod(2).
func (p *Process) Fchmod(fd int, mode uint32) Errno {
	if place, ok := p.terminalPlace(fd); ok {
		return chmod(p.sight(), place, mode)
	}
	f, errno := p.real(fd, 0)
	if errno == 0 && f == nil {
		errno = file.Chmod(p.fds.Get(fd), &p.sight().Who, fs.Mode(mode))
	}
	if errno != 0 || f == nil {
		return errno
	}
	return chmod(p.sight(), f.Place(), mode)
}

// ChownAt implements fchownat(2). An ID of -1 is left unchanged.
func (p *Process) ChownAt(dirfd int, path string, uid, gid int32, flags int) Errno {
	if flags&^(linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return linux.EINVAL
	}
	v, place, errno := p.lookup(dirfd, path, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0)
	if errno != 0 {
		return errno
	}
	return file.ToErrno(v.Change(place, ownership(uid, gid)))
}

// Fchown implements fchown(2).
func (p *Process) Fchown(fd int, uid, gid int32) Errno {
	if place, ok := p.terminalPlace(fd); ok {
		return file.ToErrno(p.sight().Change(place, ownership(uid, gid)))
	}
	f, errno := p.real(fd, 0)
	if errno != 0 || f == nil {
		return errno
	}
	return file.ToErrno(p.sight().Change(f.Place(), ownership(uid, gid)))
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

// Moment is a timestamp for UtimensAt: the value Time, the current time if Now is set, or no change if Omit is set.
type Moment struct {
	Time fs.Time
	Now  bool // UTIME_NOW
	Omit bool // UTIME_OMIT
}

// UtimensAt implements utimensat(2). With an empty path and no AT_EMPTY_PATH it implements futimens(3) for the descriptor dirfd.
func (p *Process) UtimensAt(dirfd int, path string, access, modify Moment, flags int) Errno {
	if flags&^(linux.AT_SYMLINK_NOFOLLOW|linux.AT_EMPTY_PATH) != 0 {
		return linux.EINVAL
	}
	if access.Omit && modify.Omit {
		return 0
	}
	v, place, errno := p.sight(), fs.Place{}, Errno(0)
	if path == "" && flags&linux.AT_EMPTY_PATH == 0 && dirfd != linux.AT_FDCWD {
		f, errno := p.real(dirfd, 0)
		if errno != 0 || f == nil {
			return errno
		}
		place = f.Place()
	} else if v, place, errno = p.lookup(dirfd, path, flags&linux.AT_SYMLINK_NOFOLLOW == 0, flags&linux.AT_EMPTY_PATH != 0); errno != 0 {
		return errno
	}
	return file.ToErrno(v.Change(place, times(access, modify)))
}

// times converts the arguments of utimensat(2) to a change.
func times(access, modify Moment) fs.Change {
	var c fs.Change
	now := fs.Tick(time.Now())
	at := func(m Moment, field fs.Fields, to *fs.Time) {
		switch {
		case m.Omit:
			return
		case m.Now:
			m.Time = now
			c.Now |= field
		}
		c.Fields |= field
		*to = m.Time
	}
	at(access, fs.SetAccess, &c.Access)
	at(modify, fs.SetModify, &c.Modify)
	return c
}

// Truncate implements truncate(2).
func (p *Process) Truncate(path string, size int64) Errno {
	if size < 0 {
		return linux.EINVAL
	}
	v, place, errno := p.lookup(linux.AT_FDCWD, path, true, false)
	if errno != 0 {
		return errno
	}
	if errno := p.mayExtend(size); errno != 0 {
		return errno
	}
	again, errno := p.endLease(v.Change(place, fs.Change{Fields: fs.SetSize, Size: size}), 0)
	if again {
		return p.Truncate(path, size)
	}
	return errno
}

// Statfs implements statfs(2).
func (p *Process) Statfs(path string) (fs.Usage, Errno) {
	_, place, errno := p.lookup(linux.AT_FDCWD, path, true, false)
	if errno != 0 {
		return fs.Usage{}, errno
	}
	return place.Usage(), 0
}

// Fstatfs implements fstatfs(2). Errors: EBADF; ENOSYS for a file outside any file system.
func (p *Process) Fstatfs(fd int) (fs.Usage, Errno) {
	_, f, errno := p.tree(fd, linux.ENOSYS)
	if errno != 0 {
		return fs.Usage{}, errno
	}
	return f.Place().Usage(), 0
}
