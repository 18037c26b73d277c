package main

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	"example.com/guest/internal/check"
)

// fxattr makes fgetxattr(2) or a similar call with a descriptor, which package syscall lacks.
func fxattr(trap uintptr, f *os.File, name string, value []byte, flags uintptr) (int, error) {
	p, err := syscall.BytePtrFromString(name)
	check.Nil(err, "a name")
	var at unsafe.Pointer
	if len(value) > 0 {
		at = unsafe.Pointer(&value[0])
	}
	n, _, e := syscall.Syscall6(trap, f.Fd(), uintptr(unsafe.Pointer(p)), uintptr(at), uintptr(len(value)), flags, 0)
	return int(n), errno(e)
}

// xattrs: extended attributes of the user namespace ("user."), by paths, links and descriptors.
func xattrs() {
	const create, replace = 1, 2
	check.Nil(os.WriteFile("f", nil, 0o600), "write")
	check.Nil(os.Symlink("f", "l"), "symlink")
	check.Equal(syscall.Setxattr("f", "user.a", []byte("one"), replace), error(syscall.ENODATA), "replace what is not there")
	check.Nil(syscall.Setxattr("l", "user.a", []byte("one"), create), "setxattr")
	check.Equal(syscall.Setxattr("f", "user.a", []byte("two"), create), error(syscall.EEXIST), "create what is there")
	var b [8]byte // on the stack
	n, err := syscall.Getxattr("f", "user.a", b[:])
	check.That(string(b[:n]) == "one" && err == nil, "getxattr: %q, %v", b[:n], err)
	n, err = syscall.Getxattr("f", "user.a", nil)
	check.That(n == 3 && err == nil, "its size: %d, %v", n, err)
	_, err = syscall.Getxattr("f", "user.a", b[:2])
	check.Equal(err, error(syscall.ERANGE), "too little room")
	_, err = syscall.Getxattr("f", "user.b", b[:])
	check.Equal(err, error(syscall.ENODATA), "one that is not there")

	f, err := os.Open("f")
	check.Nil(err, "open")
	_, err = fxattr(syscall.SYS_FSETXATTR, f, "user.b", []byte("three"), 0)
	check.Nil(err, "fsetxattr")
	n, err = fxattr(syscall.SYS_FGETXATTR, f, "user.b", b[:], 0)
	check.That(string(b[:n]) == "three" && err == nil, "fgetxattr: %q, %v", b[:n], err)
	list := make([]byte, 100)
	n, err = syscall.Listxattr("l", list)
	check.That(err == nil && strings.Contains(string(list[:n]), "user.a\x00") && strings.Contains(string(list[:n]), "user.b\x00"), "listxattr: %q, %v", list[:n], err)
	check.Equal(syscall.Removexattr("l", "user.a"), nil, "removexattr")
	check.Equal(syscall.Removexattr("f", "user.a"), error(syscall.ENODATA), "removexattr again")
	check.Nil(os.Remove("f"), "remove")
	n, err = fxattr(syscall.SYS_FGETXATTR, f, "user.b", b[:], 0)
	check.That(n == 5 && err == nil, "of a file that is removed but open: %d, %v", n, err)
	f.Close()
	xattrLimits()
}

// xattrLimits: invalid names and values, and files that can have no attributes.
func xattrLimits() {
	check.Nil(os.WriteFile("f", nil, 0o600), "write")
	for _, c := range []struct {
		name  string
		size  int
		flags int
		want  error
	}{
		{"user." + strings.Repeat("n", 250), 1, 0, nil},
		{"user." + strings.Repeat("n", 251), 1, 0, syscall.ERANGE},
		{"", 1, 0, syscall.ERANGE},
		{"user.", 1, 0, syscall.EINVAL},
		{"n", 1, 0, syscall.EOPNOTSUPP},
		{"user.n", 64<<10 + 1, 0, syscall.E2BIG},
		{"user.n", 1, 4, syscall.EINVAL},
		{"user.n", 0, 0, nil},
	} {
		check.Equal(syscall.Setxattr("f", c.name, make([]byte, c.size), c.flags), c.want, "setxattr of "+c.name)
	}
	check.Nil(syscall.Mkfifo("fifo", 0o600), "mkfifo")
	check.Equal(syscall.Setxattr("fifo", "user.a", []byte("x"), 0), error(syscall.EPERM), "of a FIFO")
	var b [8]byte
	_, err := syscall.Getxattr("fifo", "user.a", b[:])
	check.Equal(err, error(syscall.ENODATA), "of a FIFO")
	_, err = syscall.Getxattr("absent", "user.a", b[:])
	check.Equal(err, error(syscall.ENOENT), "of no file")
	r, w, err := os.Pipe()
	check.Nil(err, "pipe")
	_, err = fxattr(syscall.SYS_FSETXATTR, r, "user.a", []byte("x"), 0)
	check.Equal(err, error(syscall.EPERM), "of a pipe")
	_, err = fxattr(syscall.SYS_FGETXATTR, r, "user.a", b[:], 0)
	check.Equal(err, error(syscall.ENODATA), "of a pipe")
	check.Nil(syscall.Fchmod(int(r.Fd()), 0o600), "fchmod of a pipe")
	r.Close()
	w.Close()
}
