package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// Modes of fallocate(2).
const (
	keepSize = 1
	punch    = 2
	collapse = 8
	zero     = 16
	insert   = 32
	unshare  = 64
)

// allocated returns the effect of fallocate(2) on a file of four pages: the result, and the first byte of each page.
func allocated(mode uintptr, offset, length int) string {
	f := file("allocated", bytes.Repeat([]byte{'a'}, page))
	defer f.Close()
	for i, c := range "bcd" {
		f.WriteAt(bytes.Repeat([]byte{byte(c)}, page), int64(i+1)*page)
	}
	s := outcome(syscall.SYS_FALLOCATE, f.Fd(), mode, uintptr(offset), uintptr(length))
	content, _ := os.ReadFile("allocated")
	first := ""
	for i := 0; i < len(content); i += page {
		if content[i] == 0 {
			first += "0"
		} else {
			first += string(content[i])
		}
	}
	return fmt.Sprintf("%s, %d, %s", s, len(content), first)
}

var files = []probe{
	{"fallocate", func() string { return allocated(0, 3*page, 3*page) }},
	{"fallocate KEEP_SIZE", func() string { return allocated(keepSize, 3*page, 3*page) }},
	{"fallocate PUNCH_HOLE", func() string { return allocated(punch|keepSize, page, page) }},
	{"fallocate PUNCH_HOLE of part of a page", func() string { return allocated(punch|keepSize, page-10, 20) }},
	{"fallocate PUNCH_HOLE beyond the end", func() string { return allocated(punch|keepSize, 3*page, 8*page) }},
	{"fallocate PUNCH_HOLE without KEEP_SIZE", func() string { return allocated(punch, page, page) }},
	{"fallocate ZERO_RANGE", func() string { return allocated(zero, page, page) }},
	{"fallocate ZERO_RANGE beyond the end", func() string { return allocated(zero, 3*page, 3*page) }},
	{"fallocate ZERO_RANGE beyond the end, KEEP_SIZE", func() string { return allocated(zero|keepSize, 3*page, 3*page) }},
	{"fallocate COLLAPSE_RANGE", func() string { return allocated(collapse, page, page) }},
	{"fallocate COLLAPSE_RANGE to the end", func() string { return allocated(collapse, page, 3*page) }},
	{"fallocate COLLAPSE_RANGE of part of a page", func() string { return allocated(collapse, page, 10) }},
	{"fallocate INSERT_RANGE", func() string { return allocated(insert, page, page) }},
	{"fallocate INSERT_RANGE at the end", func() string { return allocated(insert, 4*page, page) }},
	{"fallocate with two modes", func() string { return allocated(zero|collapse, page, page) }},
	{"fallocate with an unknown mode", func() string { return allocated(1<<20, page, page) }},
	{"fallocate, opened to read", func() string {
		file("r", []byte("x")).Close()
		f, _ := os.Open("r")
		return outcome(syscall.SYS_FALLOCATE, f.Fd(), 0, 0, 10)
	}},
	{"fallocate of no bytes", func() string { return outcome(syscall.SYS_FALLOCATE, file("r", nil).Fd(), 0, 0, 0) }},
	{"fallocate of a pipe", func() string {
		_, w, _ := os.Pipe()
		return outcome(syscall.SYS_FALLOCATE, w.Fd(), 0, 0, 10)
	}},
	{"a punched hole is found by SEEK_HOLE", func() string {
		f := file("hole", bytes.Repeat([]byte{1}, 64<<10))
		s := outcome(syscall.SYS_FALLOCATE, f.Fd(), punch|keepSize, 16<<10, 16<<10)
		h, _ := f.Seek(0, 4)
		d, _ := f.Seek(h, 3)
		return fmt.Sprint(s, ", ", h, ", ", d)
	}},
	{"readahead", func() string { return outcome(syscall.SYS_READAHEAD, file("r", []byte("hello")).Fd(), 0, 4096) }},
	{"readahead, opened to write", func() string {
		f, _ := os.OpenFile("r", os.O_WRONLY|os.O_CREATE, 0o644)
		return outcome(syscall.SYS_READAHEAD, f.Fd(), 0, 4096)
	}},
	{"readahead of a pipe", func() string { r, _, _ := os.Pipe(); return outcome(syscall.SYS_READAHEAD, r.Fd(), 0, 4096) }},
	{"readahead of what is not open", func() string { return outcome(syscall.SYS_READAHEAD, 999, 0, 4096) }},
	{"fadvise64 POSIX_FADV_DONTNEED", func() string { return outcome(syscall.SYS_FADVISE64, file("r", nil).Fd(), 0, 0, 4) }},
	{"fadvise64 with unknown advice", func() string { return outcome(syscall.SYS_FADVISE64, file("r", nil).Fd(), 0, 0, 99) }},
	{"sync_file_range", func() string { return outcome(syscall.SYS_SYNC_FILE_RANGE, file("r", nil).Fd(), 0, 0, 7) }},
	{"sync, syncfs, fsync and fdatasync", func() string {
		f := file("r", nil).Fd()
		return joined(outcome(syscall.SYS_SYNC), outcome(306, f), outcome(syscall.SYS_FSYNC, f), outcome(syscall.SYS_FDATASYNC, f))
	}},
	{"pread and pwrite at an offset", func() string {
		f := file("r", []byte("hello"))
		f.WriteAt([]byte("J"), 0)
		b := make([]byte, 5)
		n, err := f.ReadAt(b, 0)
		return joined(word(err), fmt.Sprint(n), string(b))
	}},
	{"preadv2 RWF_NOWAIT", func() string {
		f := file("r", []byte("hello"))
		b := make([]byte, 5)
		f.Read(b)
		v := [2]uintptr{at(&b[0]), 5}
		return count(327, f.Fd(), at(&v), 1, 0, 0, 8)
	}},
	{"pwritev2 RWF_APPEND", func() string {
		f := file("r", []byte("hello"))
		b := []byte("!")
		v := [2]uintptr{at(&b[0]), 1}
		s := count(328, f.Fd(), at(&v), 1, 0, 0, 16)
		got, _ := os.ReadFile("r")
		return joined(s, string(got))
	}},
	{"preadv2 with an unknown flag", func() string {
		b := make([]byte, 5)
		v := [2]uintptr{at(&b[0]), 5}
		return count(327, file("r", []byte("hello")).Fd(), at(&v), 1, 0, 0, 1<<20)
	}},
	{"copy_file_range", func() string {
		a, b := file("a", []byte("hello")), file("b", nil)
		s := count(326, a.Fd(), 0, b.Fd(), 0, 5, 0)
		got, _ := os.ReadFile("b")
		return joined(s, string(got))
	}},
	{"sendfile to a file", func() string {
		a, b := file("a", []byte("hello")), file("b", nil)
		s := count(syscall.SYS_SENDFILE, b.Fd(), a.Fd(), 0, 5)
		got, _ := os.ReadFile("b")
		return joined(s, string(got))
	}},
	{"open with O_DIRECT", func() string {
		file("d", []byte("x")).Close()
		fd, err := syscall.Open("d", syscall.O_RDONLY|syscall.O_DIRECT, 0)
		syscall.Close(fd)
		return word(err)
	}},
	{"O_DIRECT with an odd buffer", func() string {
		file("d", bytes.Repeat([]byte{1}, 8192)).Close()
		fd, err := syscall.Open("d", syscall.O_RDONLY|syscall.O_DIRECT, 0)
		if err != nil {
			return word(err)
		}
		defer syscall.Close(fd)
		_, a := buffer(8192)
		return count(syscall.SYS_READ, uintptr(fd), a|1, 100)
	}},
	{"open with O_TMPFILE, then linkat", func() string {
		fresh("linked")
		fd, err := syscall.Open(".", syscall.O_RDWR|0o20200000, 0o644)
		if err != nil {
			return word(err)
		}
		syscall.Write(fd, []byte("x"))
		return outcome(syscall.SYS_LINKAT, ^uintptr(99), text(fmt.Sprint("/proc/self/fd/", fd)), ^uintptr(99), text("linked"), 0x400)
	}},
	{"open with O_PATH, then read", func() string {
		file("d", []byte("x")).Close()
		fd, err := syscall.Open("d", 0x200000, 0)
		if err != nil {
			return word(err)
		}
		_, err = syscall.Read(fd, make([]byte, 1))
		return word(err)
	}},
	{"fcntl F_GETPIPE_SZ", func() string { r, _, _ := os.Pipe(); return count(syscall.SYS_FCNTL, r.Fd(), 1032, 0) }},
	{"fcntl F_SETPIPE_SZ", func() string { r, _, _ := os.Pipe(); return count(syscall.SYS_FCNTL, r.Fd(), 1031, 1<<17) }},
	{"fcntl F_SETLEASE", func() string {
		file("lease", nil).Close()
		f, _ := os.Open("lease")
		return joined(outcome(syscall.SYS_FCNTL, f.Fd(), 1024, 0), count(syscall.SYS_FCNTL, f.Fd(), 1025, 0))
	}},
	{"fcntl F_NOTIFY", func() string { f, _ := os.Open("."); return outcome(syscall.SYS_FCNTL, f.Fd(), 1026, 0) }},
	{"fcntl F_SETOWN and F_GETOWN", func() string {
		r, _, _ := os.Pipe()
		s := outcome(syscall.SYS_FCNTL, r.Fd(), 8, uintptr(os.Getpid()))
		n, errno := call(syscall.SYS_FCNTL, r.Fd(), 9, 0)
		return joined(s, word(errno), yes(int(n) == os.Getpid()))
	}},
	{"fcntl F_SETSIG and F_GETSIG", func() string {
		r, _, _ := os.Pipe()
		return joined(outcome(syscall.SYS_FCNTL, r.Fd(), 10, 34), count(syscall.SYS_FCNTL, r.Fd(), 11, 0))
	}},
	{"fcntl F_GET_RW_HINT", func() string {
		var v uint64
		return outcome(syscall.SYS_FCNTL, file("l", nil).Fd(), 1035, at(&v))
	}},
	{"fcntl F_SETLK, twice", func() string {
		f := file("l", nil)
		l := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 10}
		return joined(word(syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l)), word(syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &l)))
	}},
	{"open file description locks", func() string {
		f := file("l", nil)
		g, _ := os.OpenFile("l", os.O_RDWR, 0)
		l, m := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 10}, syscall.Flock_t{Type: syscall.F_WRLCK, Len: 10}
		return joined(word(syscall.FcntlFlock(f.Fd(), 37, &l)), word(syscall.FcntlFlock(g.Fd(), 37, &m)))
	}},
	{"flock by two descriptions", func() string {
		f := file("l", nil)
		g, _ := os.Open("l")
		return joined(word(syscall.Flock(int(f.Fd()), syscall.LOCK_EX)), word(syscall.Flock(int(g.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)))
	}},
	{"ioctl FIONREAD of a file", func() string {
		var n int32
		s := outcome(syscall.SYS_IOCTL, file("l", []byte("hello")).Fd(), 0x541b, at(&n))
		return joined(s, fmt.Sprint(n))
	}},
	{"ioctl FS_IOC_GETFLAGS", func() string {
		var n uint64
		return outcome(syscall.SYS_IOCTL, file("l", nil).Fd(), 0x80086601, at(&n))
	}},
	{"ioctl FIGETBSZ", func() string {
		var n int32
		s := outcome(syscall.SYS_IOCTL, file("a", nil).Fd(), 2, at(&n))
		return joined(s, fmt.Sprint(n))
	}},
	{"lseek SEEK_DATA beyond the end", func() string { _, err := file("a", []byte("x")).Seek(100, 3); return word(err) }},
	{"a write beyond RLIMIT_FSIZE's offset", func() string { _, err := file("a", nil).WriteAt([]byte("x"), 1<<62); return word(err) }},
	{"ftruncate to a terabyte", func() string { return word(file("big", nil).Truncate(1 << 40)) }},
	{"close_range", func() string {
		a := file("a", nil)
		fd, _ := syscall.Dup(int(a.Fd()))
		s := outcome(436, uintptr(fd), uintptr(fd), 0)
		return joined(s, word(syscall.Close(fd)))
	}},
	{"name_to_handle_at", func() string {
		file("a", nil).Close()
		h := [40]byte{32}
		var id int32
		return outcome(303, ^uintptr(99), text("a"), at(&h), at(&id), 0)
	}},
	{"statx", func() string {
		file("a", []byte("abc")).Close()
		b, a := buffer(256)
		s := outcome(332, ^uintptr(99), text("a"), 0, 0xfff, a)
		return joined(s, fmt.Sprint(b[40]), fmt.Sprintf("%#x", uint32(b[0])|uint32(b[1])<<8))
	}},
	{"io_uring_setup", func() string { var p [120]byte; return outcome(425, 4, at(&p)) }},
	{"io_setup", func() string { var c uintptr; return outcome(syscall.SYS_IO_SETUP, 4, at(&c)) }},
	{"fanotify_init", func() string { return outcome(300, 0, 0) }},
	{"inotify of a new file", func() string {
		fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK)
		if err != nil {
			return word(err)
		}
		defer syscall.Close(fd)
		must(os.MkdirAll("watched", 0o755))
		_, err = syscall.InotifyAddWatch(fd, "watched", syscall.IN_CREATE)
		os.WriteFile("watched/f", nil, 0o644)
		n, err2 := syscall.Read(fd, make([]byte, 100))
		return joined(word(err), word(err2), fmt.Sprint(n))
	}},
	{"cachestat", func() string {
		var r [2]uint64
		var s [5]uint64
		return outcome(451, file("a", []byte("x")).Fd(), at(&r), at(&s), 0)
	}},
}
