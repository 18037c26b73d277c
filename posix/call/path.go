package call

import (
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
)

// System calls that take a path. A call without a directory argument, such as open(2), uses AT_FDCWD.

// withPath reads a path and calls f with it.
func (c Caller) withPath(addr uint64, f func(string) linux.Errno) (uint64, linux.Errno) {
	name, errno := c.path(addr)
	if errno == 0 {
		errno = f(name)
	}
	return fail(errno)
}

// withPaths reads two paths and calls f with them.
func (c Caller) withPaths(first, second uint64, f func(a, b string) linux.Errno) (uint64, linux.Errno) {
	a, errno := c.path(first)
	if errno != 0 {
		return fail(errno)
	}
	return c.withPath(second, func(b string) linux.Errno { return f(a, b) })
}

func (c Caller) open(dir int, addr uint64, flags int, mode uint32) (uint64, linux.Errno) {
	name, errno := c.path(addr)
	if errno != 0 {
		return fail(errno)
	}
	return result(c.Process.OpenAt(dir, name, flags, mode))
}

func openat2(c Caller, a Args) (uint64, linux.Errno) {
	if a.A4 < linux.SizeofOpenHow {
		return fail(linux.EINVAL)
	}
	b, errno := c.copyIn(a.A3, int(min(a.A4, posix.MaxOpenHow+1)))
	if errno != 0 {
		return fail(errno)
	}
	how, errno := posix.ParseOpenHow(b)
	if errno != 0 {
		return fail(errno)
	}
	name, errno := c.path(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	return result(c.Process.OpenAt2(fd(a.A1), name, how))
}

func (c Caller) access(dir int, addr uint64, mode uint32, flags int) (uint64, linux.Errno) {
	const modes = 7 // R_OK, W_OK and X_OK together
	if mode&^modes != 0 {
		return fail(linux.EINVAL)
	}
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.AccessAt(dir, name, mode, flags) })
}

func (c Caller) mkdir(dir int, addr uint64, mode uint32) (uint64, linux.Errno) {
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.MkdirAt(dir, name, mode) })
}

func (c Caller) mknod(dir int, addr uint64, mode uint32, device uint64) (uint64, linux.Errno) {
	switch mode & linux.S_IFMT {
	case 0, linux.S_IFREG, linux.S_IFCHR, linux.S_IFBLK, linux.S_IFIFO, linux.S_IFSOCK:
	case linux.S_IFDIR:
		return fail(linux.EPERM)
	default:
		return fail(linux.EINVAL)
	}
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.MknodAt(dir, name, mode, device) })
}

func (c Caller) unlink(dir int, addr uint64, flags int) (uint64, linux.Errno) {
	if flags&^linux.AT_REMOVEDIR != 0 {
		return fail(linux.EINVAL)
	}
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.UnlinkAt(dir, name, flags) })
}

func (c Caller) rename(dir int, from uint64, newDir int, to uint64, flags uint32) (uint64, linux.Errno) {
	if flags&^(linux.RENAME_NOREPLACE|linux.RENAME_EXCHANGE|linux.RENAME_WHITEOUT) != 0 {
		return fail(linux.EINVAL)
	}
	return c.withPaths(from, to, func(a, b string) linux.Errno { return c.Process.RenameAt(dir, a, newDir, b, flags) })
}

func (c Caller) link(dir int, from uint64, newDir int, to uint64, flags int) (uint64, linux.Errno) {
	return c.withPaths(from, to, func(a, b string) linux.Errno { return c.Process.LinkAt(dir, a, newDir, b, flags) })
}

func (c Caller) symlink(text uint64, dir int, addr uint64) (uint64, linux.Errno) {
	content, errno := c.path(text)
	switch {
	case errno != 0:
		return fail(errno)
	case content == "":
		return fail(linux.ENOENT)
	}
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.SymlinkAt(content, dir, name) })
}

func (c Caller) readlink(dir int, addr, to uint64, n int) (uint64, linux.Errno) {
	if n <= 0 {
		return fail(linux.EINVAL)
	}
	name, errno := c.path(addr)
	if errno != 0 {
		return fail(errno)
	}
	if name == "" && dir == linux.AT_FDCWD { // the working folder, which is not a link
		return fail(linux.ENOENT)
	}
	text, errno := c.Process.ReadlinkAt(dir, name)
	if errno != 0 {
		return fail(errno)
	}
	text = text[:min(n, len(text))]
	return result(len(text), c.Memory.Write(to, []byte(text)))
}

func (c Caller) chmod(dir int, addr uint64, mode uint32, flags int) (uint64, linux.Errno) {
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.ChmodAt(dir, name, mode, flags) })
}

func (c Caller) chown(dir int, addr uint64, uid, gid int32, flags int) (uint64, linux.Errno) {
	return c.withPath(addr, func(name string) linux.Errno { return c.Process.ChownAt(dir, name, uid, gid, flags) })
}

// now is the default time of utimensat(2).
var now = posix.Moment{Now: true}

