package ninep_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ninep"
	"loam/fs/ninep/server"
)

// With the cache mode None, the client sees changes of the host at once.
func TestHostChanges(t *testing.T) {
	dir := folder(t)
	v := view(export(t, dir, ninep.Config{Cache: ninep.None}, server.Config{}))
	f := filepath.Join(dir, "f")
	must(t, os.WriteFile(f, []byte("one"), 0o644))
	if got := content(t, v, "f"); got != "one" {
		t.Errorf("it holds %q", got)
	}
	p, err := v.Lookup(v.Dir, "f", false)
	must(t, err)
	must(t, os.WriteFile(f, []byte("three"), 0o644))
	if got := content(t, v, "f"); got != "three" || p.Node.Attr().Size != 5 {
		t.Errorf("it holds %q, size %d", got, p.Node.Attr().Size)
	}
	must(t, os.Rename(f, f+"2"))
	if _, err := v.Lookup(v.Dir, "f", false); err != linux.ENOENT {
		t.Errorf("the old name: %v", err)
	}
	if a := p.Node.Attr(); a.Links != 0 {
		t.Errorf("the node that was at the old name has %d links", a.Links)
	}
	again, err := v.Lookup(v.Dir, "f2", false)
	if err != nil || again != p {
		t.Errorf("the new name is another file: %v", err)
	}
	must(t, os.Remove(f+"2"))
	must(t, os.WriteFile(f, nil, 0o644)) // the new file often gets the inode number of the old one
	if other, err := v.Lookup(v.Dir, "f", false); err != nil || other == p {
		t.Errorf("a new file is the same node as the old one: %v", err)
	}
}

// With the cache mode Loose, the client sees changes of the host when the cached data expires, and its own changes at
// once.
func TestLoose(t *testing.T) {
	dir := folder(t)
	valid := time.Hour
	open := func() *fs.View { return view(export(t, dir, ninep.Config{Valid: valid}, server.Config{})) }
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("one"), 0o644))
	v := open()
	if got := content(t, v, "f"); got != "one" {
		t.Errorf("it holds %q", got)
	}
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	for range 3 { // the name is known to be absent after the second look-up
		if _, err := v.Lookup(v.Dir, "g", false); err != linux.ENOENT {
			t.Errorf("a name that is not there: %v", err)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "g"), nil, 0o644))
	if _, err := v.Lookup(v.Dir, "g", false); err != linux.ENOENT {
		t.Errorf("within the time: %v", err)
	}
	write(t, v, "f", "more", fs.Append)
	if got := content(t, v, "f"); got != "onemore" {
		t.Errorf("after a write it holds %q", got)
	}
	valid = time.Nanosecond
	v = open()
	if _, err := v.Lookup(v.Dir, "h", false); err != linux.ENOENT {
		t.Error(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "h"), []byte("x"), 0o644))
	if got := content(t, v, "h"); got != "x" {
		t.Errorf("after the time it holds %q", got)
	}
}

// The client resolves symbolic links. One that leads out of the folder therefore leads to a file of the client, and
// not of the host.
func TestNoWayOut(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644))
	dir := folder(t)
	must(t, os.Symlink(outside, filepath.Join(dir, "abs")))
	must(t, os.Symlink("../../../../../../../../../..", filepath.Join(dir, "up")))
	must(t, os.Symlink("/proc/self/root", filepath.Join(dir, "magic")))
	s := export(t, dir, ninep.Config{}, server.Config{})
	v := view(s)
	for _, path := range []string{"abs/secret", "up" + outside + "/secret", "magic" + outside + "/secret", outside + "/secret"} {
		if _, err := v.Lookup(v.Dir, path, true); err != linux.ENOENT {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, name := range []string{"..", ".", "a/b", "/etc/passwd", "abs/secret", "a\x00b", ""} {
		if n, err := s.Root().Lookup(name); err == nil && n != fs.Node(s.Root()) {
			t.Errorf("%q leads to %+v", name, n.Attr())
		}
		if _, err := s.Root().Make(name, fs.Regular|0o600, fs.Owner{}, fs.Device{}); err == nil {
			t.Errorf("%q is created", name)
		}
	}
	n, err := s.Root().Lookup("abs")
	must(t, err)
	if d, ok := n.(fs.Directory); ok {
		t.Errorf("a symbolic link is a directory: %v", d)
	}
}

// Owners, permission bits and devices that the client sets are only visible to the client. On the host they are
// regular files of the server's user.
func TestOwners(t *testing.T) {
	dir := folder(t)
	v := view(export(t, dir, ninep.Config{Cache: ninep.None, UID: 5, GID: 6}, server.Config{}))
	v.Who = fs.Credentials{}
	write(t, v, "f", "x", 0)
	p, err := v.Lookup(v.Dir, "f", false)
	must(t, err)
	must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o6711}))
	must(t, v.Mknod(v.Dir, "dev", fs.CharDevice|0o666, fs.Device{Major: 1, Minor: 3}))
	if a := p.Node.Attr(); a.Mode != fs.Regular|0o6711 || a.UID != 0 {
		t.Errorf("the client sees mode %o, user %d", a.Mode, a.UID)
	}
	if a, err := v.Lookup(v.Dir, "dev", false); err != nil || a.Node.Attr().Device != (fs.Device{Major: 1, Minor: 3}) {
		t.Errorf("the device: %v", err)
	}
	for _, name := range []string{"f", "dev"} {
		st, err := os.Lstat(filepath.Join(dir, name))
		must(t, err)
		if st.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 {
			t.Errorf("the host has %v %s", st.Mode(), name)
		}
	}
	if names := v.Xattrs(p); len(names) != 0 {
		t.Errorf("the client sees the attributes %v", names)
	}
	if n, err := v.Lookup(v.Dir, "dev", false); err == nil {
		if _, err := n.Node.Open(fs.ReadOnly); err != linux.ENXIO {
			t.Errorf("the device is opened: %v", err)
		}
	}
	q, err := v.Lookup(v.Dir, ".", false)
	must(t, err)
	if a := q.Node.Attr(); a.UID != 5 || a.GID != 6 {
		t.Errorf("the folder belongs to %d:%d", a.UID, a.GID)
	}
}

