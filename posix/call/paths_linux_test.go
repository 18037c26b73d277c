package call

import (
	"strings"
	"testing"

	"loam/abi/linux"
)

// Calls that create, rename and remove names.
func TestPathsAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "content")
	folder := s.open(linux.SYS_OPENAT, here, s.text("."), linux.O_RDONLY|linux.O_DIRECTORY)
	name := func(text string) uint64 { return s.text(text) }
	long, component := strings.Repeat("a/", 2100), strings.Repeat("n", 256)
	s.call(linux.SYS_MKDIR, name("dir"), 0o755)
	s.call(linux.SYS_SYMLINK, name("file"), name("link"))
	s.call(linux.SYS_SYMLINK, name("nowhere"), name("dangling"))
	s.call(linux.SYS_SYMLINK, name("loop"), name("loop"))
	names := []string{"file", "dir", "link", "dangling", "loop", "", ".", "..", "absent", "file/", "file/x", "dir/", "dir/x", "dir/../file", "link/", long, component}
	for _, n := range names {
		at := name(n)
		s.call(linux.SYS_ACCESS, at, 0)
		s.call(linux.SYS_ACCESS, at, 9)
		s.call(linux.SYS_FACCESSAT2, folder, at, 0, linux.AT_SYMLINK_NOFOLLOW)
		s.call(linux.SYS_MKDIRAT, here, at, 0o700)
		s.call(linux.SYS_RMDIR, at)
		s.call(linux.SYS_MKDIR, name("dir"), 0o755)
		s.call(linux.SYS_READLINK, at, atRoom, 0)
		s.call(linux.SYS_READLINKAT, here, at, atRoom, 3)
		s.call(linux.SYS_READLINKAT, here, at, atRoom, 300)
		s.call(linux.SYS_CHMOD, at, 0o640)
		s.call(linux.SYS_CHMOD, at, 0o755)
		s.call(linux.SYS_TRUNCATE, at, 7)
		s.call(linux.SYS_LINK, at, name("second"))
		s.call(linux.SYS_UNLINK, name("second"))
		s.call(linux.SYS_LINK, name("file"), at)
		s.call(linux.SYS_SYMLINKAT, name("target"), here, at)
		s.call(linux.SYS_RENAMEAT2, here, at, here, at, linux.RENAME_NOREPLACE)
		s.call(linux.SYS_RENAMEAT2, here, at, here, name("absent2"), linux.RENAME_EXCHANGE)
		s.call(linux.SYS_RENAMEAT2, here, at, here, at, 1<<5)
		s.call(linux.SYS_UTIMENSAT, here, at, 0, 0)
		s.call(linux.SYS_CHDIR, at)
		s.call(linux.SYS_FCHDIR, folder)
		s.call(linux.SYS_UNLINKAT, here, at, 1)
	}
	for _, call := range []int{
		linux.SYS_MKDIR, linux.SYS_RMDIR, linux.SYS_UNLINK, linux.SYS_CHDIR, linux.SYS_ACCESS, linux.SYS_CHMOD, linux.SYS_TRUNCATE,
	} {
		s.call(call, noAddress, 0)
		s.call(call, 0, 0)
	}
	s.call(linux.SYS_RENAME, noAddress, name("x"))
	s.call(linux.SYS_RENAME, name("file"), noAddress)
	s.call(linux.SYS_SYMLINK, name(""), name("empty"))
	s.call(linux.SYS_SYMLINK, noAddress, name("x"))
	s.call(linux.SYS_READLINK, name("link"), noAddress, 10)
	s.call(linux.SYS_READLINK, name("link"), atRoom, minus)
	s.call(linux.SYS_UNLINKAT, folder, name("file"), 99)
	s.call(linux.SYS_UNLINKAT, folder, name("dir"), linux.AT_REMOVEDIR)
	s.call(linux.SYS_UNLINKAT, none, name("file"), 0)
	s.call(linux.SYS_UNLINKAT, f, name("file"), 0)
	s.call(linux.SYS_FCHDIR, f)
	s.call(linux.SYS_FCHDIR, none)
	asOnLinux(t, s)
}

// atRoom is an address at which calls store their results.
const atRoom = addressOf | 0x1000

