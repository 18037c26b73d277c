package call

import (
	"testing"

	"loam/abi/linux"
)

// epoll reports a file that is ready again only as the flags of its entry say.
func TestEpollFlagsAsOnLinux(t *testing.T) {
	s := &sequence{}
	set := s.open(linux.SYS_EPOLL_CREATE1, 0)
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	counter := s.open(linux.SYS_EVENTFD2, 3, linux.EFD_NONBLOCK)
	const event, events = 0x100, 0x200
	for _, flags := range []uint32{0, linux.EPOLLET, linux.EPOLLONESHOT, linux.EPOLLET | linux.EPOLLONESHOT, linux.EPOLLEXCLUSIVE} {
		for _, mask := range []uint32{linux.POLLIN, linux.POLLOUT, linux.POLLIN | linux.POLLOUT, linux.POLLPRI, 0, linux.POLLHUP} {
			if flags&linux.EPOLLET != 0 && mask&linux.POLLOUT != 0 {
				continue // which reads make room, and so cause an edge, depends on the sizes of pages
			}
			for _, fd := range []uint64{read, write, a, b, counter} {
				s.put(event, le.AppendUint64(le.AppendUint32(nil, mask|flags), 77)...)
				s.call(linux.SYS_EPOLL_CTL, set, linux.EPOLL_CTL_ADD, fd, at(event))
				s.put(events, make([]byte, 24)...)
				s.call(linux.SYS_EPOLL_WAIT, set, at(events), 2, 0)
				s.call(linux.SYS_EPOLL_WAIT, set, at(events), 2, 0)
				s.call(linux.SYS_WRITE, write, at(0x400), 1)
				s.call(linux.SYS_WRITE, a, at(0x400), 1)
				s.call(linux.SYS_EPOLL_WAIT, set, at(events), 2, 0)
				s.call(linux.SYS_READ, read, at(0x400), 1)
				s.call(linux.SYS_READ, b, at(0x400), 1)
				s.call(linux.SYS_EPOLL_WAIT, set, at(events), 2, 0)
				s.put(event, le.AppendUint64(le.AppendUint32(nil, mask|flags), 78)...)
				s.call(linux.SYS_EPOLL_CTL, set, linux.EPOLL_CTL_MOD, fd, at(event))
				s.call(linux.SYS_EPOLL_WAIT, set, at(events), 2, 0)
				s.call(linux.SYS_EPOLL_CTL, set, linux.EPOLL_CTL_DEL, fd, at(event))
			}
		}
	}
	asOnLinux(t, s)
}

// select(2) with descriptors in its sets: the sets are replaced by those that are ready, up to the number of descriptors.
func TestSelectedAsOnLinux(t *testing.T) {
	s := &sequence{}
	read, write := s.pair(linux.SYS_PIPE2, 0, at(0), linux.O_NONBLOCK)
	a, b := s.pair(linux.SYS_SOCKETPAIR, 0, linux.AF_UNIX, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0, at(0))
	f := s.file("file", "content")
	const first, words = 832, 14 // descriptors are numbered from 832, the first bit of a word
	for i, fd := range []uint64{read, write, a, b, f} {
		s.call(linux.SYS_DUP3, fd, first+uint64(i), 0)
	}
	const readable, writable, special, timeout = 0x200, 0x300, 0x400, 0x80
	sets := func(mask uint64) {
		for _, set := range []uint64{readable, writable, special} {
			s.put(set, make([]byte, 8*words)...)
			s.word(set+first/8, mask)
		}
		s.word(timeout, 0, 0)
	}
	for _, state := range []string{"empty", "data", "closed"} {
		switch state {
		case "data":
			s.call(linux.SYS_WRITE, write, at(0x1000), 5)
			s.call(linux.SYS_WRITE, a, at(0x1000), 5)
		case "closed":
			for _, fd := range []uint64{write, a, first + 1, first + 2} {
				s.call(linux.SYS_CLOSE, fd)
			}
		}
		for _, mask := range []uint64{0, 1, 2, 4, 8, 16, 31, 32, 1<<63 | 1} {
			for _, n := range []uint64{first, first + 1, first + 3, first + 5, first + 6} {
				sets(mask)
				s.call(linux.SYS_SELECT, n, at(readable), at(writable), at(special), at(timeout))
				sets(mask)
				s.call(linux.SYS_PSELECT6, n, at(readable), 0, at(special), at(timeout), 0)
			}
		}
	}
	asOnLinux(t, s)
}