// A file that its owner may not read keeps the owner, the type and the set-user-ID bit that the client has given it. The server
// runs without capabilities: on the host, the owner must be able to read the attribute that stores them.
func TestUnreadableOwner(t *testing.T) {
	dir := folder(t)
	v := view(export(t, dir, ninep.Config{Cache: ninep.None, UID: 5, GID: 6}, server.Config{}))
	v.Who = fs.Credentials{}
	write(t, v, "f", "x", 0)
	must(t, v.Mknod(v.Dir, "dev", fs.CharDevice|0o666, fs.Device{Major: 1, Minor: 3}))
	for name, kind := range map[string]fs.Mode{"f": fs.Regular, "dev": fs.CharDevice} {
		p, err := v.Lookup(v.Dir, name, false)
		must(t, err)
		want := func(mode fs.Mode, uid uint32, hostReads bool) {
			t.Helper()
			st, err := os.Lstat(filepath.Join(dir, name))
			must(t, err)
			if a := p.Node.Attr(); a.Mode != kind|mode || a.UID != uid || st.Mode()&0o400 != 0 != hostReads {
				t.Errorf("%s: the client sees mode %o, user %d, want %o, %d; mode %v on the host", name, a.Mode, a.UID, kind|mode, uid, st.Mode())
			}
		}
		must(t, v.Change(p, fs.Change{Fields: fs.SetOwner, UID: 7}))
		must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: fs.SetUID | 0o311}))
		want(fs.SetUID|0o311, 7, true)
		must(t, v.Change(p, fs.Change{Fields: fs.SetGroup, GID: 8}))
		want(0o311, 7, true)
		must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o111}))
		want(0o111, 7, true)
		must(t, v.Change(p, fs.Change{Fields: fs.SetOwner | fs.SetGroup | fs.SetMode, UID: 5, GID: 6, Mode: 0o211}))
		want(0o211, 5, name == "dev")
		must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o644}))
		want(0o644, 5, true)
	}
}

