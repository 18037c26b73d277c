package rt

import (
	"syscall"
	"time"
	"unsafe"

	"loam/fs"
	"loam/posix"
)

// Decoders of calls that name files.

// Values of the *at calls that package syscall lacks (fcntl(2)).
const (
	atFDCWD           = -100
	atSymlinkNoFollow = 0x100
	atRemoveDir       = 0x200
)

// pathAt reads a string of the program's, which ends at a NUL. Errors: EFAULT,
// ENAMETOOLONG.
func pathAt(p unsafe.Pointer) (string, syscall.Errno) {
	if p == nil {
		return "", syscall.EFAULT
	}
	for n := range fs.MaxPath { // what lies behind the NUL may not be there
		if *(*byte)(unsafe.Add(p, n)) == 0 {
			return string(bytesAt(p, n)), 0
		}
	}
	return "", syscall.ENAMETOOLONG
}

// withPath calls f with a path of the program's.
func withPath(p unsafe.Pointer, f func(string) syscall.Errno) (uintptr, uintptr) {
	name, errno := pathAt(p)
	if errno == 0 {
		errno = f(name)
	}
	return fail(errno)
}

//go:noinline
func sysOpen(dir int, p unsafe.Pointer, flags int, mode uint32) (uintptr, uintptr) {
	name, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	return result(process.OpenAt(dir, name, flags, mode))
}

//go:noinline
func sysOpenat2(dir int, p, how unsafe.Pointer, size uintptr) (uintptr, uintptr) {
	b, errno := copyIn(how, int(min(size, posix.MaxOpenHow+1)))
	if errno != 0 {
		return fail(errno)
	}
	h, errno := posix.ParseOpenHow(b)
	if errno != 0 {
		return fail(errno)
	}
	name, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	return result(process.OpenAt2(dir, name, h))
}

//go:noinline
func sysAccess(dir int, p unsafe.Pointer, mode uint32, flags int) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.AccessAt(dir, name, mode, flags) })
}

//go:noinline
func sysMkdir(dir int, p unsafe.Pointer, mode uint32) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.MkdirAt(dir, name, mode) })
}

//go:noinline
func sysMknod(dir int, p unsafe.Pointer, mode uint32, device uint64) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.MknodAt(dir, name, mode, device) })
}

//go:noinline
func sysUnlink(dir int, p unsafe.Pointer, flags int) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.UnlinkAt(dir, name, flags) })
}

// withPaths calls f with two paths of the program's.
func withPaths(p, q unsafe.Pointer, f func(a, b string) syscall.Errno) (uintptr, uintptr) {
	a, errno := pathAt(p)
	if errno != 0 {
		return fail(errno)
	}
	return withPath(q, func(b string) syscall.Errno { return f(a, b) })
}

//go:noinline
func sysRename(dir int, p unsafe.Pointer, newDir int, q unsafe.Pointer, flags uint32) (uintptr, uintptr) {
	return withPaths(p, q, func(a, b string) syscall.Errno { return process.RenameAt(dir, a, newDir, b, flags) })
}

//go:noinline
func sysLink(dir int, p unsafe.Pointer, newDir int, q unsafe.Pointer, flags int) (uintptr, uintptr) {
	return withPaths(p, q, func(a, b string) syscall.Errno { return process.LinkAt(dir, a, newDir, b, flags) })
}

//go:noinline
func sysSymlink(text unsafe.Pointer, dir int, p unsafe.Pointer) (uintptr, uintptr) {
	return withPaths(text, p, func(a, b string) syscall.Errno { return process.SymlinkAt(a, dir, b) })
}

//go:noinline
func sysReadlink(dir int, p, to unsafe.Pointer, n int) (uintptr, uintptr) {
	name, errno := pathAt(p)
	switch {
	case errno != 0:
		return fail(errno)
	case n <= 0:
		return fail(syscall.EINVAL)
	case to == nil:
		return fail(syscall.EFAULT)
	}
	text, errno := process.ReadlinkAt(dir, name)
	if errno != 0 {
		return fail(errno)
	}
	return uintptr(copy(bytesAt(to, n), text)), 0
}

//go:noinline
func sysChmod(dir int, p unsafe.Pointer, mode uint32, flags int) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.ChmodAt(dir, name, mode, flags) })
}

//go:noinline
func sysChown(dir int, p unsafe.Pointer, uid, gid int32, flags int) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.ChownAt(dir, name, uid, gid, flags) })
}

