package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// Numbers that package syscall lacks.
const (
	sysMemfdCreate = 319
	cloexec        = 1
	allowSealing   = 2
	fAddSeals      = 1033
	fGetSeals      = 1034
	sealSeal       = 1
	sealShrink     = 2
	sealGrow       = 4
	sealWrite      = 8
)

func memfd(name string, flags uintptr) (*os.File, error) {
	p, err := syscall.BytePtrFromString(name)
	check.Nil(err, "a name")
	fd, _, e := syscall.Syscall(sysMemfdCreate, uintptr(unsafe.Pointer(p)), flags, 0)
	if e != 0 {
		return nil, e
	}
	return os.NewFile(fd, name), nil
}

func fcntl(f *os.File, cmd, arg uintptr) (int, error) {
	n, _, e := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), cmd, arg)
	return int(n), errno(e)
}

// memory: memfd_create, and its seals.
func memory() {
	f, err := memfd("loam test", cloexec|allowSealing)
	check.Nil(err, "memfd_create")
	defer f.Close()
	path := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	name, err := os.Readlink(path)
	check.That(name == "/memfd:loam test (deleted)" && err == nil, "its name: %q, %v", name, err)
	var st syscall.Stat_t
	check.Nil(syscall.Fstat(int(f.Fd()), &st), "fstat")
	check.Equal(st.Mode, uint32(syscall.S_IFREG|0o777), "its mode")
	check.Equal(st.Nlink, uint64(0), "its names")
	check.Nil(f.Truncate(8192), "ftruncate")
	b, err := syscall.Mmap(int(f.Fd()), 0, 8192, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check.Nil(err, "mmap")
	copy(b, "by the mapping")
	_, err = f.WriteAt([]byte("by write"), 4096)
	check.Nil(err, "write")
	check.Equal(string(b[4096:4104]), "by write", "the mapping")
	again, err := os.ReadFile(path)
	check.That(err == nil && bytes.HasPrefix(again, []byte("by the mapping")), "opened again: %d bytes, %v", len(again), err)
	_, err = fcntl(f, fAddSeals, sealWrite)
	check.Equal(err, error(syscall.EBUSY), "a seal on what is mapped for writing")
	check.Nil(syscall.Munmap(b), "munmap")

	_, err = fcntl(f, fAddSeals, sealShrink|sealGrow)
	check.Nil(err, "seals of the size")
	check.Equal(f.Truncate(100).(*os.PathError).Err, error(syscall.EPERM), "shorter")
	check.Equal(f.Truncate(10000).(*os.PathError).Err, error(syscall.EPERM), "longer")
	n, err := syscall.Pwrite(int(f.Fd()), make([]byte, 8192), 4096)
	check.That(n == 4096 && err == nil, "beyond the end: %d, %v", n, err)
	_, err = syscall.Pwrite(int(f.Fd()), make([]byte, 1), 8192)
	check.Equal(err, error(syscall.EPERM), "behind the end")
	_, err = fcntl(f, fAddSeals, sealWrite|sealSeal)
	check.Nil(err, "seals of the content")
	_, err = f.WriteAt([]byte("x"), 0)
	check.Equal(err.(*os.PathError).Err, error(syscall.EPERM), "write")
	_, err = syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check.Equal(err, error(syscall.EPERM), "mmap for writing")
	seals, err := fcntl(f, fGetSeals, 0)
	check.That(seals == sealSeal|sealShrink|sealGrow|sealWrite && err == nil, "seals %#x, %v", seals, err)
	_, err = fcntl(f, fAddSeals, sealGrow)
	check.Equal(err, error(syscall.EPERM), "one more seal")

	plain, err := memfd("", 0)
	check.Nil(err, "without a name")
	seals, err = fcntl(plain, fGetSeals, 0)
	check.That(seals == sealSeal && err == nil, "seals of one without: %#x, %v", seals, err)
	plain.Close()
	_, err = memfd("x", 1<<15)
	check.Equal(err, error(syscall.EINVAL), "unknown flags")
	_, err = memfd(string(bytes.Repeat([]byte("x"), 250)), 0)
	check.Equal(err, error(syscall.EINVAL), "a long name")
}
