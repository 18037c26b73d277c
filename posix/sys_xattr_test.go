package posix

import (
	"strings"
	"syscall"
	"testing"
)

// Bounds of names and values (xattr(7)), and what has no attributes.
func TestXattr(t *testing.T) {
	p := process(t)
	f := fd(t)(p.OpenAt(atFDCWD, "/f", syscall.O_CREAT|syscall.O_RDWR, 0o600))
	path, open := XattrFile{Path: "/f", Follow: true}, XattrFile{ByFD: true, FD: f}
	long := "user." + strings.Repeat("n", MaxXattrName-5)
	ok(t, p.SetXattr(path, "user.a", make([]byte, MaxXattr), 0))
	ok(t, p.SetXattr(open, long, nil, 0))
	for _, c := range []struct {
		file  XattrFile
		name  string
		size  int
		flags int
		want  Errno
	}{
		{path, long + "n", 0, 0, syscall.ERANGE},
		{path, "", 0, 0, syscall.ERANGE},
		{path, "user.b", MaxXattr + 1, 0, syscall.E2BIG},
		{path, "user.b", 0, 4, syscall.EINVAL},
		{XattrFile{ByFD: true, FD: 99}, "user.b", 0, 0, syscall.EBADF},
		{XattrFile{ByFD: true, FD: fd(t)(p.OpenAt(atFDCWD, "/f", 0o10000000, 0))}, "user.b", 0, 0, syscall.EBADF},
	} {
		if got := p.SetXattr(c.file, c.name, make([]byte, c.size), c.flags); got != c.want {
			t.Errorf("%.20q of %d bytes, flags %d: %v, want %v", c.name, c.size, c.flags, got, c.want)
		}
	}
	value, errno := p.GetXattr(open, "user.a")
	list, errno2 := p.ListXattr(open)
	if len(value) != MaxXattr || errno != 0 || string(list) != "user.a\x00"+long+"\x00" || errno2 != 0 {
		t.Errorf("%d bytes, %v; names %q, %v", len(value), errno, list, errno2)
	}
	ok(t, p.RemoveXattr(path, long))
	if errno := p.RemoveXattr(open, long); errno != syscall.ENODATA {
		t.Errorf("removed twice: %v", errno)
	}
}

// A list of names has a bound, and so has the memory of attributes.
func TestXattrList(t *testing.T) {
	p := process(t)
	file := XattrFile{ByFD: true, FD: fd(t)(p.OpenAt(atFDCWD, "/f", syscall.O_CREAT|syscall.O_RDWR, 0o600))}
	for i := range MaxXattr/MaxXattrName + 1 {
		name := strings.Repeat("n", MaxXattrName-8) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		ok(t, p.SetXattr(file, "user."+name, nil, 0))
	}
	if _, errno := p.ListXattr(file); errno != syscall.E2BIG {
		t.Errorf("a list that is too long: %v", errno)
	}
}

// Sockets have none, and can be asked.
func TestXattrOfSocket(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))
	file := XattrFile{ByFD: true, FD: s}
	if _, errno := p.GetXattr(file, "user.a"); errno != syscall.ENODATA {
		t.Errorf("get: %v", errno)
	}
	if errno := p.SetXattr(file, "user.a", nil, 0); errno != syscall.EPERM {
		t.Errorf("set: %v", errno)
	}
	if errno := p.RemoveXattr(file, "n"); errno != syscall.EOPNOTSUPP {
		t.Errorf("remove: %v", errno)
	}
	if list, errno := p.ListXattr(file); len(list) != 0 || errno != 0 {
		t.Errorf("list: %q, %v", list, errno)
	}
}