// open(2) checks its flags, and openat2(2) the size and the fields of its structure.
func TestOpenAsOnLinux(t *testing.T) {
	s := &sequence{}
	s.file("file", "content")
	s.call(linux.SYS_MKDIR, s.text("dir"), 0o755)
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	for _, name := range []string{"file", "dir", "link", "new", "", "file/", "dir/"} {
		for _, flags := range []uint64{
			linux.O_RDONLY, linux.O_WRONLY, linux.O_RDWR, linux.O_RDONLY | linux.O_DIRECTORY, linux.O_RDWR | linux.O_NOFOLLOW,
			linux.O_RDWR | linux.O_CREAT | linux.O_EXCL, linux.O_WRONLY | linux.O_CREAT | linux.O_DIRECTORY, linux.O_PATH,
			linux.O_RDONLY | linux.O_CREAT, linux.O_PATH | linux.O_NOFOLLOW,
		} {
			s.open(linux.SYS_OPENAT, here, s.text(name), flags, 0o600)
			s.call(linux.SYS_UNLINK, s.text("new"))
		}
	}
	const how = 0x100
	for _, c := range []struct{ flags, mode, resolve, size uint64 }{
		{linux.O_RDONLY, 0, 0, 24}, {linux.O_RDONLY, 0, 0, 23}, {linux.O_RDONLY, 0, 0, 0}, {linux.O_RDONLY, 0, 0, 32}, {linux.O_RDONLY, 0, 0, 5000},
		{linux.O_RDONLY, 0o644, 0, 24}, {linux.O_RDWR | linux.O_CREAT, 0o644, 0, 24}, {linux.O_RDWR | linux.O_CREAT, 1 << 20, 0, 24},
		{1 << 40, 0, 0, 24}, {linux.O_RDONLY, 0, 1 << 30, 24}, {linux.O_RDONLY, 0, linux.RESOLVE_NO_SYMLINKS, 24},
		{linux.O_RDONLY, 0, linux.RESOLVE_BENEATH | linux.RESOLVE_IN_ROOT, 24},
	} {
		for _, name := range []string{"file", "link"} {
			s.word(how, c.flags, c.mode, c.resolve, 0)
			s.open(linux.SYS_OPENAT2, here, s.text(name), at(how), c.size)
			s.word(how+24, 1)
			s.open(linux.SYS_OPENAT2, here, s.text(name), at(how), c.size)
		}
	}
	s.word(how, 0, 0, 0)
	s.call(linux.SYS_OPENAT2, here, s.text("file"), noAddress, 24)
	s.call(linux.SYS_OPENAT2, here, noAddress, at(how), 24)
	s.call(linux.SYS_OPENAT2, none, s.text("file"), at(how), 24)
	s.call(linux.SYS_OPENAT, none, s.text("file"), 0)
	s.call(linux.SYS_OPENAT, here, noAddress, 0)
	asOnLinux(t, s)
}

// The properties of files: type, rights, links, size and times, in the layouts of stat(2) and statx(2).
func TestStatAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "content")
	s.call(linux.SYS_MKDIR, s.text("dir"), 0o750)
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	s.call(linux.SYS_LINK, s.text("file"), s.text("second"))
	s.call(linux.SYS_MKNOD, s.text("pipe"), linux.S_IFIFO|0o620, 0)
	const room, times = 0x1000, 0x100
	s.word(times, 1_000_000_000, 123, 1_500_000_000, 456_789_000)
	s.call(linux.SYS_UTIMENSAT, here, s.text("file"), at(times), 0)
	shared := func() { // compares what every file system reports alike
		s.hide(room, 24)     // device, inode, and number of links
		s.hide(room+56, 16)  // sizes of blocks
		s.hide(room+104, 40) // the time of the last change, and unused bytes
	}
	for _, name := range []string{"file", "link", "second", "pipe", "absent", ""} {
		s.call(linux.SYS_STAT, s.text(name), at(room))
		shared()
		if name == "pipe" {
			s.hide(room+72, 32) // only the times of the file were set
		}
		if name == "link" || name == "pipe" {
			continue
		}
		s.call(linux.SYS_LSTAT, s.text(name), at(room))
		shared()
		s.call(linux.SYS_NEWFSTATAT, here, s.text(name), at(room), linux.AT_SYMLINK_NOFOLLOW)
		shared()
		s.call(linux.SYS_NEWFSTATAT, here, s.text(name), at(room), 1<<20)
	}
	s.call(linux.SYS_FSTAT, f, at(room))
	shared()
	s.call(linux.SYS_NEWFSTATAT, f, s.text(""), at(room), linux.AT_EMPTY_PATH)
	shared()
	s.call(linux.SYS_FSTAT, f, noAddress)
	s.call(linux.SYS_FSTAT, none, noAddress)
	s.call(linux.SYS_STAT, noAddress, at(room))
	s.call(linux.SYS_STAT, s.text("file"), noAddress)
	s.call(linux.SYS_STATX, here, s.text("file"), 0, 0x7ff, noAddress)
	s.call(linux.SYS_STATX, here, s.text("absent"), 0, 0x7ff, at(room))
	s.call(linux.SYS_STATX, none, s.text("file"), 0, 0x7ff, at(room))
	s.call(linux.SYS_STATX, here, noAddress, 0, 0x7ff, at(room))
	s.call(linux.SYS_STATFS, s.text("absent"), at(room))
	s.call(linux.SYS_STATFS, s.text("file"), noAddress)
	s.call(linux.SYS_FSTATFS, none, at(room))
	asOnLinux(t, s)
}

