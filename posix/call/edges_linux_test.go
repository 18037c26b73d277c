package call

import (
	"slices"
	"testing"

	"loam/abi/linux"
)

// lastBytes is an address from which only four bytes are in memory.
const lastBytes = addressOf | (seqMemory - 4)

// edges are addresses and lengths that do not fit into memory: the end of memory, and sums that overflow.
var edges = [][2]uint64{
	{lastBytes, 5}, {lastBytes, 4096}, {at(seqMemory), 1}, {noAddress, 1}, {minus, 1}, {minus - 4, 8}, {1 << 63, 1}, {at(0), 1 << 63},
	{at(0), minus}, {1<<47 - 4096, 4097}, {1<<47 - 1, 2}, {1 << 47, 1},
}

// A structure at the end of memory, or at an address that overflows, is not read or written.
func TestStructuresAtTheEndAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "content")
	a, _ := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	timer := s.open(linux.SYS_TIMERFD_CREATE, linux.CLOCK_MONOTONIC, linux.TFD_NONBLOCK)
	set := s.open(linux.SYS_EPOLL_CREATE1, 0)
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	name := s.text("file")
	for _, addr := range []uint64{lastBytes, at(seqMemory), at(seqMemory - 1), noAddress, minus, minus - 7, 1 << 63, 1 << 47, 1<<47 - 8} {
		s.call(linux.SYS_STAT, name, addr)
		s.call(linux.SYS_FSTAT, f, addr)
		s.call(linux.SYS_STATX, here, name, 0, linux.STATX_BASIC_STATS, addr)
		s.call(linux.SYS_STATFS, name, addr)
		s.call(linux.SYS_FSTATFS, f, addr)
		s.call(linux.SYS_READLINK, s.text("link"), addr, 100)
		s.call(linux.SYS_UTIMENSAT, here, name, addr, 0)
		s.call(linux.SYS_UTIME, name, addr)
		s.call(linux.SYS_UTIMES, name, addr)
		s.call(linux.SYS_OPENAT2, here, name, addr, 24)
		s.call(linux.SYS_FCNTL, f, linux.F_SETLK, addr)
		s.call(linux.SYS_FCNTL, f, linux.F_SETOWN_EX, addr)
		s.call(linux.SYS_FCNTL, f, linux.F_GETOWN_EX, addr)
		s.call(linux.SYS_IOCTL, f, linux.FIONBIO, addr+1) // a part of the int is not in memory
		s.call(linux.SYS_SENDFILE, a, f, addr, 1)
		s.call(linux.SYS_PIPE2, addr, 0)
		s.call(linux.SYS_SENDMSG, a, addr, 0)
		s.call(linux.SYS_SENDMMSG, a, addr, 1, 0)
		s.call(linux.SYS_EPOLL_CTL, set, linux.EPOLL_CTL_ADD, timer, addr)
		s.call(linux.SYS_PPOLL, 0, 0, addr, 0, 0)
		s.call(linux.SYS_PSELECT6, 0, 0, 0, 0, addr, 0)
		s.call(linux.SYS_SELECT, 0, 0, 0, 0, addr)
		s.call(linux.SYS_TIMERFD_SETTIME, timer, 0, addr, 0)
		s.call(linux.SYS_TIMERFD_GETTIME, timer, addr)
		s.call(linux.SYS_UNAME, addr)
		s.call(linux.SYS_CLOCK_ADJTIME, 99, addr)
	}
	asOnLinux(t, s)
}

// Buffers that are partly outside of memory: what the call does with the bytes before the end of memory.
func TestBuffersAtTheEndAsOnLinux(t *testing.T) {
	s := &sequence{}
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	c, d := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	s.put(0x1000, []byte("0123456789abcdef")...)
	for _, e := range edges {
		for _, fds := range [][2]uint64{{read, write}, {b, a}, {d, c}} {
			s.call(linux.SYS_WRITE, fds[1], e[0], e[1])
			s.call(linux.SYS_READ, fds[0], at(0x2000), 16)
		}
		if int64(e[1]) < 0 {
			continue // sendto(2) cuts the length off on Linux, and sends the bytes before the end of memory
		}
		s.call(linux.SYS_SENDTO, a, e[0], e[1], 0, 0, 0)
		s.call(linux.SYS_SENDTO, c, e[0], e[1], 0, 0, 0)
		s.call(linux.SYS_RECVFROM, d, at(0x2000), 16, 0, 0, 0)
		s.call(linux.SYS_RECVFROM, b, at(0x2000), 16, 0, 0, 0)
	}
	asOnLinux(t, s)
}

// Vectors whose buffers, or whose array, are partly outside of memory.
func TestVectorsAtTheEndAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "0123456789")
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0, at(0))
	const vector = 0x100
	for _, fd := range []uint64{f, a} {
		for _, addr := range []uint64{lastBytes, at(seqMemory - 16), at(seqMemory - 24), at(seqMemory), minus - 15, 1 << 63} {
			for _, n := range []uint64{0, 2, 5, 40} {
				s.call(linux.SYS_WRITEV, fd, addr, n)
				s.call(linux.SYS_PWRITEV, fd, addr, n, 0)
				s.call(linux.SYS_READ, b, at(0x2000), 16)
			}
		}
	}
	for _, e := range edges {
		if e[0] == at(seqMemory) {
			continue // it would be compared as an address
		}
		s.word(vector, e[0], e[1])
		s.call(linux.SYS_WRITEV, a, at(vector), 1)
		s.call(linux.SYS_READ, b, at(0x2000), 16)
		s.header(msgHeader+0x100, 0, 0, at(vector), 1, 0, 0)
		s.call(linux.SYS_SENDMSG, a, at(msgHeader+0x100), 0)
		s.call(linux.SYS_READ, b, at(0x2000), 16)
	}
	asOnLinux(t, s)
}

// Paths at the end of memory: a text without a terminating NUL, and texts that just fit.
func TestPathsAtTheEndAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "content")
	folder := s.open(linux.SYS_OPENAT, here, s.text("."), linux.O_RDONLY|linux.O_DIRECTORY)
	const terminated = 0x3000
	s.put(terminated, slices.Repeat([]byte("./"), 2046)...)
	s.put(terminated+4092, 'f', 0, 0, 0)
	for _, path := range []uint64{lastBytes, at(seqMemory - 1), at(seqMemory), 0, minus, 1 << 63, at(terminated), at(terminated - 1), at(terminated + 2)} {
		for _, call := range []int{
			linux.SYS_ACCESS, linux.SYS_CHDIR, linux.SYS_RMDIR, linux.SYS_UNLINK, linux.SYS_CHMOD, linux.SYS_TRUNCATE, linux.SYS_LSTAT,
		} {
			s.call(call, path, at(0x2000))
			s.hide(0x2000, 144)
		}
		s.call(linux.SYS_RENAMEAT, folder, path, folder, s.text("new"))
		s.call(linux.SYS_RENAMEAT, folder, s.text("absent"), folder, path)
		s.call(linux.SYS_LINKAT, folder, path, folder, s.text("new"), 0)
		s.call(linux.SYS_SYMLINKAT, path, folder, s.text("file"))
		s.call(linux.SYS_GETXATTR, path, s.text("user.x"), at(0x2000), 10)
		s.call(linux.SYS_FGETXATTR, f, path, at(0x2000), 10)
		s.call(linux.SYS_MEMFD_CREATE, path, 0xffff)
		s.call(linux.SYS_STATFS, path, noAddress)
	}
	asOnLinux(t, s)
}
