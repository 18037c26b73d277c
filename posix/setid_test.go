package posix

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/pseudo"
	"loam/posix/credential"
	"loam/posix/socket"
)

// modifications are the ways to modify the file "/f". Each is called with a descriptor for writing.
var modifications = map[string]func(t *testing.T, p *Process, f int){
	"write": func(t *testing.T, p *Process, f int) { write(t, p, f, "x") },
	"pwrite": func(t *testing.T, p *Process, f int) {
		_, errno := p.Pwrite(f, []byte("x"), 3)
		ok(t, errno)
	},
	"copy_file_range": func(t *testing.T, p *Process, f int) {
		from := fd(t)(p.OpenAt(linux.AT_FDCWD, "/from", linux.O_RDONLY, 0))
		var at int64
		_, errno := p.CopyFileRange(from, &at, f, nil, 7)
		ok(t, errno)
	},
	"splice": func(t *testing.T, p *Process, f int) {
		r, w := newPipe(t, p, 0)
		write(t, p, w, "content")
		_, errno := p.Splice(r, nil, f, nil, 7, 0)
		ok(t, errno)
	},
	"sendfile": func(t *testing.T, p *Process, f int) {
		from := fd(t)(p.OpenAt(linux.AT_FDCWD, "/from", linux.O_RDONLY, 0))
		var at int64
		_, errno := p.Sendfile(f, from, &at, 7)
		ok(t, errno)
	},
	"fallocate": func(t *testing.T, p *Process, f int) { ok(t, p.Fallocate(f, 0, 0, 100)) },
	"ftruncate": func(t *testing.T, p *Process, f int) { ok(t, p.Ftruncate(f, 1)) },
	"truncate":  func(t *testing.T, p *Process, _ int) { ok(t, p.Truncate("/f", 1)) },
	"O_TRUNC": func(t *testing.T, p *Process, _ int) {
		fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_WRONLY|linux.O_TRUNC, 0))
	},
}

// capable is a struct vfs_cap_data of version 2 with CAP_NET_RAW.
var capable = string(append([]byte{1, 0, 0, 2, 0, 0x20}, make([]byte, 14)...))

// privileged creates "/f" with file capabilities and a mode, and returns a descriptor that has written to the file before. It
// also creates "/from", whose content is "content".
func privileged(t *testing.T, p *Process, mode int) int {
	t.Helper()
	write(t, p, fd(t)(p.OpenAt(linux.AT_FDCWD, "/from", create, 0o644)), "content")
	f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", create, 0o666))
	write(t, p, f, "program")
	ok(t, p.SetXattr(XattrFile{Path: "/f"}, fs.CapabilityXattr, []byte(capable), 0))
	ok(t, p.Fchmod(f, uint32(mode)))
	return f
}

// asUser runs the process as another user without capabilities.
func asUser(p *Process) {
	c := *p.Identity()
	c.EUID, c.FSUID, c.Effective = 7, 7, 0
	p.SetIdentity(7, c, nil)
}

// Each modification of a file removes its capabilities, also one by user 0, and whether or not the file is executable. Only
// user 0 keeps the set-user-ID bit (CAP_FSETID).
func TestModificationRemovesPrivileges(t *testing.T) {
	for name, modify := range modifications {
		for _, user := range []bool{false, true} {
			for _, mode := range []int{0o666, 0o4777} {
				p := files(t)
				f := privileged(t, p, mode)
				if user {
					asUser(p)
				}
				modify(t, p, f)
				if _, errno := p.GetXattr(XattrFile{Path: "/f"}, fs.CapabilityXattr); errno != linux.ENODATA {
					t.Errorf("%s by another user %v, mode %o: the file keeps its capabilities: %v", name, user, mode, errno)
				}
				s, _ := p.Fstat(f)
				if want := fs.Mode(mode); user && s.Mode&fs.SetUID != 0 || !user && s.Mode&fs.Permissions != want {
					t.Errorf("%s by another user %v, mode %o: the mode is %o", name, user, mode, s.Mode&fs.Permissions)
				}
			}
		}
	}
}