// utimensat(2) and its older forms set times, one of them, or the present.
func TestTimesAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "x")
	const times, room = 0x100, 0x1000
	const now, omit = linux.UTIME_NOW, linux.UTIME_OMIT
	look := func() {
		s.call(linux.SYS_FSTAT, f, at(room))
		s.hide(room, 72)
		s.hide(room+104, 40)
	}
	for _, c := range [][4]uint64{
		{1, 2, 3, 4}, {5, 999_999_999, 6, 0}, {5, 1e9, 6, 0}, {5, minus, 6, 0}, {7, omit, 8, 9}, {10, 11, 12, omit}, {7, omit, 7, omit},
		{minus, 5, 1 << 33, 5}, {1 << 33, 0, minus, 0},
	} {
		s.word(times, c[:]...)
		s.call(linux.SYS_UTIMENSAT, here, s.text("file"), at(times), 0)
		look()
		s.call(linux.SYS_UTIMENSAT, f, 0, at(times), 0)
		look()
	}
	for _, c := range [][4]uint64{{1, 2, 3, 4}, {5, 999_999, 6, 0}, {5, 1e6, 6, 0}, {5, minus, 6, 0}} {
		s.word(times, c[:]...)
		s.call(linux.SYS_UTIMES, s.text("file"), at(times))
		look()
		s.call(linux.SYS_FUTIMESAT, here, s.text("file"), at(times))
		look()
	}
	s.word(times, 20, 30)
	s.call(linux.SYS_UTIME, s.text("file"), at(times))
	look()
	s.call(linux.SYS_UTIME, s.text("absent"), at(times))
	s.call(linux.SYS_UTIME, s.text("file"), noAddress)
	s.call(linux.SYS_UTIMES, s.text("file"), noAddress)
	s.call(linux.SYS_UTIMENSAT, here, s.text("file"), noAddress, 0)
	s.call(linux.SYS_UTIMENSAT, here, s.text("file"), at(times), 99)
	s.call(linux.SYS_UTIMENSAT, here, s.text("absent"), at(times), 0)
	s.call(linux.SYS_UTIMENSAT, here, s.text(""), at(times), 0)
	s.call(linux.SYS_UTIMENSAT, none, 0, at(times), 0)
	s.call(linux.SYS_UTIMENSAT, here, 0, at(times), 0)
	asOnLinux(t, s)
}

// Extended attributes of the user are set, read, listed and removed by all three kinds of calls.
func TestAttributesAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "x")
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	s.call(linux.SYS_MKDIR, s.text("dir"), 0o755)
	const create, replace = 1, 2
	value := s.text("a value")
	long := s.text("user." + strings.Repeat("n", 252))
	for _, name := range []string{"user.one", "user.two", "user.", "user", "", "other.x"} {
		for _, flags := range []uint64{replace, create, create, 0, 3, 4} {
			s.call(linux.SYS_SETXATTR, s.text("file"), s.text(name), value, 7, flags)
		}
		s.call(linux.SYS_FSETXATTR, f, s.text(name), value, 3, 0)
		for _, n := range []uint64{0, 2, 3, 100, minus} {
			s.call(linux.SYS_GETXATTR, s.text("link"), s.text(name), atRoom, n)
		}
		s.call(linux.SYS_FGETXATTR, f, s.text(name), noAddress, 50)
		s.call(linux.SYS_LGETXATTR, s.text("link"), s.text(name), atRoom, 50)
		s.call(linux.SYS_SETXATTR, s.text("dir"), s.text(name), value, 1, 0)
	}
	s.call(linux.SYS_SETXATTR, s.text("file"), long, value, 7, 0)
	s.call(linux.SYS_SETXATTR, s.text("file"), s.text("user.big"), value, 1<<17, 0)
	s.call(linux.SYS_SETXATTR, s.text("file"), s.text("user.bad"), noAddress, 5, 0)
	s.call(linux.SYS_SETXATTR, s.text("file"), s.text("user.none"), 0, 0, 0)
	s.call(linux.SYS_GETXATTR, s.text("file"), s.text("user.none"), atRoom, 5)
	s.call(linux.SYS_FLISTXATTR, f, atRoom, 0)
	s.call(linux.SYS_FLISTXATTR, f, atRoom, 3)
	s.call(linux.SYS_REMOVEXATTR, s.text("file"), s.text("user.one"))
	s.call(linux.SYS_REMOVEXATTR, s.text("file"), s.text("user.one"))
	s.call(linux.SYS_FREMOVEXATTR, f, s.text("user.none"))
	s.call(linux.SYS_LISTXATTR, s.text("file"), atRoom, 100)
	s.call(linux.SYS_LREMOVEXATTR, s.text("link"), s.text("user.two"))
	s.call(linux.SYS_FREMOVEXATTR, none, s.text("user.two"))
	s.call(linux.SYS_GETXATTR, s.text("absent"), s.text("user.two"), atRoom, 5)
	asOnLinux(t, s)
}
