package call

import (
	"slices"
	"testing"

	"loam/abi/linux"
)

const minus = ^uint64(0) // -1

// largeFile is O_LARGEFILE, which Linux sets for files that a 64-bit program opens. Headers for such programs define it as 0.
const largeFile = 1 << 15

// withoutWait is SPLICE_F_NONBLOCK.
const withoutWait = 2

// file adds a file with a content, and returns its descriptor.
func (s *sequence) file(name, content string) uint64 {
	fd := s.open(linux.SYS_OPENAT, here, s.text(name), linux.O_RDWR|linux.O_CREAT, 0o644)
	s.call(linux.SYS_PWRITE64, fd, s.text(content), uint64(len(content)), 0)
	return fd
}

// Calls that read and write at an offset check it, the address and the number of bytes as Linux does.
func TestReadWriteAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "0123456789")
	folder := s.open(linux.SYS_OPENAT, here, s.text("."), linux.O_RDONLY|linux.O_DIRECTORY)
	path := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_PATH)
	read := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_RDONLY)
	written := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_WRONLY)
	for _, fd := range []uint64{f, folder, path, read, written, none, minus} {
		for _, addr := range []uint64{at(0), noAddress, at(seqMemory)} {
			for _, n := range []uint64{0, 4, minus, 1 << 63} {
				s.call(linux.SYS_READ, fd, addr, n)
				s.call(linux.SYS_LSEEK, fd, 3, linux.SEEK_SET)
				s.call(linux.SYS_PREAD64, fd, addr, n, 5)
				if n < 8 {
					s.call(linux.SYS_PWRITE64, fd, addr, n, 2)
				}
			}
		}
		for _, offset := range []uint64{minus, 1 << 63, 1<<63 - 1, 1 << 40, 10, 9} {
			s.call(linux.SYS_PREAD64, fd, at(0), 4, offset)
			s.call(linux.SYS_PWRITE64, fd, at(0), 0, offset)
		}
		s.call(linux.SYS_PWRITE64, fd, at(0), 4, minus)
		s.call(linux.SYS_PWRITE64, fd, at(0), 4, 1<<63-2)
	}
	asOnLinux(t, s)
}

// Vectors are checked as a whole before any byte moves.
func TestVectorsAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "abcdefghijklmnopqrstuvwxyz")
	read := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_RDONLY)
	const v, data = 0x100, 0x1000
	vectors := [][]uint64{
		{},
		{at(data), 4},
		{at(data), 0, at(data + 8), 3},
		{at(data), 2, at(data + 16), 2, at(data + 32), 2, at(data + 48), 2, at(data + 64), 100},
		{noAddress, 0, at(data), 2},
		{at(data), minus},
		{at(data), 1<<63 - 1, at(data), 2},
		{at(data), 2, noAddress, 1 << 63},
	}
	for _, list := range vectors {
		s.word(v, list...)
		n := uint64(len(list) / 2)
		s.call(linux.SYS_PREADV, f, at(v), n, 3)
		s.call(linux.SYS_PWRITEV, f, at(v), n, 5)
		s.call(linux.SYS_PREADV2, f, at(v), n, 3, 0, 0)
		s.call(linux.SYS_LSEEK, f, 1, linux.SEEK_SET)
		s.call(linux.SYS_READV, f, at(v), n)
		s.call(linux.SYS_WRITEV, f, at(v), n)
		s.call(linux.SYS_LSEEK, f, 0, linux.SEEK_CUR)
		s.call(linux.SYS_FTRUNCATE, f, 30)
	}
	s.word(v, at(data), 4, at(data+8), 4)
	for _, n := range []uint64{1025, minus, 1 << 32, 1 << 31} {
		s.call(linux.SYS_READV, f, at(v), n)
		s.call(linux.SYS_WRITEV, f, at(v), n)
		s.call(linux.SYS_READV, none, at(v), n)
	}
	for _, offset := range []uint64{minus, 1 << 63, 100, 1 << 40} {
		s.call(linux.SYS_PREADV, f, at(v), 2, offset)
		s.call(linux.SYS_PREADV, none, at(v), 2, offset)
	}
	s.call(linux.SYS_PWRITEV, f, at(v), 2, minus)
	s.call(linux.SYS_PWRITEV, read, at(v), 2, 0)
	s.call(linux.SYS_WRITEV, read, at(v), 2)
	s.call(linux.SYS_READV, f, noAddress, 2)
	s.call(linux.SYS_READV, f, at(seqMemory), 2)
	s.call(linux.SYS_READV, none, noAddress, 2)
	s.call(linux.SYS_PREADV2, f, at(v), 2, minus, 0, 0)
	s.call(linux.SYS_PREADV2, f, at(v), 2, 0, 0, 1<<20)
	s.call(linux.SYS_PWRITEV2, f, at(v), 2, minus, 0, 0)
	s.call(linux.SYS_PWRITEV2, f, at(v), 2, minus-1, 0, 0)
	asOnLinux(t, s)
}

