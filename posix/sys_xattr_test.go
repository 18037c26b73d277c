package posix

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// Names and values have a maximum length (xattr(7)), and some files have no attributes.
func TestXattr(t *testing.T) {
	p := process(t)
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_CREAT|linux.O_RDWR, 0o600))
	path, open := XattrFile{Path: "/f", Follow: true}, XattrFile{ByFD: true, FD: f}
	long := "user." + strings.Repeat("n", linux.XATTR_NAME_MAX-5)
	ok(t, p.SetXattr(path, "user.a", make([]byte, linux.XATTR_SIZE_MAX), 0))
	ok(t, p.SetXattr(open, long, nil, 0))
	for _, c := range []struct {
		file  XattrFile
		name  string
		size  int
		flags int
		want  Errno
	}{
		{path, long + "n", 0, 0, linux.ERANGE},
		{path, "", 0, 0, linux.ERANGE},
		{path, "user.b", linux.XATTR_SIZE_MAX + 1, 0, linux.E2BIG},
		{path, "user.b", 0, 4, linux.EINVAL},
		{XattrFile{ByFD: true, FD: 99}, "user.b", 0, 0, linux.EBADF},
		{XattrFile{ByFD: true, FD: fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", 0o10000000, 0))}, "user.b", 0, 0, linux.EBADF},
	} {
		if got := p.SetXattr(c.file, c.name, make([]byte, c.size), c.flags); got != c.want {
			t.Errorf("%.20q of %d bytes, flags %d: %v, want %v", c.name, c.size, c.flags, got, c.want)
		}
	}
	value, errno := p.GetXattr(open, "user.a")
	list, errno2 := p.ListXattr(open)
	if len(value) != linux.XATTR_SIZE_MAX || errno != 0 || string(list) != "user.a\x00"+long+"\x00" || errno2 != 0 {
		t.Errorf("%d bytes, %v; names %q, %v", len(value), errno, list, errno2)
	}
	ok(t, p.RemoveXattr(path, long))
	if errno := p.RemoveXattr(open, long); errno != linux.ENODATA {
		t.Errorf("removed twice: %v", errno)
	}
}

// The list of names has a maximum size, and so does the memory for attributes.
func TestXattrList(t *testing.T) {
	p := process(t)
	file := XattrFile{ByFD: true, FD: fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_CREAT|linux.O_RDWR, 0o600))}
	for i := range linux.XATTR_SIZE_MAX/linux.XATTR_NAME_MAX + 1 {
		name := strings.Repeat("n", linux.XATTR_NAME_MAX-8) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		ok(t, p.SetXattr(file, "user."+name, nil, 0))
	}
	if _, errno := p.ListXattr(file); errno != linux.E2BIG {
		t.Errorf("a list that is too long: %v", errno)
	}
}

// Sockets have no attributes. Calls on them return the errors of Linux.
func TestXattrOfSocket(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	file := XattrFile{ByFD: true, FD: s}
	if _, errno := p.GetXattr(file, "user.a"); errno != linux.ENODATA {
		t.Errorf("get: %v", errno)
	}
	if errno := p.SetXattr(file, "user.a", nil, 0); errno != linux.EPERM {
		t.Errorf("set: %v", errno)
	}
	if errno := p.RemoveXattr(file, "n"); errno != linux.EOPNOTSUPP {
		t.Errorf("remove: %v", errno)
	}
	if list, errno := p.ListXattr(file); len(list) != 0 || errno != 0 {
		t.Errorf("list: %q, %v", list, errno)
	}
}

// All may read attributes of class "security". Only a holder of CAP_SETFCAP changes the capabilities of a file, which must be a struct
// vfs_cap_data, and only one of CAP_SYS_ADMIN changes other attributes.
func TestXattrSecurity(t *testing.T) {
	p := process(t)
	fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_CREAT|linux.O_RDWR, 0o600))
	file, capability := XattrFile{Path: "/f"}, "security.capability"
	value := append([]byte{1, 0, 0, 2, 0, 0x20}, make([]byte, 14)...)
	as := func(capabilities ...int) {
		c := *p.Identity()
		c.EUID, c.FSUID, c.Effective = 7, 7, 0
		for _, n := range capabilities {
			c.Effective |= 1 << n
		}
		p.SetIdentity(7, c, nil)
	}
	as(linux.CAP_SETFCAP)
	ok(t, p.SetXattr(file, capability, value, 0))
	wantErrno(t, p.SetXattr(file, capability, value[:19], 0), linux.EINVAL, "a short struct")
	wantErrno(t, p.SetXattr(file, "security.x", nil, 0), linux.EPERM, "without CAP_SYS_ADMIN")
	as(linux.CAP_SYS_ADMIN)
	wantErrno(t, p.SetXattr(file, capability, value, 0), linux.EPERM, "without CAP_SETFCAP")
	wantErrno(t, p.SetXattr(file, "security.", nil, 0), linux.EINVAL, "no name")
	ok(t, p.SetXattr(file, "security.x", nil, 0))
	as()
	wantErrno(t, p.RemoveXattr(file, capability), linux.EPERM, "remove")
	if got, errno := p.GetXattr(file, capability); string(got) != string(value) || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	if list, errno := p.ListXattr(file); string(list) != "security.capability\x00security.x\x00" || errno != 0 {
		t.Errorf("%q, %v", list, errno)
	}
}

// The file is found before its new capabilities are checked. Capabilities for another user namespace, whose root user has an
// ID in the current one, are stored (capabilities(7), version 3).
func TestXattrCapabilityErrors(t *testing.T) {
	p := process(t)
	fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", create, 0o600))
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/ro", 0o755))
	readOnly := memfs.New(memfs.Config{})
	inside := fs.NewView(fs.NewTree(readOnly))
	if _, err := inside.Open(inside.Root, "f", fs.Create|fs.ReadWrite, 0o600); err != nil {
		t.Fatal(err)
	}
	v := p.View()
	at, err := v.Lookup(v.Root, "/ro", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Tree.Mount(readOnly, at, true); err != nil {
		t.Fatal(err)
	}
	set := func(path, value string) Errno {
		return p.SetXattr(XattrFile{Path: path}, fs.CapabilityXattr, []byte(value), 0)
	}
	wantErrno(t, set("/missing", "bad"), linux.ENOENT, "no file")
	wantErrno(t, set("/ro/f", "bad"), linux.EROFS, "read-only mount")
	wantErrno(t, set("/f", "bad"), linux.EINVAL, "bad value")
	version3 := "\x01\x00\x00\x03" + capable[4:] + "\x09\x00\x00\x00"
	wantErrno(t, set("/f", version3[:20]), linux.EINVAL, "version 3 without root ID")
	wantErrno(t, set("/f", version3), 0, "version 3")
	if value, errno := p.GetXattr(XattrFile{Path: "/f"}, fs.CapabilityXattr); errno != 0 || string(value) != version3 {
		t.Errorf("%q, %v", value, errno)
	}
	asUser(p)
	wantErrno(t, set("/f", "bad"), linux.EINVAL, "bad value without CAP_SETFCAP")
	wantErrno(t, set("/f", capable), linux.EPERM, "without CAP_SETFCAP")
}
