package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// nameless: files that are created without a name (O_TMPFILE), and get one when they are complete.
func nameless() {
	const (
		tempFile      = 0o20200000
		follow        = 0x400 // AT_SYMLINK_FOLLOW
		here          = ^uintptr(99)
		excl, noWrite = syscall.O_EXCL, syscall.O_RDONLY
	)
	link := func(old, name string, flags uintptr) error {
		a, _ := syscall.BytePtrFromString(old)
		b, _ := syscall.BytePtrFromString(name)
		_, _, e := syscall.Syscall6(syscall.SYS_LINKAT, here, uintptr(unsafe.Pointer(a)), here, uintptr(unsafe.Pointer(b)), flags, 0)
		return errno(e)
	}
	dir, _ := os.Getwd()
	f, err := os.OpenFile(dir, tempFile|os.O_RDWR, 0o640)
	check.Nil(err, "O_TMPFILE")
	self := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	name, err := os.Readlink(self)
	check.That(err == nil && strings.HasPrefix(name, dir+"/#") && strings.HasSuffix(name, " (deleted)"), "its name: %s, %v", name, err)
	fmt.Fprint(f, "whole")
	entries, err := os.ReadDir(dir)
	check.That(err == nil && len(entries) == 0, "the folder has %v, %v", entries, err)
	check.Equal(link(self, "a", follow), nil, "linkat")
	check.Equal(link(self, "a", follow), error(syscall.EEXIST), "linkat of a name that is taken")
	check.Equal(content("a"), "whole", "what it holds")
	st, err := f.Stat()
	check.That(err == nil && st.Sys().(*syscall.Stat_t).Nlink == 1 && st.Mode() == 0o640, "stat: %v, %v", st, err)
	f.Close()

	f, err = os.OpenFile(".", tempFile|os.O_WRONLY|excl, 0o600)
	check.Nil(err, "O_TMPFILE with O_EXCL")
	check.Equal(link(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "b", follow), error(syscall.ENOENT), "a name, with O_EXCL")
	f.Close()
	_, err = syscall.Open(".", tempFile|noWrite, 0o600)
	check.Equal(err, error(syscall.EINVAL), "to read only")
	_, err = syscall.Open("a", tempFile|os.O_RDWR, 0o600)
	check.Equal(err, error(syscall.ENOTDIR), "in a file")
}
