package main

import (
	"syscall"
	"unsafe"
)

// Numbers that package syscall lacks.
const (
	sysSendmmsg      = 307
	sysRenameat2     = 316
	sysMemfdCreate   = 319
	sysCopyFileRange = 326
	sysStatx         = 332
	sysCloseRange    = 436
	sysOpenat2       = 437
	sysFaccessat2    = 439
)

const here = -100 // AT_FDCWD

// calls returns the calls to try. It is long because it is a table.
func calls(f files) []call {
	buf, event := at([512]byte{}), at([2]uint64{})
	target := new([4096]byte)
	vec := &[1]syscall.Iovec{{Base: &target[0], Len: 16}}
	room = append(room, target, vec)
	big := arg{address, uintptr(unsafe.Pointer(target))}
	iov := arg{address, uintptr(unsafe.Pointer(vec))}
	badPointer := pointer(nowhere)
	badIov := at([1]syscall.Iovec{{Base: (*byte)(badPointer), Len: 16}})
	longIov := at([2]syscall.Iovec{{Base: &target[0], Len: 1 << 62}, {Base: &target[0], Len: 1 << 62}})
	negativeIov := at([1]syscall.Iovec{{Base: &target[0], Len: 1 << 63}})
	message := at(syscall.Msghdr{Iov: &vec[0], Iovlen: 1})
	badMessage := at(syscall.Msghdr{Iov: (*syscall.Iovec)(badPointer), Iovlen: 1})
	longMessage := at(syscall.Msghdr{Iov: &vec[0], Iovlen: 1025})
	badName := at(syscall.Msghdr{Name: (*byte)(badPointer), Namelen: 16, Iov: &vec[0], Iovlen: 1})
	longControl := at(syscall.Msghdr{Iov: &vec[0], Iovlen: 1, Control: (*byte)(badPointer), Controllen: 64})
	messages := at([2]struct {
		h syscall.Msghdr
		n uint64
	}{})
	length := at(int32(16))
	negative := at(int32(-1))
	inet := at(syscall.RawSockaddrInet4{Family: syscall.AF_INET})
	timespec, badTimespec := fixed(at(syscall.Timespec{})), fixed(at([2]syscall.Timespec{{Nsec: 1e9}}))
	timeval, badTimeval := fixed(at(syscall.Timeval{})), fixed(at(syscall.Timeval{Sec: -1}))
	pollfds := at([2]struct {
		fd              int32
		events, revents int16
	}{{fd: -1}, {fd: -1}})
	return []call{
		{"read", syscall.SYS_READ, []arg{fd(f.file), buf, sz(512)}},
		{"write", syscall.SYS_WRITE, []arg{fd(f.file), buf, sz(16)}},
		{"pread64", syscall.SYS_PREAD64, []arg{fd(f.file), buf, sz(16), cn(0)}},
		{"pread64 before the file", syscall.SYS_PREAD64, []arg{fd(f.file), buf, n(16), n(-1)}},
		{"pwrite64", syscall.SYS_PWRITE64, []arg{fd(f.file), buf, sz(16), cn(0)}},
		{"readv", syscall.SYS_READV, []arg{fd(f.file), iov, sz(1)}},
		{"readv into nowhere", syscall.SYS_READV, []arg{fd(f.pipe[0]), badIov, n(1)}},
		{"readv of too much", syscall.SYS_READV, []arg{fd(f.file), longIov, n(2)}},
		{"readv of less than nothing", syscall.SYS_READV, []arg{fd(f.file), negativeIov, n(1)}},
		{"readv of too many", syscall.SYS_READV, []arg{fd(f.file), iov, n(1025)}},
		{"writev", syscall.SYS_WRITEV, []arg{fd(f.file), iov, sz(1)}},
		{"writev from nowhere", syscall.SYS_WRITEV, []arg{fd(f.file), badIov, n(1)}},
		{"preadv", syscall.SYS_PREADV, []arg{fd(f.file), iov, sz(1), n(0)}},
		{"pwritev", syscall.SYS_PWRITEV, []arg{fd(f.file), iov, sz(1), n(0)}},
		{"lseek", syscall.SYS_LSEEK, []arg{fd(f.file), n(0), cn(0)}},
		{"lseek before the file", syscall.SYS_LSEEK, []arg{fd(f.file), n(-1), n(0)}},
		{"ftruncate", syscall.SYS_FTRUNCATE, []arg{fd(f.file), cn(7)}},
		{"fallocate", syscall.SYS_FALLOCATE, []arg{fd(f.file), n(0), cn(0), cn(7)}},
		{"fsync", syscall.SYS_FSYNC, []arg{fd(f.file)}},
		{"fstat", syscall.SYS_FSTAT, []arg{fd(f.file), buf}},
		{"fstatfs", syscall.SYS_FSTATFS, []arg{fd(f.file), buf}},
		{"fchmod", syscall.SYS_FCHMOD, []arg{fd(f.file), n(0o600)}},
		{"fchdir", syscall.SYS_FCHDIR, []arg{fd(f.dir)}},
		{"flock", syscall.SYS_FLOCK, []arg{fd(f.file), cn(syscall.LOCK_SH | syscall.LOCK_NB)}},
		{"getdents64", syscall.SYS_GETDENTS64, []arg{fd(f.dir), big, n(4096)}},
		{"dup", syscall.SYS_DUP, []arg{fd(f.file)}},
		{"dup2 to itself", syscall.SYS_DUP2, []arg{n(f.file), n(f.file)}},
		{"dup2 to -1", syscall.SYS_DUP2, []arg{n(f.file), n(-1)}},
		{"dup3 to itself", syscall.SYS_DUP3, []arg{n(f.file), n(f.file), n(0)}},
		{"dup3 with flags", syscall.SYS_DUP3, []arg{n(f.file), n(100), n(1)}},
		{"close", syscall.SYS_CLOSE, []arg{n(-1)}},
		{"close_range", sysCloseRange, []arg{n(5000), n(4000), n(0)}},
		{"close_range with flags", sysCloseRange, []arg{n(4000), n(5000), n(1 << 20)}},
		{"fcntl F_GETFL", syscall.SYS_FCNTL, []arg{fd(f.file), n(syscall.F_GETFL)}},
		{"fcntl F_DUPFD", syscall.SYS_FCNTL, []arg{n(f.file), n(syscall.F_DUPFD), n(-1)}},
		{"fcntl F_GETLK", syscall.SYS_FCNTL, []arg{fd(f.file), n(syscall.F_GETLK), at(syscall.Flock_t{Type: syscall.F_WRLCK})}},
		{"fcntl of no kind", syscall.SYS_FCNTL, []arg{n(f.file), n(9999), n(0)}},
		{"ioctl FIONREAD", syscall.SYS_IOCTL, []arg{fd(f.pipe[0]), n(0x541b), buf}},
		{"ioctl TCGETS", syscall.SYS_IOCTL, []arg{fd(f.file), n(syscall.TCGETS), buf}},
		{"ioctl of no kind", syscall.SYS_IOCTL, []arg{fd(f.file), n(0x9999), buf}},
		{"sendfile", syscall.SYS_SENDFILE, []arg{fd(f.unix[0]), fd(f.file), at(int64(0)), n(1)}},
		{"sendfile before the file", syscall.SYS_SENDFILE, []arg{n(f.unix[0]), n(f.file), at(int64(-1)), n(1)}},
		{"copy_file_range", sysCopyFileRange, []arg{n(f.file), at(int64(0)), n(f.file), at(int64(100)), n(1), cn(0)}},
		{"pipe", syscall.SYS_PIPE, []arg{{address, 0}}},
		{"pipe2 with flags", syscall.SYS_PIPE2, []arg{buf, n(1)}},
		{"memfd_create", sysMemfdCreate, []arg{path("name"), n(0)}},
		{"memfd_create with flags", sysMemfdCreate, []arg{path("name"), n(1 << 20)}},

		{"open", syscall.SYS_OPEN, []arg{path("file"), n(0), n(0)}},
		{"open what is not there", syscall.SYS_OPEN, []arg{path("nothing"), n(0), n(0)}},
		{"open of nothing", syscall.SYS_OPEN, []arg{path(""), n(0), n(0)}},
		{"openat", syscall.SYS_OPENAT, []arg{fd(f.dir), path("file"), n(0), n(0)}},
		{"openat2", sysOpenat2, []arg{fd(f.dir), path("file"), at([3]uint64{}), sz(24)}},
		{"openat2 with flags", sysOpenat2, []arg{n(here), path("file"), at([3]uint64{1 << 40}), n(24)}},
		{"stat", syscall.SYS_STAT, []arg{path("file"), buf}},
		{"newfstatat", syscall.SYS_NEWFSTATAT, []arg{fd(f.dir), path("file"), buf, cn(0)}},
		{"statx", sysStatx, []arg{fd(f.dir), path("file"), n(0), n(0x7ff), buf}},
		{"statfs", syscall.SYS_STATFS, []arg{path("file"), buf}},
		{"access", syscall.SYS_ACCESS, []arg{path("file"), cn(0)}},
		{"faccessat2", sysFaccessat2, []arg{fd(f.dir), path("file"), cn(0), cn(0)}},
		{"truncate", syscall.SYS_TRUNCATE, []arg{path("file"), cn(7)}},
		{"chdir", syscall.SYS_CHDIR, []arg{path(".")}},
		{"getcwd", syscall.SYS_GETCWD, []arg{big, n(4096)}},
		{"getcwd into nothing", syscall.SYS_GETCWD, []arg{big, n(1)}},
		{"rename", syscall.SYS_RENAME, []arg{path("file"), path("file")}},
		{"renameat2", sysRenameat2, []arg{fd(f.dir), path("file"), fd(f.dir), path("file"), n(1 << 20)}},
		{"mkdirat", syscall.SYS_MKDIRAT, []arg{fd(f.dir), path("file"), n(0)}},
		{"unlinkat", syscall.SYS_UNLINKAT, []arg{fd(f.dir), path("nothing"), cn(0)}},
		{"rmdir", syscall.SYS_RMDIR, []arg{path("file")}},
		{"linkat", syscall.SYS_LINKAT, []arg{fd(f.dir), path("nothing"), fd(f.dir), path("new"), cn(0)}},
		{"symlinkat", syscall.SYS_SYMLINKAT, []arg{path("text"), fd(f.dir), path("file")}},
		{"readlinkat", syscall.SYS_READLINKAT, []arg{fd(f.dir), path("file"), buf, cn(512)}},
		{"readlink", syscall.SYS_READLINK, []arg{path("file"), buf, cn(512)}},
		{"fchmodat", syscall.SYS_FCHMODAT, []arg{fd(f.dir), path("file"), n(0o600)}},
		{"fchownat", syscall.SYS_FCHOWNAT, []arg{fd(f.dir), path("file"), n(-1), n(-1), cn(0)}},
		{"utimensat", syscall.SYS_UTIMENSAT, []arg{fd(f.dir), path("file"), at([2]syscall.Timespec{}), cn(0)}},
		{"utimensat at no time", syscall.SYS_UTIMENSAT, []arg{n(here), path("file"), badTimespec, n(0)}},
		{"utimes", syscall.SYS_UTIMES, []arg{path("file"), at([2]syscall.Timeval{})}},
		{"utime", syscall.SYS_UTIME, []arg{path("file"), at(syscall.Utimbuf{})}},
		{"getxattr", syscall.SYS_GETXATTR, []arg{path("file"), path("user.none"), buf, n(16)}},
		{"fgetxattr", syscall.SYS_FGETXATTR, []arg{fd(f.file), path("user.none"), buf, n(16)}},
		{"fsetxattr of no name", syscall.SYS_FSETXATTR, []arg{fd(f.file), path(""), buf, n(16), n(0)}},
		{"fsetxattr of too much", syscall.SYS_FSETXATTR, []arg{n(f.file), path("user.x"), buf, n(1 << 20), n(0)}},
		{"fsetxattr with flags", syscall.SYS_FSETXATTR, []arg{n(f.file), path("user.x"), buf, n(1), n(8)}},
		{"inotify_add_watch", syscall.SYS_INOTIFY_ADD_WATCH, []arg{fd(f.watch), path("file"), n(2)}},
		{"inotify_rm_watch", syscall.SYS_INOTIFY_RM_WATCH, []arg{fd(f.watch), n(99)}},
		{"inotify_init1", syscall.SYS_INOTIFY_INIT1, []arg{cn(0)}},

		{"socket", syscall.SYS_SOCKET, []arg{cn(syscall.AF_INET), cn(syscall.SOCK_DGRAM), cn(0)}},
		{"socketpair", syscall.SYS_SOCKETPAIR, []arg{cn(syscall.AF_UNIX), cn(syscall.SOCK_STREAM), cn(0), {address, 0}}},
		{"bind", syscall.SYS_BIND, []arg{fd(f.tcp), inet, cn(16)}},
		{"bind of too long", syscall.SYS_BIND, []arg{n(f.tcp), inet, n(129)}},
		{"listen", syscall.SYS_LISTEN, []arg{fd(f.listener), n(5)}},
		{"accept", syscall.SYS_ACCEPT, []arg{fd(f.listener), buf, length}},
		{"accept4", syscall.SYS_ACCEPT4, []arg{n(f.listener), buf, length, cn(0)}},
		{"connect", syscall.SYS_CONNECT, []arg{fd(f.unix[0]), inet, cn(1)}},
		{"connect from nowhere", syscall.SYS_CONNECT, []arg{n(f.udp), {address, nowhere}, n(16)}},
		{"shutdown", syscall.SYS_SHUTDOWN, []arg{fd(f.listener), n(9)}},
		{"getsockname", syscall.SYS_GETSOCKNAME, []arg{fd(f.udp), buf, length}},
		{"getsockname into less than nothing", syscall.SYS_GETSOCKNAME, []arg{n(f.udp), buf, negative}},
		{"getpeername", syscall.SYS_GETPEERNAME, []arg{fd(f.udp), buf, length}},
		{"getsockopt", syscall.SYS_GETSOCKOPT, []arg{fd(f.udp), n(syscall.SOL_SOCKET), n(syscall.SO_TYPE), buf, length}},
		{"getsockopt into less than nothing", syscall.SYS_GETSOCKOPT, []arg{n(f.udp), n(syscall.SOL_SOCKET), n(syscall.SO_TYPE), buf, negative}},
		{"setsockopt", syscall.SYS_SETSOCKOPT, []arg{fd(f.udp), n(syscall.SOL_SOCKET), n(syscall.SO_REUSEADDR), buf, cn(4)}},
		{"setsockopt of no kind", syscall.SYS_SETSOCKOPT, []arg{n(f.udp), n(syscall.SOL_SOCKET), n(9999), buf, n(4)}},
		{"sendto", syscall.SYS_SENDTO, []arg{fd(f.udp), buf, sz(16), n(0), n(0), n(0)}},
		{"sendto from nowhere", syscall.SYS_SENDTO, []arg{n(f.unix[0]), {address, nowhere}, n(16), n(0), n(0), n(0)}},
		{"sendto an address", syscall.SYS_SENDTO, []arg{n(f.udp), buf, n(16), n(0), {address, nowhere}, cn(16)}},
		{"recvfrom", syscall.SYS_RECVFROM, []arg{fd(f.udp), buf, sz(16), n(0), buf, length}},
		{"sendmsg", syscall.SYS_SENDMSG, []arg{fd(f.unix[0]), message, n(0)}},
		{"sendmsg from nowhere", syscall.SYS_SENDMSG, []arg{fd(f.unix[0]), badMessage, n(0)}},
		{"sendmsg of too many", syscall.SYS_SENDMSG, []arg{n(f.unix[0]), longMessage, n(0)}},
		{"sendmsg to nowhere", syscall.SYS_SENDMSG, []arg{n(f.udp), badName, n(0)}},
		{"sendmsg with control from nowhere", syscall.SYS_SENDMSG, []arg{n(f.unix[0]), longControl, n(0)}},
		{"recvmsg", syscall.SYS_RECVMSG, []arg{fd(f.udp), message, n(0)}},
		{"recvmsg into nowhere", syscall.SYS_RECVMSG, []arg{n(f.unix[1]), badMessage, n(0)}},
		{"recvmsg of too many", syscall.SYS_RECVMSG, []arg{n(f.udp), longMessage, n(0)}},
		{"recvmmsg", syscall.SYS_RECVMMSG, []arg{fd(f.udp), messages, n(2), n(0), n(0)}},
		{"sendmmsg", sysSendmmsg, []arg{fd(f.udp), messages, n(2), n(0)}},

		{"poll", syscall.SYS_POLL, []arg{pollfds, cn(2), n(0)}},
		{"ppoll", syscall.SYS_PPOLL, []arg{pollfds, n(2), timespec, n(0), n(8)}},
		{"ppoll for no time", syscall.SYS_PPOLL, []arg{pollfds, n(2), badTimespec, n(0), n(8)}},
		{"select", syscall.SYS_SELECT, []arg{cn(3), n(0), n(0), n(0), timeval}},
		{"select of a set nowhere", syscall.SYS_SELECT, []arg{n(3), {number, nowhere}, n(0), n(0), timeval}},
		{"select of what is not open", syscall.SYS_SELECT, []arg{n(64), at([4]uint64{1 << 60}), n(0), n(0), timeval}},
		{"select for less than no time", syscall.SYS_SELECT, []arg{n(0), n(0), n(0), n(0), badTimeval}},
		{"pselect6", syscall.SYS_PSELECT6, []arg{cn(3), n(0), n(0), n(0), timespec, n(0)}},
		{"pselect6 for no time", syscall.SYS_PSELECT6, []arg{n(0), n(0), n(0), n(0), badTimespec, n(0)}},
		{"epoll_create", syscall.SYS_EPOLL_CREATE, []arg{cn(1)}},
		{"epoll_create1", syscall.SYS_EPOLL_CREATE1, []arg{cn(0)}},
		{"epoll_ctl add", syscall.SYS_EPOLL_CTL, []arg{fd(f.epoll), n(1), n(f.file), event}},
		{"epoll_ctl change", syscall.SYS_EPOLL_CTL, []arg{fd(f.epoll), n(3), n(f.pipe[0]), event}},
		{"epoll_ctl remove", syscall.SYS_EPOLL_CTL, []arg{fd(f.epoll), n(2), n(f.pipe[0]), event}},
		{"epoll_ctl add itself", syscall.SYS_EPOLL_CTL, []arg{n(f.epoll), n(1), n(f.epoll), event}},
		{"epoll_ctl of no kind", syscall.SYS_EPOLL_CTL, []arg{n(f.epoll), n(9), n(f.pipe[0]), event}},
		{"epoll_wait", syscall.SYS_EPOLL_WAIT, []arg{fd(f.epoll), buf, cn(4), n(0)}},
		{"eventfd2", syscall.SYS_EVENTFD2, []arg{n(0), cn(0)}},
		{"timerfd_create", syscall.SYS_TIMERFD_CREATE, []arg{cn(1), cn(0)}},
		{"timerfd_settime", syscall.SYS_TIMERFD_SETTIME, []arg{fd(f.timer), cn(0), at([2]syscall.Timespec{}), n(0)}},
		{"timerfd_settime for no time", syscall.SYS_TIMERFD_SETTIME, []arg{fd(f.timer), n(0), at([2]syscall.Timespec{{Nsec: -1}}), n(0)}},
		{"timerfd_gettime", syscall.SYS_TIMERFD_GETTIME, []arg{fd(f.timer), buf}},

		{"uname", syscall.SYS_UNAME, []arg{buf}},
		{"getrlimit", syscall.SYS_GETRLIMIT, []arg{cn(7), buf}},
		{"prlimit64", syscall.SYS_PRLIMIT64, []arg{n(0), cn(7), n(0), buf}},
		{"capget", syscall.SYS_CAPGET, []arg{at([2]uint32{0x20080522, 0}), buf}},
		{"adjtimex", syscall.SYS_ADJTIMEX, []arg{at([26]uint64{})}},
		{"prctl of no kind", syscall.SYS_PRCTL, []arg{n(9999), n(0), n(0), n(0), n(0)}},
		{"prctl PR_GET_NAME", syscall.SYS_PRCTL, []arg{n(16), buf}},
		{"tgkill", syscall.SYS_TGKILL, []arg{n(-1), n(1), n(0)}},
		{"mmap of nothing", syscall.SYS_MMAP, []arg{n(0), n(0), n(1), n(2), n(f.file), n(0)}},
		{"mmap", syscall.SYS_MMAP, []arg{n(0), n(4096), n(1), n(1), fd(f.file), n(0)}},
		{"mmap at no page", syscall.SYS_MMAP, []arg{n(0), n(4096), n(1), n(1), n(f.file), n(5)}},
		{"mmap of no kind", syscall.SYS_MMAP, []arg{n(0), n(4096), n(1), n(0), n(f.file), n(0)}},
		{"munmap at no page", syscall.SYS_MUNMAP, []arg{n(5), n(4096)}},
	}
}