// now is what utimensat(2) does without times.
var now = posix.Moment{Now: true}

// sysUtime is utime, whose times have seconds.
//
//go:noinline
func sysUtime(p, times unsafe.Pointer) (uintptr, uintptr) {
	access, modify := now, now
	if times != nil {
		t := (*syscall.Utimbuf)(times)
		access, modify = posix.Moment{Time: seconds(t.Actime)}, posix.Moment{Time: seconds(t.Modtime)}
	}
	return withPath(p, func(name string) syscall.Errno { return process.UtimensAt(atFDCWD, name, access, modify, 0) })
}

func seconds(n int64) fs.Time {
	t := syscall.Timespec{Sec: n}
	return fs.Time(t.Nano())
}

// sysUtimes is utimes and futimesat, whose times have microseconds.
//
//go:noinline
func sysUtimes(dir int, p, times unsafe.Pointer) (uintptr, uintptr) {
	access, modify := now, now
	if times != nil {
		tv := *(*[2]syscall.Timeval)(times)
		for i, m := range [...]*posix.Moment{&access, &modify} {
			if tv[i].Usec < 0 || tv[i].Usec >= 1e6 {
				return fail(syscall.EINVAL)
			}
			*m = posix.Moment{Time: fs.Time(tv[i].Nano())}
		}
	}
	return withPath(p, func(name string) syscall.Errno { return process.UtimensAt(dir, name, access, modify, 0) })
}

// sysUtimens is utimensat; without a path it is futimens(3).
//
//go:noinline
func sysUtimens(dir int, p, times unsafe.Pointer, flags int) (uintptr, uintptr) {
	access, modify := now, now
	if times != nil {
		ts := *(*[2]syscall.Timespec)(times)
		for i, m := range [...]*posix.Moment{&access, &modify} {
			var errno syscall.Errno
			if *m, errno = moment(ts[i]); errno != 0 {
				return fail(errno)
			}
		}
	}
	if p == nil && dir != atFDCWD {
		return fail(process.UtimensAt(dir, "", access, modify, 0))
	}
	return withPath(p, func(name string) syscall.Errno {
		if name == "" && flags == 0 {
			return syscall.ENOENT // posix takes it for futimens
		}
		return process.UtimensAt(dir, name, access, modify, flags)
	})
}

// moment reads a time of utimensat(2).
func moment(ts syscall.Timespec) (posix.Moment, syscall.Errno) {
	const utimeNow, utimeOmit = 1<<30 - 1, 1<<30 - 2
	switch {
	case ts.Nsec == utimeNow:
		return now, 0
	case ts.Nsec == utimeOmit:
		return posix.Moment{Omit: true}, 0
	case ts.Nsec < 0 || ts.Nsec >= int64(time.Second):
		return now, syscall.EINVAL
	}
	return posix.Moment{Time: fs.Time(ts.Nano())}, 0
}

//go:noinline
func sysTruncate(p unsafe.Pointer, size int64) (uintptr, uintptr) {
	return withPath(p, func(name string) syscall.Errno { return process.Truncate(name, size) })
}

//go:noinline
func sysChdir(p unsafe.Pointer) (uintptr, uintptr) { return withPath(p, process.Chdir) }

//go:noinline
func sysChroot(p unsafe.Pointer) (uintptr, uintptr) { return withPath(p, process.Chroot) }

//go:noinline
func sysGetcwd(p unsafe.Pointer, n int) (uintptr, uintptr) {
	dir, errno := process.Getcwd()
	switch {
	case errno != 0:
		return fail(errno)
	case n <= len(dir):
		return fail(syscall.ERANGE)
	case p == nil:
		return fail(syscall.EFAULT)
	}
	to := bytesAt(p, len(dir)+1)
	to[copy(to, dir)] = 0
	return uintptr(len(to)), 0
}

//go:noinline
func sysUmask(mask uint32) (uintptr, uintptr) { return uintptr(process.Umask(mask)), 0 }

//go:noinline
func sysMemfdCreate(name unsafe.Pointer, flags int) (uintptr, uintptr) {
	text, errno := pathAt(name)
	switch errno {
	case 0:
		return result(process.MemfdCreate(text, flags))
	case syscall.ENAMETOOLONG:
		errno = syscall.EINVAL
	}
	return fail(errno)
}
