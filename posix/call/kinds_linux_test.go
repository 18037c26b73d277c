package call

import (
	"strings"
	"testing"

	"loam/abi/linux"
)

// opened is a descriptor of one kind.
type opened struct {
	kind string
	fd   uint64
}

// kinds opens a descriptor of each kind. Where there is a non-blocking mode, they are in it.
func (s *sequence) kinds() []opened {
	const nonblock = linux.O_NONBLOCK // also EFD_NONBLOCK, TFD_NONBLOCK, IN_NONBLOCK and SOCK_NONBLOCK
	s.file("kind", "content")
	s.call(linux.SYS_MKDIR, s.text("folder"), 0o755)
	file := func(name string, flags uint64) uint64 { return s.open(linux.SYS_OPENAT, here, s.text(name), flags, 0) }
	socket := func(family, kind uint64) uint64 { return s.open(linux.SYS_SOCKET, family, kind|nonblock, 0) }
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), nonblock)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|nonblock, 0, at(0))
	return []opened{
		{"file", file("kind", linux.O_RDWR)},
		{"file for reading", file("kind", linux.O_RDONLY)},
		{"file for appending", file("kind", linux.O_WRONLY|linux.O_APPEND)},
		{"path of a file", file("kind", linux.O_PATH)},
		{"folder", file("folder", linux.O_RDONLY|linux.O_DIRECTORY)},
		{"path of a folder", file("folder", linux.O_PATH)},
		{"read end", read}, {"write end", write},
		{"socket of a pair", a}, {"socket of a pair", b},
		{"Unix socket", socket(linux.AF_UNIX, linux.SOCK_DGRAM)},
		{"TCP socket", socket(linux.AF_INET, linux.SOCK_STREAM)},
		{"UDP socket", socket(linux.AF_INET, linux.SOCK_DGRAM)},
		{"UDP socket of IPv6", socket(linux.AF_INET6, linux.SOCK_DGRAM)},
		{"eventfd", s.open(linux.SYS_EVENTFD2, 0, nonblock)},
		{"timerfd", s.open(linux.SYS_TIMERFD_CREATE, linux.CLOCK_MONOTONIC, nonblock)},
		{"epoll set", s.open(linux.SYS_EPOLL_CREATE1, 0)},
		{"inotify", s.open(linux.SYS_INOTIFY_INIT1, nonblock)},
		{"none", none}, {"negative", minus}, {"none in the lower half", 1<<32 | none},
	}
}

// Calls that move bytes, with descriptors of each kind.
func TestKindsOfTransfersAsOnLinux(t *testing.T) {
	s := &sequence{}
	const room, vector = 0x1000, 0x100
	source := s.file("source", "0123456789")
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	s.word(vector, at(room), 8, at(room+64), 0)
	for _, k := range s.kinds() {
		fd := k.fd
		for _, n := range []uint64{0, 1} {
			s.call(linux.SYS_READ, fd, at(room), n)
			s.call(linux.SYS_PREAD64, fd, at(room), n, 0)
			s.call(linux.SYS_PWRITE64, fd, at(room), n, 0)
			s.call(linux.SYS_READV, fd, at(vector+16), n)
			s.call(linux.SYS_WRITEV, fd, at(vector+16), n)
			s.call(linux.SYS_PREADV, fd, at(vector), n, 0)
			s.call(linux.SYS_PWRITEV, fd, at(vector), n, 0)
			s.call(linux.SYS_SENDFILE, fd, source, 0, n)
			s.call(linux.SYS_LSEEK, source, 0, linux.SEEK_SET)
			s.call(linux.SYS_TEE, fd, write, n, withoutWait)
			s.call(linux.SYS_TEE, read, fd, n, withoutWait)
			s.call(linux.SYS_SPLICE, read, 0, fd, 0, n, withoutWait)
			s.call(linux.SYS_COPY_FILE_RANGE, source, 0, fd, 0, n, 0)
			s.call(linux.SYS_LSEEK, source, 0, linux.SEEK_SET)
		}
		s.call(linux.SYS_GETDENTS64, fd, at(room), 0)
	}
	asOnLinux(t, s)
}

// Calls that change or report the properties of a file, with descriptors of each kind.
func TestKindsOfFilesAsOnLinux(t *testing.T) {
	s := &sequence{}
	const room = 0x1000
	for _, k := range s.kinds() {
		fd := k.fd
		for _, whence := range []uint64{linux.SEEK_SET, linux.SEEK_CUR} {
			s.call(linux.SYS_LSEEK, fd, 0, whence)
		}
		s.call(linux.SYS_FTRUNCATE, fd, 7)
		s.call(linux.SYS_FTRUNCATE, fd, minus)
		s.call(linux.SYS_FSYNC, fd)
		s.call(linux.SYS_FDATASYNC, fd)
		s.call(linux.SYS_SYNCFS, fd)
		s.call(linux.SYS_READAHEAD, fd, 0, 1)
		s.call(linux.SYS_FADVISE64, fd, 0, 1, 0)
		s.call(linux.SYS_SYNC_FILE_RANGE, fd, 0, 1, 0)
		s.call(linux.SYS_FALLOCATE, fd, 0, 0, minus)
		if k.kind != "eventfd" && k.kind != "timerfd" && k.kind != "epoll set" && k.kind != "inotify" { // newer releases return EOPNOTSUPP
			s.call(linux.SYS_FCHOWN, fd, minus, minus)
		}
		s.call(linux.SYS_FGETXATTR, fd, s.text("user.absent"), at(room), 10)
		s.call(linux.SYS_FREMOVEXATTR, fd, s.text("user.absent"))
		s.call(linux.SYS_FCNTL, fd, linux.F_GET_SEALS)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETPIPE_SZ)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFD)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFL)
		s.ignore(largeFile)
		s.call(linux.SYS_FCNTL, fd, linux.F_SETFL, linux.O_NONBLOCK)
		s.call(linux.SYS_OPENAT, fd, s.text("absent"), 0, 0)
		s.call(linux.SYS_FACCESSAT, fd, s.text("absent"), 0)
		s.call(linux.SYS_UNLINKAT, fd, s.text("absent"), 0)
		s.call(linux.SYS_READLINKAT, fd, s.text("absent"), at(room), 10)
	}
	asOnLinux(t, s)
}

