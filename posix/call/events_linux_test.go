package call

import (
	"testing"

	"loam/abi/linux"
)

// A pipe has a capacity, and its ends report the end of the other.
func TestPipesAsOnLinux(t *testing.T) {
	s := &sequence{}
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	for _, n := range []uint64{0, 4096, 4096, 8192, 16 << 10, 16 << 10, 16 << 10, 16 << 10} {
		s.call(linux.SYS_WRITE, write, at(0x200), n)
		s.call(linux.SYS_IOCTL, read, linux.FIONREAD, at(0x100))
	}
	for _, n := range []uint64{0, 4096, 8192, 15 << 10, 15 << 10, 15 << 10, 15 << 10, 15 << 10} {
		s.call(linux.SYS_READ, read, at(0x200), n)
		s.call(linux.SYS_IOCTL, read, linux.FIONREAD, at(0x100))
	}
	s.call(linux.SYS_WRITE, read, at(0x200), 1)
	s.call(linux.SYS_READ, write, at(0x200), 1)
	s.call(linux.SYS_PREAD64, read, at(0x200), 1, 0)
	s.call(linux.SYS_PWRITE64, write, at(0x200), 1, 0)
	s.call(linux.SYS_LSEEK, read, 0, 0)
	s.call(linux.SYS_FSYNC, read)
	for _, size := range []uint64{1, 4096, 5000, 1 << 16, 1 << 20, 0, minus} {
		s.call(linux.SYS_FCNTL, read, linux.F_SETPIPE_SZ, size)
		s.call(linux.SYS_FCNTL, write, linux.F_GETPIPE_SZ)
	}
	s.call(linux.SYS_WRITE, write, at(0x200), 100)
	s.call(linux.SYS_CLOSE, write)
	s.call(linux.SYS_READ, read, at(0x200), 60)
	s.call(linux.SYS_READ, read, at(0x200), 60)
	s.call(linux.SYS_READ, read, at(0x200), 60)
	asOnLinux(t, s)
}

// Files in memory: their names, their seals, and what the seals forbid.
func TestMemoryFilesAsOnLinux(t *testing.T) {
	s := &sequence{}
	const allow = linux.MFD_ALLOW_SEALING
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'n'
	}
	for _, c := range []struct {
		name  string
		flags uint64
	}{{"", 0}, {"name", linux.MFD_CLOEXEC}, {string(long[:249]), 0}, {string(long[:250]), 0}, {"flags", 1 << 10}, {"flags", minus}} {
		s.open(linux.SYS_MEMFD_CREATE, s.text(c.name), c.flags)
	}
	s.call(linux.SYS_MEMFD_CREATE, noAddress, 0)
	open, closed := s.open(linux.SYS_MEMFD_CREATE, s.text("open"), allow), s.open(linux.SYS_MEMFD_CREATE, s.text("closed"), 0)
	f := s.file("file", "x")
	const seal, shrink, grow, write = 1, 2, 4, 8
	for _, fd := range []uint64{open, closed, f, none} {
		s.call(linux.SYS_FTRUNCATE, fd, 100)
		s.call(linux.SYS_FCNTL, fd, linux.F_GET_SEALS)
		s.call(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, 1<<10)
		s.call(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, shrink)
		s.call(linux.SYS_FTRUNCATE, fd, 50)
		s.call(linux.SYS_FTRUNCATE, fd, 150)
		s.call(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, grow)
		s.call(linux.SYS_FTRUNCATE, fd, 200)
		s.call(linux.SYS_PWRITE64, fd, at(0x100), 10, 145)
		s.call(linux.SYS_PWRITE64, fd, at(0x100), 10, 0)
		s.call(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, write|seal)
		s.call(linux.SYS_PWRITE64, fd, at(0x100), 10, 0)
		s.call(linux.SYS_FCNTL, fd, linux.F_ADD_SEALS, shrink)
		s.call(linux.SYS_FCNTL, fd, linux.F_GET_SEALS)
		s.call(linux.SYS_LSEEK, fd, 0, linux.SEEK_END)
	}
	asOnLinux(t, s)
}

