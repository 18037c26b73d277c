package main

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// shared: mappings that write to a file (MAP_SHARED), which databases use.
func shared() {
	f := create("shared")
	check.Nil(f.Truncate(10_000), "truncate")
	m := mapShared(f, 0, 10_000)
	copy(m[5000:], "by the mapping")
	check.Equal(content("shared")[5000:5014], "by the mapping", "what the mapping wrote")
	_, err := f.WriteAt([]byte("by the file"), 8192)
	check.Nil(err, "write")
	check.Equal(string(m[8192:8203]), "by the file", "what the file wrote")
	second(f)
	grow(f, m)
	check.Nil(syscall.Munmap(m), "munmap")
	remapped(f)
	check.Nil(f.Close(), "close")
	closed()
}

const readWrite = syscall.PROT_READ | syscall.PROT_WRITE

func mapShared(f *os.File, offset int64, length int) []byte {
	m, err := syscall.Mmap(int(f.Fd()), offset, length, readWrite, syscall.MAP_SHARED)
	check.Nil(err, "mmap")
	return m
}

// second: a second mapping, of a part of the file, by a descriptor that is open for reading.
func second(f *os.File) {
	r, err := os.Open(f.Name())
	check.Nil(err, "open")
	_, err = syscall.Mmap(int(r.Fd()), 0, 10, readWrite, syscall.MAP_SHARED)
	check.Equal(err, error(syscall.EACCES), "a mapping for writing")
	m, err := syscall.Mmap(int(r.Fd()), 4096, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	check.Nil(err, "mmap")
	check.Nil(r.Close(), "close")
	check.Equal(string(m[904:918]), "by the mapping", "a second mapping")
	check.Nil(syscall.Madvise(m, syscall.MADV_DONTNEED), "madvise")
	_, err = f.WriteAt([]byte("again"), 4096)
	check.Nil(err, "write")
	check.Equal(string(m[:5]), "again", "a mapping for reading")
	check.Nil(syscall.Munmap(m), "munmap")
}

// grow: a file that becomes longer and shorter while it is mapped.
func grow(f *os.File, m []byte) {
	_, err := f.WriteAt([]byte("behind"), 100_000)
	check.Nil(err, "write")
	check.Nil(f.Truncate(6000), "truncate")
	check.Nil(f.Truncate(200_000), "truncate")
	b := content(f.Name())
	check.That(len(b) == 200_000 && strings.Trim(b[6000:], "\x00") == "", "what was cut off is zeros")
	check.Equal(string(m[5000:5014]), "by the mapping", "what was left")
}

// remapped: mremap(2) and msync(2) of a mapping that extends far beyond the file's end.
func remapped(f *os.File) {
	m := mapShared(f, 0, 4096)
	const length, mayMove = 8 << 30, 1
	at, _, errno := syscall.Syscall6(syscall.SYS_MREMAP, uintptr(unsafe.Pointer(&m[0])), 4096, length, mayMove, 0, 0)
	check.That(errno == 0, "mremap: %v", errno)
	check.Nil(f.Truncate(1<<20), "truncate")
	m = unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), at)), 1<<20)
	m[1<<20-1] = 'z'
	_, _, errno = syscall.Syscall(syscall.SYS_MSYNC, at, 1<<20, syscall.MS_SYNC)
	check.That(errno == 0, "msync: %v", errno)
	b := content(f.Name())
	check.That(b[1<<20-1] == 'z' && b[5000:5014] == "by the mapping", "what was written after mremap")
	_, _, errno = syscall.Syscall(syscall.SYS_MUNMAP, at, length, 0)
	check.That(errno == 0, "munmap: %v", errno)
}

// closed: a mapping stays valid after its file is closed and removed.
func closed() {
	f := create("closed")
	check.Nil(f.Truncate(4096), "truncate")
	m := mapShared(f, 0, 4096)
	check.Nil(f.Close(), "close")
	check.Nil(os.Remove("closed"), "remove")
	m[0] = 1
	check.Nil(syscall.Munmap(m), "munmap")
}