// chown of a file removes its capabilities, also by user 0.
func TestChownRemovesCapabilities(t *testing.T) {
	p := files(t)
	f := privileged(t, p, 0o644)
	ok(t, p.Fchown(f, -1, 5))
	if _, errno := p.GetXattr(XattrFile{Path: "/f"}, fs.CapabilityXattr); errno != linux.ENODATA {
		t.Errorf("the file keeps its capabilities: %v", errno)
	}
}

// Changes that are not modifications of the content or the owner keep the capabilities of a file.
func TestCapabilitiesStay(t *testing.T) {
	p := files(t)
	f := privileged(t, p, 0o644)
	ok(t, p.Fchmod(f, 0o755))
	_, errno := p.Write(f, nil)
	ok(t, errno)
	read(t, p, f)
	if value, errno := p.GetXattr(XattrFile{Path: "/f"}, fs.CapabilityXattr); errno != 0 || string(value) != capable {
		t.Errorf("%q, %v", value, errno)
	}
}

// Only the owner of a file may set O_NOATIME (fcntl(2)). A flag that is set already stays without a check.
func TestSetNoAccessTime(t *testing.T) {
	p := files(t)
	plain := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", create, 0o666))
	set := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", linux.O_RDWR|linux.O_NOATIME, 0))
	_, errno := p.Fcntl(plain, linux.F_SETFL, linux.O_NOATIME)
	wantErrno(t, errno, 0, "the owner")
	p.Fcntl(plain, linux.F_SETFL, 0)
	asUser(p)
	_, errno = p.Fcntl(plain, linux.F_SETFL, linux.O_NOATIME|linux.O_APPEND)
	wantErrno(t, errno, linux.EPERM, "another user")
	if flags, _ := p.Fcntl(plain, linux.F_GETFL, 0); flags&(linux.O_NOATIME|linux.O_APPEND) != 0 {
		t.Errorf("the flags are %#x", flags)
	}
	_, errno = p.Fcntl(set, linux.F_SETFL, linux.O_NOATIME|linux.O_APPEND)
	wantErrno(t, errno, 0, "the flag is set already")
	r, _ := newPipe(t, p, 0)
	_, errno = p.Fcntl(r, linux.F_SETFL, linux.O_NOATIME)
	wantErrno(t, errno, 0, "a pipe")
}

// access(2) checks the real user, also for the directories of the path: a set-user-ID program asks for its caller. With AT_EACCESS, it checks
// the effective user.
func TestAccessOfRealUser(t *testing.T) {
	p := files(t)
	ok(t, p.MkdirAt(linux.AT_FDCWD, "/private", 0o700))
	for _, path := range []string{"/secret", "/private/file"} {
		fd(t)(p.OpenAt(linux.AT_FDCWD, path, create, 0o600))
	}
	ok(t, p.ChmodAt(linux.AT_FDCWD, "/private/file", 0o666, 0))
	root := credential.New(0, 0)
	program, dropped, fixed, daemon := root, root, root, root
	program.UID = 1000
	dropped.EUID, dropped.FSUID, dropped.Effective = 1000, 1000, 0
	fixed.UID, fixed.Secure = 1000, credential.NoSetUIDFixup
	daemon.UID, daemon.EUID, daemon.FSUID, daemon.Effective = 1000, 1000, 1000, 1<<linux.CAP_DAC_OVERRIDE
	for name, test := range map[string]struct {
		of              credential.Set
		real, effective Errno
	}{
		"root": {root, 0, 0}, "a set-user-ID program": {program, linux.EACCES, 0}, "root as another user": {dropped, 0, linux.EACCES},
		"without fixup": {fixed, 0, 0}, "a user with a capability": {daemon, linux.EACCES, 0},
	} {
		p.SetIdentity(7, test.of, nil)
		for _, path := range []string{"/secret", "/private/file"} {
			wantErrno(t, p.AccessAt(linux.AT_FDCWD, path, 4, 0), test.real, name+": "+path)
			wantErrno(t, p.AccessAt(linux.AT_FDCWD, path, 4, linux.AT_EACCESS), test.effective, name+" with AT_EACCESS: "+path)
		}
	}
}