// Watches of inotify(7): events of a folder, in the order in which they happened.
func TestInotifyAsOnLinux(t *testing.T) {
	s := &sequence{}
	queue := s.open(linux.SYS_INOTIFY_INIT1, linux.IN_NONBLOCK)
	f := s.file("file", "x")
	s.call(linux.SYS_MKDIR, s.text("dir"), 0o755)
	look := func() {
		s.put(0x1000, make([]byte, 512)...)
		s.call(linux.SYS_IOCTL, queue, linux.FIONREAD, at(0x100))
		s.call(linux.SYS_READ, queue, at(0x1000), 512)
		for i := range 8 {
			s.hide(0x1000+32*i+8, 4) // cookies
		}
	}
	const all = 0xfff
	s.call(linux.SYS_INOTIFY_ADD_WATCH, queue, s.text("dir"), linux.IN_CREATE|linux.IN_DELETE)
	look()
	s.open(linux.SYS_OPENAT, here, s.text("dir/new"), linux.O_RDWR|linux.O_CREAT, 0o600)
	look()
	s.call(linux.SYS_UNLINK, s.text("dir/new"))
	s.call(linux.SYS_MKDIR, s.text("dir/sub"), 0o755)
	s.call(linux.SYS_RMDIR, s.text("dir/sub"))
	look()
	for _, mask := range []uint64{0, all, 1 << 20, linux.IN_CREATE | 1<<20, 1 << 13, linux.IN_ONLYDIR} {
		s.call(linux.SYS_INOTIFY_ADD_WATCH, queue, s.text("absent"), mask)
		s.call(linux.SYS_INOTIFY_ADD_WATCH, queue, noAddress, mask)
		s.call(linux.SYS_INOTIFY_ADD_WATCH, f, s.text("dir"), mask)
		s.call(linux.SYS_INOTIFY_ADD_WATCH, none, s.text("dir"), mask)
	}
	s.call(linux.SYS_INOTIFY_ADD_WATCH, queue, s.text("dir"), 0)
	s.call(linux.SYS_READ, queue, at(0x1000), 4)
	s.call(linux.SYS_INOTIFY_RM_WATCH, queue, 99)
	s.call(linux.SYS_INOTIFY_RM_WATCH, f, 1)
	s.call(linux.SYS_INOTIFY_RM_WATCH, none, 1)
	s.call(linux.SYS_INOTIFY_RM_WATCH, queue, 1)
	look()
	s.call(linux.SYS_INOTIFY_INIT1, 1)
	asOnLinux(t, s)
}

// getcwd(2) and getdents64(2) fill a buffer, or fail if nothing fits.
func TestFoldersAsOnLinux(t *testing.T) {
	s := &sequence{}
	folder := s.open(linux.SYS_OPENAT, here, s.text("."), linux.O_RDONLY|linux.O_DIRECTORY)
	f := s.file("file", "x")
	s.call(linux.SYS_MKDIR, s.text("dir"), 0o755)
	for _, fd := range []uint64{folder, f, none} {
		for _, n := range []uint64{0, 10, 23} {
			s.call(linux.SYS_GETDENTS64, fd, at(0x1000), n)
		}
		s.call(linux.SYS_GETDENTS64, fd, noAddress, 1000)
		s.call(linux.SYS_LSEEK, fd, 0, 0)
	}
	s.call(linux.SYS_GETDENTS64, folder, at(0x1000), 4000)
	s.ignore(minus) // the order of the names, and so their padding, may differ
	s.hide(0x1000, 4000)
	s.call(linux.SYS_GETDENTS64, folder, at(0x1000), 4000)
	s.call(linux.SYS_UNLINK, s.text("dir"))
	s.call(linux.SYS_RMDIR, s.text("dir"))
	s.call(linux.SYS_GETCWD, at(0x1000), 0)
	s.call(linux.SYS_GETCWD, noAddress, 4000)
	for _, mode := range []uint64{0, linux.S_IFREG | 0o600, linux.S_IFIFO | 0o600, linux.S_IFSOCK | 0o600, linux.S_IFDIR, linux.S_IFLNK, 0o170000} {
		s.call(linux.SYS_MKNOD, s.text("node"), mode, 0)
		s.call(linux.SYS_ACCESS, s.text("node"), 4)
		s.call(linux.SYS_UNLINK, s.text("node"))
	}
	for _, mask := range []uint64{0o77, 0o7777, minus, 0o22} {
		s.call(linux.SYS_UMASK, mask)
		s.call(linux.SYS_MKDIR, s.text("masked"), 0o777)
		s.call(linux.SYS_STAT, s.text("masked"), at(0x1000))
		s.hide(0x1000, 24)
		s.hide(0x1000+28, 100)
		s.call(linux.SYS_RMDIR, s.text("masked"))
	}
	asOnLinux(t, s)
}
