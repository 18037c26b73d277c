package main

import (
	"os"
	"runtime/debug"
	"syscall"
	"unsafe"
)

const page = 4096

// pages maps anonymous memory.
func pages(n, flags uintptr) uintptr {
	a, errno := call(syscall.SYS_MMAP, 0, n*page, 3, syscall.MAP_PRIVATE|syscall.MAP_ANON|flags, ^uintptr(0), 0)
	if errno != 0 {
		panic(errno)
	}
	return a
}

// peek returns a pointer to the byte at an address.
func peek(a uintptr) *byte { return *(**byte)(unsafe.Pointer(&a)) }

// faults reports whether reading a byte is a fault.
func faults(a uintptr) (bad bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { bad = recover() != nil }()
	sink = *peek(a)
	return false
}

// writeFaults reports whether writing a byte is a fault.
func writeFaults(a uintptr) (bad bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { bad = recover() != nil }()
	*peek(a) = 1
	return false
}

var sink byte

var memory = []probe{
	{"mmap of no bytes", func() string { return outcome(syscall.SYS_MMAP, 0, 0, 3, 0x22, ^uintptr(0), 0) }},
	{"mmap of half of the address space", func() string { return outcome(syscall.SYS_MMAP, 0, 1<<62, 3, 0x22, ^uintptr(0), 0) }},
	{"mmap with neither MAP_PRIVATE nor MAP_SHARED", func() string {
		return outcome(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_ANON, ^uintptr(0), 0)
	}},
	{"mmap with MAP_HUGETLB", func() string {
		return outcome(syscall.SYS_MMAP, 0, 2<<20, 3, 0x22|0x40000, ^uintptr(0), 0)
	}},
	{"mmap with MAP_POPULATE", func() string { return yes(!faults(pages(4, 0x8000) + page)) }},
	{"mmap with MAP_FIXED_NOREPLACE over a mapping", func() string {
		a := pages(2, 0)
		return outcome(syscall.SYS_MMAP, a, page, 3, 0x22|0x100000, ^uintptr(0), 0)
	}},
	{"mmap with MAP_FIXED at an odd address", func() string {
		return outcome(syscall.SYS_MMAP, pages(2, 0)+1, page, 3, 0x22|0x10, ^uintptr(0), 0)
	}},
	{"mmap with MAP_32BIT", func() string {
		a, errno := call(syscall.SYS_MMAP, 0, page, 3, 0x22|0x40, ^uintptr(0), 0)
		return joined(word(errno), yes(a < 1<<32))
	}},
	{"mmap with MAP_GROWSDOWN", func() string { return outcome(syscall.SYS_MMAP, 0, page, 3, 0x22|0x100, ^uintptr(0), 0) }},
	{"mmap with MAP_LOCKED", func() string { return outcome(syscall.SYS_MMAP, 0, page, 3, 0x22|0x2000, ^uintptr(0), 0) }},
	{"mmap of a file, private", func() string {
		f := file("m", []byte("hello"))
		a, errno := call(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_PRIVATE, f.Fd(), 0)
		if errno != 0 {
			return word(errno)
		}
		*peek(a) = 'j'
		b, _ := os.ReadFile("m")
		return joined(string(b), string(rune(*peek(a))), yes(*peek(a + 10) == 0))
	}},
	{"mmap of a file, shared", func() string {
		f := file("m", []byte("hello"))
		a, errno := call(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_SHARED, f.Fd(), 0)
		if errno != 0 {
			return word(errno)
		}
		*peek(a) = 'j'
		b, _ := os.ReadFile("m")
		return string(b)
	}},
	{"mmap of a file, shared, twice", func() string {
		f := file("m", []byte("hello"))
		a, errno := call(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_SHARED, f.Fd(), 0)
		b, errno2 := call(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_SHARED, f.Fd(), 0)
		return joined(word(errno), word(errno2), yes(a != b))
	}},
	{"mmap of a file, shared, MAP_FIXED", func() string {
		f := file("m", []byte("hello"))
		return outcome(syscall.SYS_MMAP, pages(1, 0), page, 3, syscall.MAP_SHARED|syscall.MAP_FIXED, f.Fd(), 0)
	}},
	{"mmap of a file, to write, opened to read", func() string {
		file("m", []byte("hello")).Close()
		f, _ := os.Open("m")
		return outcome(syscall.SYS_MMAP, 0, page, 3, syscall.MAP_SHARED, f.Fd(), 0)
	}},
	{"mmap of a folder", func() string {
		f, _ := os.Open(".")
		return outcome(syscall.SYS_MMAP, 0, page, 1, syscall.MAP_PRIVATE, f.Fd(), 0)
	}},
	{"mprotect to read only", func() string {
		a := pages(1, 0)
		s := outcome(syscall.SYS_MPROTECT, a, page, 1)
		return joined(s, yes(faults(a)), yes(writeFaults(a)))
	}},
	{"mprotect to none", func() string {
		a := pages(1, 0)
		s := outcome(syscall.SYS_MPROTECT, a, page, 0)
		return joined(s, yes(faults(a)))
	}},
	{"mprotect of what is not mapped", func() string {
		a := pages(4, 0)
		call(syscall.SYS_MUNMAP, a+page, page)
		return outcome(syscall.SYS_MPROTECT, a, 4*page, 1)
	}},
	{"munmap at an odd address", func() string { return outcome(syscall.SYS_MUNMAP, pages(1, 0)+1, page) }},
	{"munmap of no bytes", func() string { return outcome(syscall.SYS_MUNMAP, pages(1, 0), 0) }},
	{"munmap, then read", func() string {
		a := pages(1, 0)
		s := outcome(syscall.SYS_MUNMAP, a, page)
		return joined(s, yes(faults(a)))
	}},
	{"mremap that grows and may move", func() string {
		a := pages(2, 0)
		*peek(a + page) = 7
		b, errno := call(syscall.SYS_MREMAP, a, 2*page, 64*page, 1)
		if errno != 0 {
			return word(errno)
		}
		return yes(*peek(b + page) == 7)
	}},
	{"mremap that shrinks", func() string {
		a := pages(4, 0)
		s := outcome(syscall.SYS_MREMAP, a, 4*page, page, 0)
		return joined(s, yes(faults(a+2*page)))
	}},
	{"madvise MADV_DONTNEED", func() string {
		a := pages(1, 0)
		*peek(a) = 7
		return joined(outcome(syscall.SYS_MADVISE, a, page, 4), yes(*peek(a) == 0))
	}},
	{"madvise MADV_FREE", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 8) }},
	{"madvise MADV_HUGEPAGE", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 14) }},
	{"madvise MADV_DONTFORK", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 10) }},
	{"madvise MADV_DONTDUMP", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 16) }},
	{"madvise MADV_WILLNEED", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 3) }},
	{"madvise with unknown advice", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0), page, 99) }},
	{"madvise at an odd address", func() string { return outcome(syscall.SYS_MADVISE, pages(1, 0)+1, page, 4) }},
	{"madvise of what is not mapped", func() string {
		a := pages(1, 0)
		call(syscall.SYS_MUNMAP, a, page)
		return outcome(syscall.SYS_MADVISE, a, page, 4)
	}},
	{"mincore", func() string {
		a := pages(3, 0)
		*peek(a + page) = 1
		b, v := buffer(3)
		s := outcome(syscall.SYS_MINCORE, a, 3*page, v)
		return joined(s, yes(b[0]&1 == 1), yes(b[1]&1 == 1), yes(b[2]&1 == 1))
	}},
	{"mincore at an odd address", func() string {
		_, v := buffer(1)
		return outcome(syscall.SYS_MINCORE, pages(1, 0)+1, page, v)
	}},
	{"mincore of what is not mapped", func() string {
		a := pages(2, 0)
		call(syscall.SYS_MUNMAP, a+page, page)
		_, v := buffer(2)
		return outcome(syscall.SYS_MINCORE, a, 2*page, v)
	}},
	{"mincore without a vector", func() string { return outcome(syscall.SYS_MINCORE, pages(1, 0), page, 0) }},
	{"msync", func() string { return outcome(syscall.SYS_MSYNC, pages(1, 0), page, 4) }},
	{"msync with two contradicting flags", func() string { return outcome(syscall.SYS_MSYNC, pages(1, 0), page, 5) }},
	{"mlock and munlock", func() string {
		a := pages(1, 0)
		return joined(outcome(syscall.SYS_MLOCK, a, page), outcome(syscall.SYS_MUNLOCK, a, page))
	}},
	{"mlock2 MLOCK_ONFAULT", func() string { return outcome(325, pages(1, 0), page, 1) }},
	{"mlock of what is not mapped", func() string {
		a := pages(1, 0)
		call(syscall.SYS_MUNMAP, a, page)
		return outcome(syscall.SYS_MLOCK, a, page)
	}},
	{"membarrier MEMBARRIER_CMD_QUERY", func() string {
		n, errno := call(324, 0, 0, 0)
		return joined(word(errno), yes(n&1 != 0))
	}},
	{"membarrier MEMBARRIER_CMD_GLOBAL", func() string { return outcome(324, 1, 0, 0) }},
	{"membarrier, private, unregistered", func() string { return outcome(324, 8, 0, 0) }},
	{"membarrier, private, registered", func() string {
		return joined(outcome(324, 16, 0, 0), outcome(324, 8, 0, 0))
	}},
	{"membarrier with an unknown command", func() string { return outcome(324, 1<<30, 0, 0) }},
	{"memfd_create", func() string {
		fd, errno := call(319, text("m"), 0)
		if errno != 0 {
			return word(errno)
		}
		n, err := syscall.Write(int(fd), []byte("abc"))
		return joined(word(err), yes(n == 3))
	}},
	{"memfd_secret", func() string { return outcome(447, 0) }},
	{"brk", func() string { n, errno := call(syscall.SYS_BRK, 0); return joined(word(errno), yes(n > 0)) }},
	{"shmget", func() string { return outcome(syscall.SYS_SHMGET, 0, page, 0o1600) }},
	{"semget", func() string { return outcome(syscall.SYS_SEMGET, 0, 1, 0o1600) }},
	{"msgget", func() string { return outcome(syscall.SYS_MSGGET, 0, 0o1600) }},
	{"get_mempolicy", func() string { return outcome(syscall.SYS_GET_MEMPOLICY, 0, 0, 0, 0, 0) }},
	{"a read of address 0", func() string { return yes(faults(0)) }},
	{"write from a bad address", func() string {
		f := file("bad", nil)
		return outcome(syscall.SYS_WRITE, f.Fd(), 0x0dead000, 10)
	}},
	{"process_vm_readv of the own process", func() string {
		src, a := buffer(4)
		copy(src, "abcd")
		dst, b := buffer(4)
		l, r := [2]uintptr{b, 4}, [2]uintptr{a, 4}
		n, errno := call(310, uintptr(os.Getpid()), at(&l), 1, at(&r), 1, 0)
		return joined(word(errno), yes(n == 4 && string(dst) == "abcd"))
	}},
}