// With a server that does not support Loam's additional requests, the client uses only those of 9P2000.L.
func TestPlain(t *testing.T) {
	dir := folder(t)
	v := view(export(t, dir, ninep.Config{}, server.Config{Plain: true}))
	must(t, v.Mkdir(v.Dir, "d", 0o755))
	for _, name := range []string{"a", "b", "c"} {
		write(t, v, "d/"+name, "content of "+name, 0)
		write(t, v, "d/"+name, "+", fs.Append)
		if got := content(t, v, "d/"+name); got != "content of "+name+"+" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	must(t, v.Rename(v.Dir, "d/a", v.Dir, "d/z", 0))
	must(t, v.Symlink("z", v.Dir, "d/l"))
	if got := content(t, v, "d/l"); got != "content of a+" {
		t.Errorf("it holds %q", got)
	}
	if n := walk(t, v, ".", nil); n != 5 {
		t.Errorf("%d files", n)
	}
	must(t, v.Unlink(v.Dir, "d/z"))
	if err := v.Rename(v.Dir, "d/b", v.Dir, "d/c", fs.RenameExchange); err != linux.EINVAL {
		t.Errorf("exchange: %v", err)
	}
	if _, err := v.Open(v.Dir, "d", fs.ReadWrite|fs.TempFile|fs.MustBeDir, 0o600); err != linux.EOPNOTSUPP {
		t.Errorf("O_TMPFILE: %v", err)
	}
}

// When the server ends, all calls return EIO, also those that are waiting for a reply.
func TestServerEnds(t *testing.T) {
	near, far := dial(t)
	f, err := os.Open(folder(t))
	must(t, err)
	defer f.Close()
	go server.Serve(far, f, server.Config{})
	ended := make(chan error, 1)
	s, err := ninep.New(near, ninep.Config{Ended: func(err error) { ended <- err }})
	must(t, err)
	v := view(s)
	write(t, v, "f", "x", 0)
	far.Close()
	<-ended
	if _, err := v.Open(v.Dir, "g", fs.WriteOnly|fs.Create, 0o600); err != linux.EIO {
		t.Errorf("a call after the end: %v", err)
	}
	must(t, s.Close())
}

// If a file is removed and the host gives its inode number to a new file at once, the client treats the new file as another
// file, whether the types differ or not.
func TestReusedQID(t *testing.T) {
	for name, c := range caches {
		t.Run(name, func(t *testing.T) {
			v, err := view(export(t, folder(t), c, server.Config{})), error(nil)
			must(t, v.Mkdir(v.Dir, "d", 0o755))
			must(t, v.Mkdir(v.Dir, "d/e", 0o755))
			v.Dir, err = v.LookupDir(v.Dir, "d/e")
			must(t, err)
			for range 200 {
				write(t, v, "x", "text", 0)
				old, err := v.Lookup(v.Dir, "x", false)
				must(t, err)
				must(t, v.Unlink(v.Dir, "x"))
				f, err := v.Open(v.Dir, ".", fs.ReadWrite|fs.MustBeDir|fs.TempFile, 0o600)
				must(t, err)
				must(t, f.Close())
				must(t, v.Mkdir(v.Dir, "x", 0o755))
				must(t, v.Mkdir(v.Dir, "y", 0o755))
				must(t, v.Rmdir(v.Dir, "x"))
				must(t, v.Rmdir(v.Dir, "y"))
				write(t, v, "x", "other", 0)
				p, err := v.Lookup(v.Dir, "x", false)
				if err != nil || p == old || old.Node.Attr().Links != 0 {
					t.Fatalf("a new file is the old node, or %v", err)
				}
				must(t, v.Unlink(v.Dir, "x"))
			}
		})
	}
}

// The client cannot change the mode or the owner of a device of the host that the folder contains; of its own devices it can.
func TestHostDevice(t *testing.T) {
	host := folder(t)
	path := filepath.Join(host, "null")
	if err := syscall.Mknod(path, linux.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Skip("needs root: ", err)
	}
	must(t, os.Chmod(path, 0o666))
	v := view(export(t, host, ninep.Config{}, server.Config{}))
	for what, c := range map[string]fs.Change{
		"mode": {Fields: fs.SetMode, Mode: 0o600}, "owner": {Fields: fs.SetOwner, UID: 5}, "group": {Fields: fs.SetGroup, GID: 5},
	} {
		p, err := v.Lookup(v.Dir, "null", true)
		must(t, err)
		if err := p.Node.Change(c); err != linux.EPERM {
			t.Errorf("a change of the %s: %v, want EPERM", what, err)
		}
	}
	st, err := os.Stat(path)
	must(t, err)
	if st.Mode().Perm() != 0o666 || st.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the device is %v", st)
	}
}

// The mode of a symbolic link cannot be changed, and neither can its target outside of the folder by way of the link: not by
// a name, and not by a descriptor of the link itself, which the server reaches by /proc/self/fd.
func TestHostLink(t *testing.T) {
	outside := filepath.Join(folder(t), "outside")
	must(t, os.WriteFile(outside, nil, 0o644))
	must(t, os.Chtimes(outside, time.Unix(1, 0), time.Unix(1, 0)))
	host := folder(t)
	must(t, os.Symlink(outside, filepath.Join(host, "l")))
	before, err := os.Stat(outside)
	must(t, err)
	v := view(export(t, host, ninep.Config{}, server.Config{}))
	p, err := v.Lookup(v.Dir, "l", false)
	must(t, err)
	for _, c := range []fs.Change{
		{Fields: fs.SetMode, Mode: 0o600}, {Fields: fs.SetOwner | fs.SetGroup, UID: 5, GID: 5}, {Fields: fs.SetSize},
		{Fields: fs.SetAccess | fs.SetModify, Access: 7e9, Modify: 7e9},
	} {
		p.Node.Change(c) // a change of the link itself may succeed
	}
	after, err := os.Stat(outside)
	must(t, err)
	if x, y := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t); x.Mode != y.Mode || x.Ctim != y.Ctim || x.Mtim != y.Mtim {
		t.Errorf("the file outside was %v, and is %v", before, after)
	}
}