// The *at calls with an empty path, with and without AT_EMPTY_PATH, and with flags that they do not know.
func TestEmptyPathsAsOnLinux(t *testing.T) {
	s := &sequence{}
	const room = 0x1000
	f := s.file("file", "content")
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	s.call(linux.SYS_MKDIR, s.text("folder"), 0o755)
	path := s.open(linux.SYS_OPENAT, here, s.text("file"), linux.O_PATH, 0)
	link := s.open(linux.SYS_OPENAT, here, s.text("link"), linux.O_PATH|linux.O_NOFOLLOW, 0)
	folder := s.open(linux.SYS_OPENAT, here, s.text("folder"), linux.O_RDONLY|linux.O_DIRECTORY, 0)
	stat := func() {
		s.hide(room, 24)     // device, inode, and number of links
		s.hide(room+56, 88)  // sizes of blocks, and times
		s.hide(room+48, 8)   // the size of a folder
		s.hide(room+24, 4*3) // the rights of a link and the owner of the file
	}
	for _, fd := range []uint64{f, path, link, folder, here, none} {
		for _, flags := range []uint64{0, linux.AT_EMPTY_PATH, linux.AT_EMPTY_PATH | linux.AT_SYMLINK_NOFOLLOW, linux.AT_SYMLINK_NOFOLLOW, 1 << 20} {
			s.call(linux.SYS_NEWFSTATAT, fd, s.text(""), at(room), flags)
			stat()
			s.call(linux.SYS_FCHOWNAT, fd, s.text(""), minus, minus, flags)
			s.call(linux.SYS_FACCESSAT2, fd, s.text(""), 4, flags)
			s.call(linux.SYS_LINKAT, fd, s.text(""), here, s.text("file"), flags)
			s.call(linux.SYS_UNLINKAT, fd, s.text(""), flags)
			s.call(linux.SYS_MKDIRAT, fd, s.text(""), 0o700)
			s.call(linux.SYS_OPENAT, fd, s.text(""), 0, 0)
			s.call(linux.SYS_RENAMEAT2, fd, s.text(""), here, s.text("x"), 0)
			s.call(linux.SYS_FCHMODAT, fd, s.text(""), 0o644)
			s.call(linux.SYS_STATX, fd, s.text(""), flags, linux.STATX_BASIC_STATS, at(room))
			s.hide(room, 256)
		}
	}
	asOnLinux(t, s)
}

// statx(2): the flags of synchronisation exclude each other, and a reserved bit of the mask is an error.
func TestStatxMasksAsOnLinux(t *testing.T) {
	s := &sequence{}
	f := s.file("file", "content")
	s.call(linux.SYS_SYMLINK, s.text("file"), s.text("link"))
	const room, times = 0x1000, 0x100
	s.word(times, 1_000_000_000, 123, 1_500_000_000, 456_789_000)
	s.call(linux.SYS_UTIMENSAT, here, s.text("file"), at(times), 0)
	const forceSync, dontSync = 0x2000, 0x4000
	for _, name := range []string{"file", "link", "absent", "file/x"} {
		for _, flags := range []uint64{0, linux.AT_SYMLINK_NOFOLLOW, forceSync, dontSync, forceSync | dontSync, linux.AT_EMPTY_PATH, 1 << 10, 1 << 20} {
			for _, mask := range []uint64{0, 1, linux.STATX_BASIC_STATS, 0x7fffffff, 1 << 31, minus} {
				s.put(room, make([]byte, 256)...)
				s.call(linux.SYS_STATX, here, s.text(name), flags, mask, at(room))
				s.hide(room, 16)     // mask, size of blocks, attributes
				s.hide(room+20, 12)  // owner, and the mode of a link
				s.hide(room+32, 8)   // inode
				s.hide(room+40, 216) // size and times of a link, and devices
			}
		}
	}
	for _, flags := range []uint64{linux.AT_EMPTY_PATH, 0} {
		s.call(linux.SYS_STATX, f, s.text(""), flags, linux.STATX_BASIC_STATS, at(room))
		s.hide(room, 16)
		s.hide(room+20, 8)
		s.hide(room+32, 8)
		s.hide(room+48, 16)   // blocks, and the mask of attributes
		s.hide(room+80, 32)   // the times of birth and of the last change
		s.hide(room+136, 120) // devices, and fields of newer releases
	}
	asOnLinux(t, s)
}