// Calls on sockets, epoll sets, timers and queues, with descriptors of each kind.
func TestKindsOfObjectsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const room, size, event = 0x1000, 0x80, 0x100
	set := s.open(linux.SYS_EPOLL_CREATE1, 0)
	eventOf := le.AppendUint64(le.AppendUint32(nil, linux.POLLIN), 7)
	for _, k := range s.kinds() {
		fd := k.fd
		s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_TYPE, at(room), noAddress)
		s.int32(size, 4)
		s.call(linux.SYS_GETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_DOMAIN, at(room), at(size))
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_REUSEADDR, at(size), 4)
		s.call(linux.SYS_SETSOCKOPT, fd, linux.SOL_SOCKET, linux.SO_REUSEADDR, noAddress, 4)
		s.call(linux.SYS_SHUTDOWN, fd, 9)
		s.call(linux.SYS_LISTEN, fd, minus)
		s.call(linux.SYS_ACCEPT4, fd, 0, 0, 1<<20)
		s.call(linux.SYS_CONNECT, fd, noAddress, 16)
		s.call(linux.SYS_BIND, fd, noAddress, 16)
		s.call(linux.SYS_SENDMSG, fd, noAddress, 0)
		s.call(linux.SYS_RECVMSG, fd, noAddress, 0)
		s.call(linux.SYS_RECVMMSG, fd, noAddress, 0, 0, 0)
		s.put(event, eventOf...)
		for _, op := range []uint64{linux.EPOLL_CTL_MOD, linux.EPOLL_CTL_DEL, linux.EPOLL_CTL_ADD, linux.EPOLL_CTL_ADD, linux.EPOLL_CTL_DEL} {
			s.call(linux.SYS_EPOLL_CTL, set, op, fd, at(event))
			s.call(linux.SYS_EPOLL_CTL, fd, op, set, at(event))
		}
		s.call(linux.SYS_EPOLL_WAIT, fd, at(room), 1, 0)
		s.call(linux.SYS_TIMERFD_GETTIME, fd, at(room))
		s.call(linux.SYS_TIMERFD_SETTIME, fd, 0, at(room), 0)
		s.call(linux.SYS_INOTIFY_RM_WATCH, fd, 5)
		s.call(linux.SYS_INOTIFY_ADD_WATCH, fd, s.text("absent"), linux.IN_CREATE)
		s.call(linux.SYS_MQ_GETSETATTR, fd, 0, at(room))
		s.call(linux.SYS_MQ_TIMEDSEND, fd, at(room), 1, 0, 0)
		s.call(linux.SYS_MQ_NOTIFY, fd, 0)
		s.call(linux.SYS_PIDFD_SEND_SIGNAL, fd, 0, 0, 0)
		s.call(linux.SYS_PIDFD_GETFD, fd, 0, 0)
		s.call(linux.SYS_WAITID, 3, fd, 0, 4|1, 0)
	}
	asOnLinux(t, s)
}

// Requests of ioctl(2), with descriptors of each kind. None is a terminal or a disk.
func TestKindsOfRequestsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const argument = 0x100
	for _, k := range s.kinds() {
		fd := k.fd
		if k.kind == "epoll set" {
			continue // newer releases return EINVAL
		}
		for _, request := range []uint64{
			linux.FIONBIO, linux.FIOCLEX, linux.FIONCLEX, linux.TCGETS, linux.TCSETS, linux.TIOCGWINSZ,
			linux.TIOCSWINSZ, linux.TIOCGPGRP, linux.TIOCSCTTY, linux.TCSBRK, linux.TIOCGPTN, linux.BLKGETSIZE64, linux.BLKSSZGET, linux.BLKROGET, linux.SIOCATMARK,
			0, minus,
		} {
			s.word(argument, 0, 0, 0, 0, 0)
			s.call(linux.SYS_IOCTL, fd, request, at(argument))
			if request == linux.SIOCATMARK && strings.HasPrefix(k.kind, "UDP") {
				continue // Linux reads a struct ifreq before it rejects the request
			}
			s.call(linux.SYS_IOCTL, fd, request, noAddress)
		}
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFL)
		s.ignore(largeFile)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFD)
	}
	asOnLinux(t, s)
}