// The position of a file, its size and its holes.
func TestPositionsAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "0123456789")
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), 0)
	for _, fd := range []uint64{f, read, write, none} {
		for _, whence := range []uint64{linux.SEEK_SET, linux.SEEK_CUR, linux.SEEK_END, 5, 99, minus} {
			for _, offset := range []uint64{0, 3, minus, minus - 20, 1 << 62, 1<<63 - 1, 1 << 63} {
				s.call(linux.SYS_LSEEK, fd, offset, whence)
			}
		}
	}
	for _, size := range []uint64{5, 0, 20, minus, 1 << 63} {
		s.call(linux.SYS_FTRUNCATE, f, size)
		s.call(linux.SYS_TRUNCATE, s.text("file"), size)
		s.call(linux.SYS_LSEEK, f, 0, linux.SEEK_END)
	}
	s.call(linux.SYS_FTRUNCATE, read, 1)
	s.call(linux.SYS_FTRUNCATE, none, 1)
	for _, c := range [][2]uint64{{0, 0}, {0, minus}, {minus, 1}, {30, 10}, {1 << 62, 1 << 62}} {
		s.call(linux.SYS_FALLOCATE, f, 0, c[0], c[1])
		s.call(linux.SYS_LSEEK, f, 0, linux.SEEK_END)
	}
	s.call(linux.SYS_FALLOCATE, none, 0, 0, 1)
	s.call(linux.SYS_FALLOCATE, write, 0, 0, 1)
	s.call(linux.SYS_FALLOCATE, f, 1<<20, 0, 1)
	for _, fd := range []uint64{f, read, none} {
		for _, advice := range []uint64{0, 1, 2, 3, 4, 5, 6, minus} {
			s.call(linux.SYS_FADVISE64, fd, 0, 10, advice)
		}
		s.call(linux.SYS_FADVISE64, fd, 0, minus, 0)
		s.call(linux.SYS_FSYNC, fd)
		s.call(linux.SYS_FDATASYNC, fd)
		s.call(linux.SYS_SYNCFS, fd)
		s.call(linux.SYS_READAHEAD, fd, 0, 10)
		s.call(linux.SYS_SYNC_FILE_RANGE, fd, 0, 10, 0)
		s.call(linux.SYS_SYNC_FILE_RANGE, fd, minus, 10, 0)
		s.call(linux.SYS_SYNC_FILE_RANGE, fd, 0, minus, 0)
		s.call(linux.SYS_SYNC_FILE_RANGE, fd, 0, 10, 8)
	}
	asOnLinux(t, s)
}

