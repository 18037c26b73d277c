// Command bounds opens files with restrictions on the resolution of their paths (openat2(2)). Its output is the same on
// Linux.
package main

import (
	"os"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

func main() {
	const (
		number                                    = 437
		noXdev, noMagic, noLinks, beneath, inRoot = 1, 2, 4, 8, 16
	)
	top, err := os.MkdirTemp("/tmp", "openat2")
	check.Nil(err, "MkdirTemp")
	defer os.RemoveAll(top)
	check.Nil(os.MkdirAll(top+"/root/a/b", 0o700), "MkdirAll")
	check.Nil(os.WriteFile(top+"/outside", nil, 0o600), "WriteFile")
	check.Nil(os.WriteFile(top+"/root/file", nil, 0o600), "WriteFile")
	for name, to := range map[string]string{"in": "a/b", "up": "a/../file", "out": "../outside", "absolute": "/file", "far": top + "/outside"} {
		check.Nil(os.Symlink(to, top+"/root/"+name), "Symlink")
	}
	dir, err := syscall.Open(top+"/root", syscall.O_DIRECTORY|syscall.O_RDONLY, 0)
	check.Nil(err, "open")
	defer syscall.Close(dir)
	try := func(path string, how [4]uint64, size uintptr) syscall.Errno {
		p, err := syscall.BytePtrFromString(path)
		check.Nil(err, "path")
		fd, _, errno := syscall.Syscall6(number, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&how)), size, 0, 0)
		if errno == 0 {
			syscall.Close(int(fd))
		}
		return errno
	}
	for _, c := range []struct {
		path    string
		resolve uint64
		want    syscall.Errno
	}{
		{"file", 0, 0}, {"../outside", 0, 0}, {"out", 0, 0}, {top + "/outside", 0, 0},
		{"file", beneath, 0}, {"a/../file", beneath, 0}, {"up", beneath, 0}, {"in", beneath, 0},
		{"../outside", beneath, syscall.EXDEV}, {"a/../../outside", beneath, syscall.EXDEV}, {"out", beneath, syscall.EXDEV},
		{"/file", beneath, syscall.EXDEV}, {"absolute", beneath, syscall.EXDEV}, {"far", beneath, syscall.EXDEV}, {"..", beneath, syscall.EXDEV},
		{"../file", inRoot, 0}, {"../outside", inRoot, syscall.ENOENT}, {"out", inRoot, syscall.ENOENT},
		{"/file", inRoot, 0}, {"absolute", inRoot, 0}, {"far", inRoot, syscall.ENOENT}, {"..", inRoot, 0},
		{"file", noLinks, 0}, {"in", noLinks, syscall.ELOOP}, {"in/.", noLinks, syscall.ELOOP},
		{"/proc/self/fd/0", noMagic, syscall.ELOOP}, {"in", noMagic, 0}, {"file", noXdev, 0}, {"/proc/meminfo", noXdev, syscall.EXDEV},
		{"", beneath, syscall.ENOENT}, {"file", beneath | inRoot, syscall.EINVAL}, {"file", 64, syscall.EINVAL},
	} {
		check.Equal(try(c.path, [4]uint64{2: c.resolve}, 24), c.want, "openat2 of "+c.path)
	}
	for what, c := range map[string]struct {
		how  [4]uint64
		size uintptr
		want syscall.Errno
	}{
		"too short":                {[4]uint64{}, 23, syscall.EINVAL},
		"longer, and zero":         {[4]uint64{}, 32, 0},
		"longer, and something":    {[4]uint64{3: 1}, 32, syscall.E2BIG},
		"a mode without a use":     {[4]uint64{1: 0o600}, 24, syscall.EINVAL},
		"a mode with one":          {[4]uint64{syscall.O_CREAT, 0o600}, 24, 0},
		"a flag that there is not": {[4]uint64{1 << 40}, 24, syscall.EINVAL},
		"a path only, to write":    {[4]uint64{0o10000000 | syscall.O_WRONLY}, 24, syscall.EINVAL},
	} {
		check.Equal(try("file", c.how, c.size), c.want, "openat2: "+what)
	}
	check.Equal(try("new", [4]uint64{syscall.O_CREAT | syscall.O_RDWR, 0o600, beneath}, 24), 0, "a new file")
	_, err = os.Stat(top + "/root/new")
	check.Nil(err, "a new file is there")
	os.RemoveAll(top)
	check.Done()
}