// A write to a setting by another user fails, even without bytes.
func TestWriteOfSettingByAnother(t *testing.T) {
	set := func(text string, _ int64) (int, error) { return len(text), nil }
	proc := pseudo.Proc(pseudo.Process{PID: 1, Sysctls: map[string]pseudo.Setting{"sys/fs/x": {Text: func() string { return "1\n" }, Set: set}}})
	p := New(Options{Files: fs.NewTree(proc)})
	w := fd(t)(p.OpenAt(linux.AT_FDCWD, "/sys/fs/x", linux.O_WRONLY, 0))
	r := fd(t)(p.OpenAt(linux.AT_FDCWD, "/sys/fs/x", linux.O_RDONLY, 0))
	asUser(p)
	for _, text := range []string{"", "1"} {
		_, errno := p.Write(w, []byte(text))
		wantErrno(t, errno, linux.EPERM, "write")
		_, errno = p.Write(r, []byte(text))
		wantErrno(t, errno, linux.EBADF, "write to a descriptor for reading")
	}
}

// As on Linux, chown with two IDs of -1 removes the set-user-ID and set-group-ID bits. Only a file without such bits need not be
// the caller's.
func TestChownToTheSameOwner(t *testing.T) {
	type caller struct{ user, group uint32 }
	root, owner, outside, other := caller{0, 0}, caller{7, 7}, caller{7, 8}, caller{8, 8}
	for _, c := range []struct {
		mode   uint32
		by     caller
		result uint32
		errno  Errno
	}{
		{0o6777, root, 0o777, 0},
		{0o6777, owner, 0o777, 0},
		{0o6777, other, 0o6777, linux.EPERM},
		{0o2666, owner, 0o2666, 0},
		{0o2666, outside, 0o666, 0},
		{0o2666, other, 0o2666, linux.EPERM},
		{0o6666, root, 0o2666, 0},
		{0o644, other, 0o644, 0},
	} {
		p := files(t)
		f := fd(t)(p.OpenAt(linux.AT_FDCWD, "/f", create, 0o600))
		ok(t, p.Fchown(f, 7, 7))
		ok(t, p.Fchmod(f, c.mode))
		p.SetIdentity(7, credential.New(c.by.user, c.by.group), nil)
		errno := p.ChownAt(linux.AT_FDCWD, "/f", -1, -1, 0)
		st, _ := p.StatAt(linux.AT_FDCWD, "/f", 0)
		if got := uint32(st.Mode & fs.Permissions); errno != c.errno || got != c.result {
			t.Errorf("chown of a file of mode %o by %v: %v, then mode %o, want %v and %o", c.mode, c.by, errno, got, c.errno, c.result)
		}
	}
}

// Sockets with SO_REUSEPORT share a port only if their programs have the same user, so that no other user receives a part of
// the packets (socket(7)).
func TestSharedPortHasOneUser(t *testing.T) {
	for name, create := range map[string][2]int{"TCP": {linux.SOCK_STREAM, 0}, "UDP": {linux.SOCK_DGRAM, 0}, "UDP-Lite": {linux.SOCK_DGRAM, linux.IPPROTO_UDPLITE}} {
		p := process(t)
		bind := func(user uint32) Errno {
			p.SetIdentity(7, credential.New(user, user), nil)
			s := fd(t)(p.Socket(linux.AF_INET, create[0], create[1]))
			ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_REUSEPORT, socket.IntValue(1)))
			return p.Bind(s, localhost(4000))
		}
		wantErrno(t, bind(5), 0, name+", the first socket")
		wantErrno(t, bind(6), linux.EADDRINUSE, name+", a socket of another user")
		wantErrno(t, bind(5), 0, name+", a second socket of the user")
	}
}