// Calls that move bytes between descriptors use and update the offsets in memory.
func TestMovesAsOnLinux(t *testing.T) {
	s := &sequence{}
	from, to := s.file("from", "0123456789abcdef"), s.file("to", "")
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	other, sink := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	only := s.open(linux.SYS_OPENAT, here, s.text("from"), linux.O_RDONLY)
	const in, out = 0x40, 0x48
	for _, n := range []uint64{0, 3, 100} {
		s.word(in, 2, 1)
		s.call(linux.SYS_COPY_FILE_RANGE, from, at(in), to, at(out), n, 0)
		s.call(linux.SYS_COPY_FILE_RANGE, from, 0, to, 0, n, 0)
		s.call(linux.SYS_SENDFILE, to, from, at(in), n)
		s.call(linux.SYS_SENDFILE, write, from, at(in), n)
		s.call(linux.SYS_READ, read, at(0x200), 50)
		s.word(in, 4)
		s.call(linux.SYS_SPLICE, from, at(in), write, 0, n, 0)
		s.call(linux.SYS_TEE, read, sink, n, withoutWait)
		s.call(linux.SYS_READ, other, at(0x200), 50)
		s.call(linux.SYS_SPLICE, read, 0, to, at(out), n, 0)
		s.call(linux.SYS_READ, read, at(0x200), 50)
	}
	s.word(in, 0, 4, minus-99)
	s.call(linux.SYS_COPY_FILE_RANGE, from, at(in), from, at(out), 6, 0) // the ranges overlap
	s.call(linux.SYS_COPY_FILE_RANGE, from, at(in), from, at(out), 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, from, at(in), to, at(out), 4, 1)
	s.call(linux.SYS_COPY_FILE_RANGE, from, at(0x50), to, 0, 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, from, noAddress, to, 0, 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, from, 0, to, noAddress, 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, from, 0, only, 0, 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, none, 0, to, 0, 4, 0)
	s.call(linux.SYS_COPY_FILE_RANGE, from, 0, write, 0, 4, 0)
	s.call(linux.SYS_SENDFILE, to, from, noAddress, 4)
	s.call(linux.SYS_SENDFILE, to, from, at(0x50), 4)
	s.call(linux.SYS_SENDFILE, only, from, 0, 4)
	s.call(linux.SYS_SENDFILE, none, from, 0, 4)
	s.call(linux.SYS_SENDFILE, to, none, 0, 4)
	s.call(linux.SYS_SPLICE, from, 0, to, 0, 4, 0)
	s.call(linux.SYS_SPLICE, read, at(in), to, 0, 4, 0)
	s.call(linux.SYS_SPLICE, read, 0, write, 0, 4, 0)
	s.call(linux.SYS_SPLICE, read, 0, to, 0, 4, withoutWait)
	s.call(linux.SYS_SPLICE, none, 0, to, 0, 4, 0)
	s.call(linux.SYS_SPLICE, read, 0, to, 0, 4, 1<<10)
	s.call(linux.SYS_SPLICE, none, noAddress, to, 0, 0, 1<<10)
	s.call(linux.SYS_TEE, from, sink, 4, 0)
	s.call(linux.SYS_TEE, read, sink, 4, withoutWait)
	s.call(linux.SYS_TEE, read, write, 4, 0)
	for _, out := range []uint64{write, to} { // only a pipe can be the output if it appends
		s.call(linux.SYS_FCNTL, out, linux.F_SETFL, linux.O_APPEND|linux.O_NONBLOCK)
		s.call(linux.SYS_SENDFILE, out, from, at(in), 3)
		s.call(linux.SYS_SPLICE, from, at(in), out, 0, 3, 0)
		s.call(linux.SYS_TEE, read, sink, 2, withoutWait)
		s.call(linux.SYS_SPLICE, other, 0, out, 0, 2, withoutWait)
		s.call(linux.SYS_READ, read, at(0x200), 50)
	}
	s.word(0x100, at(0x300), 5, at(0x308), 2)
	s.call(linux.SYS_VMSPLICE, write, at(0x100), 2, 0)
	s.call(linux.SYS_VMSPLICE, read, at(0x100), 1, 0)
	s.call(linux.SYS_VMSPLICE, from, at(0x100), 1, 0)
	s.call(linux.SYS_VMSPLICE, none, at(0x100), 1, 0)
	asOnLinux(t, s)
}

// Descriptors are duplicated and closed; flags belong to a descriptor or to an open file description.
func TestDescriptorsAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "0123456789")
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_CLOEXEC)
	second := s.open(linux.SYS_DUP, f)
	third := s.open(linux.SYS_FCNTL, f, linux.F_DUPFD, 700)
	fourth := s.open(linux.SYS_FCNTL, f, linux.F_DUPFD_CLOEXEC, 700)
	s.call(linux.SYS_DUP2, f, f)
	s.ignore(minus)
	s.call(linux.SYS_DUP2, none, none)
	s.call(linux.SYS_DUP2, f, minus)
	s.call(linux.SYS_DUP3, f, f, 0)
	s.call(linux.SYS_DUP3, f, 800, 1)
	s.call(linux.SYS_DUP3, none, 800, 0)
	s.call(linux.SYS_DUP3, f, 800, linux.O_CLOEXEC)
	s.call(linux.SYS_FCNTL, 800, linux.F_GETFD)
	s.call(linux.SYS_CLOSE, 800)
	s.call(linux.SYS_CLOSE, 800)
	for _, fd := range []uint64{f, read, write, second, third, fourth, none} {
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFD)
		s.call(linux.SYS_FCNTL, fd, linux.F_SETFD, 1)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFD)
		s.call(linux.SYS_FCNTL, fd, linux.F_SETFL, linux.O_APPEND|linux.O_NONBLOCK)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETFL)
		s.ignore(largeFile)
		s.call(linux.SYS_FCNTL, fd, linux.F_SETFL, 0)
		s.call(linux.SYS_FCNTL, fd, 9999)
		s.call(linux.SYS_FCNTL, fd, linux.F_DUPFD, minus)
		s.call(linux.SYS_FCNTL, fd, linux.F_DUPFD, 1<<30)
		s.call(linux.SYS_FCNTL, fd, linux.F_GETPIPE_SZ)
		s.call(linux.SYS_IOCTL, fd, linux.FIONREAD, at(0x80))
		s.call(linux.SYS_IOCTL, fd, linux.FIONREAD, noAddress)
		s.call(linux.SYS_IOCTL, fd, 0x12345678, at(0x80))
	}
	for _, how := range []uint64{linux.LOCK_SH, linux.LOCK_EX, linux.LOCK_UN, linux.LOCK_SH | linux.LOCK_NB, 0, 3, 16, 32, 99, minus} {
		s.call(linux.SYS_FLOCK, f, how)
		s.call(linux.SYS_FLOCK, second, how)
	}
	s.call(linux.SYS_FLOCK, none, linux.LOCK_SH)
	s.call(linux.SYS_LSEEK, second, 4, linux.SEEK_SET)
	s.call(linux.SYS_READ, third, at(0x80), 2) // the position is shared
	for _, flags := range []uint64{0, linux.O_CLOEXEC, linux.O_NONBLOCK, 1, minus} {
		if flags == minus || flags == 1 {
			s.call(linux.SYS_PIPE2, at(0), flags)
			continue
		}
		s.pair(linux.SYS_PIPE2, 0, at(0), flags)
	}
	s.call(linux.SYS_PIPE, noAddress)
	s.call(linux.SYS_CLOSE_RANGE, 900, 899, 0)
	s.call(linux.SYS_CLOSE_RANGE, 900, 950, 1<<10)
	s.call(linux.SYS_CLOSE_RANGE, 900, 950, 0)
	asOnLinux(t, s)
}