// utime implements utime(2), with times in seconds.
func utime(c Caller, a Args) (uint64, linux.Errno) {
	access, modify := now, now
	if a.A2 != 0 {
		t, errno := parse(c, a.A2, linux.SizeofUtimbuf, linux.ParseUtimbuf)
		if errno != 0 {
			return fail(errno)
		}
		access, modify = seconds(t.Actime), seconds(t.Modtime)
	}
	return c.withPath(a.A1, func(name string) linux.Errno {
		return c.Process.UtimensAt(linux.AT_FDCWD, name, access, modify, 0)
	})
}

func seconds(n int64) posix.Moment {
	return posix.Moment{Time: fs.Time(linux.Timespec{Sec: n}.Nano())}
}

// utimes implements utimes(2) and futimesat(2), with times in microseconds.
func (c Caller) utimes(dir int, addr, times uint64) (uint64, linux.Errno) {
	access, modify := now, now
	if times != 0 {
		b, errno := c.copyIn(times, 2*linux.SizeofTimeval)
		if errno != 0 {
			return fail(errno)
		}
		for i, m := range [...]*posix.Moment{&access, &modify} {
			t := linux.ParseTimeval(b[i*linux.SizeofTimeval:])
			if t.Usec < 0 || t.Usec >= 1e6 {
				return fail(linux.EINVAL)
			}
			*m = posix.Moment{Time: fs.Time(t.Nano())}
		}
	}
	if addr == 0 && dir != linux.AT_FDCWD {
		return fail(c.Process.UtimensAt(dir, "", access, modify, 0))
	}
	return c.withPath(addr, func(name string) linux.Errno {
		if name == "" {
			return linux.ENOENT
		}
		return c.Process.UtimensAt(dir, name, access, modify, 0)
	})
}

// utimensat implements utimensat(2); without a path it is futimens(3).
func utimensat(c Caller, a Args) (uint64, linux.Errno) {
	access, modify := now, now
	if a.A3 != 0 {
		b, errno := c.copyIn(a.A3, 2*linux.SizeofTimespec)
		if errno != 0 {
			return fail(errno)
		}
		for i, m := range [...]*posix.Moment{&access, &modify} {
			if *m, errno = moment(linux.ParseTimespec(b[i*linux.SizeofTimespec:])); errno != 0 {
				return fail(errno)
			}
		}
	}
	dir, flags := fd(a.A1), number(a.A4)
	if a.A2 == 0 && dir != linux.AT_FDCWD {
		return fail(c.Process.UtimensAt(dir, "", access, modify, 0))
	}
	return c.withPath(a.A2, func(name string) linux.Errno {
		if name == "" && flags == 0 {
			return linux.ENOENT // without this check, UtimensAt would change the file of dir, as futimens(3) does
		}
		return c.Process.UtimensAt(dir, name, access, modify, flags)
	})
}

// moment converts a time of utimensat(2). Errors: EINVAL.
func moment(t linux.Timespec) (posix.Moment, linux.Errno) {
	switch {
	case t.Nsec == linux.UTIME_NOW:
		return now, 0
	case t.Nsec == linux.UTIME_OMIT:
		return posix.Moment{Omit: true}, 0
	case t.Nsec < 0 || t.Nsec >= int64(time.Second):
		return now, linux.EINVAL
	}
	return posix.Moment{Time: fs.Time(t.Nano())}, 0
}

func getcwd(c Caller, a Args) (uint64, linux.Errno) {
	dir, errno := c.Process.Getcwd()
	switch {
	case errno != 0:
		return fail(errno)
	case a.A2 <= uint64(len(dir)):
		return fail(linux.ERANGE)
	}
	return result(len(dir)+1, c.Memory.Write(a.A1, append([]byte(dir), 0)))
}

// memfdHuge is MFD_HUGETLB, which package posix rejects.
const memfdHuge = 4

// memfdNameMax is the maximum length of a name of memfd_create(2), in bytes.
const memfdNameMax = linux.NAME_MAX - len("memfd:")

func memfdCreate(c Caller, a Args) (uint64, linux.Errno) {
	const lowest = 26 // MFD_HUGE_SHIFT: this and higher bits encode the size of huge pages
	if a.A2&(1<<lowest-1)&^(linux.MFD_CLOEXEC|linux.MFD_ALLOW_SEALING|memfdHuge) != 0 {
		return fail(linux.EINVAL)
	}
	name, errno := c.Memory.String(a.A1, memfdNameMax+1)
	switch errno {
	case 0:
		return result(c.Process.MemfdCreate(name, number(a.A2)))
	case linux.ENAMETOOLONG:
		errno = linux.EINVAL
	}
	return fail(errno)
}

func inotifyAddWatch(c Caller, a Args) (uint64, linux.Errno) {
	const bits = 0xf700_efff // all events and flags of inotify(7)
	if mask := uint32(a.A3); mask == 0 || mask&^bits != 0 {
		return fail(linux.EINVAL)
	}
	name, errno := c.path(a.A2)
	if errno != 0 {
		return fail(errno)
	}
	return result(c.Process.InotifyAddWatch(fd(a.A1), name, uint32(a.A3)))
}