// Record locks: struct flock is read and written, and positions are checked.
func TestLocksAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "0123456789")
	only := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_RDONLY)
	const readLock, writeLock, unlock = 0, 1, 2
	lock := func(kind, whence uint16, start, length uint64) {
		s.put(0x100, slices.Concat(le.AppendUint16(le.AppendUint16(nil, kind), whence), make([]byte, 4))...)
		s.word(0x108, start, length, 0)
	}
	for _, c := range []struct {
		kind, whence  uint16
		start, length uint64
	}{
		{readLock, 0, 0, 0}, {writeLock, 0, 5, 2}, {unlock, 0, 0, 0}, {writeLock, 2, minus, 1}, {readLock, 1, 0, 3},
		{3, 0, 0, 0}, {readLock, 7, 0, 0}, {readLock, 0, minus, 0}, {readLock, 0, 3, minus - 1}, {readLock, 0, 1, minus - 5},
		{writeLock, 0, 1<<63 - 1, 2}, {writeLock, 0, 1 << 62, 1 << 62},
	} {
		for _, command := range []uint64{linux.F_SETLK, linux.F_GETLK, linux.F_OFD_GETLK, linux.F_OFD_SETLK} {
			for _, fd := range []uint64{f, only} {
				if c.kind == unlock && command == linux.F_OFD_GETLK {
					continue // Linux 6.6 returns any lock
				}
				lock(c.kind, c.whence, c.start, c.length)
				s.call(linux.SYS_FCNTL, fd, command, at(0x100))
				s.hide(0x118, 4) // the owner
			}
		}
	}
	s.call(linux.SYS_FCNTL, f, linux.F_SETLK, noAddress)
	s.call(linux.SYS_FCNTL, none, linux.F_SETLK, noAddress)
	lock(readLock, 0, 0, 0)
	s.int32(0x118, 77)
	s.call(linux.SYS_FCNTL, f, linux.F_OFD_SETLK, at(0x100)) // l_pid must be 0
	asOnLinux(t, s)
}

// No file system of Loam, as few of Linux, makes files share content. The errors of the descriptors come first.
func TestRequestsToCloneAsOnLinux(t *testing.T) {
	s := &sequence{}
	file := s.file("file", "content")
	name, dir := s.text("file"), s.text(".")
	readable := s.open(linux.SYS_OPENAT, here, name, linux.O_RDONLY, 0)
	writable := s.open(linux.SYS_OPENAT, here, name, linux.O_WRONLY, 0)
	appending := s.open(linux.SYS_OPENAT, here, name, linux.O_RDWR|linux.O_APPEND, 0)
	folder := s.open(linux.SYS_OPENAT, here, dir, linux.O_RDONLY|linux.O_DIRECTORY, 0)
	all := []uint64{file, readable, writable, appending, folder, 999}
	for _, to := range all {
		for _, from := range all {
			s.call(linux.SYS_IOCTL, to, linux.FICLONE, from)
		}
		s.call(linux.SYS_IOCTL, to, linux.FICLONERANGE, noAddress)
	}
	asOnLinux(t, s)
}
