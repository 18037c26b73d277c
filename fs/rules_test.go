package fs_test

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// rules is a tree with a user's view of it.
type rules struct {
	*testing.T
	root, user *fs.View
}

func newRules(t *testing.T) rules {
	root := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	user := *root
	user.Who = fs.Credentials{UID: 1000, GID: 1000, Groups: []uint32{50}}
	return rules{t, root, &user}
}

// make creates a file as root and gives it an owner.
func (r rules) make(path string, mode fs.Mode, uid, gid uint32) {
	r.Helper()
	create := r.root.Mknod(r.root.Root, path, mode, fs.Device{})
	if mode.Type() == fs.Dir {
		create = r.root.Mkdir(r.root.Root, path, mode)
	}
	if create != nil {
		r.Fatal(path, create)
	}
	r.change(path, fs.Change{Fields: fs.SetOwner | fs.SetGroup, UID: uid, GID: gid})
	r.change(path, fs.Change{Fields: fs.SetMode, Mode: mode & fs.Permissions})
}

func (r rules) change(path string, c fs.Change) {
	r.Helper()
	if err := r.root.Change(r.at(path), c); err != nil {
		r.Fatal(path, err)
	}
}

// at returns the place of a path, without following a symbolic link.
func (r rules) at(path string) fs.Place {
	r.Helper()
	p, err := r.root.Lookup(r.root.Root, path, false)
	if err != nil {
		r.Fatal(path, err)
	}
	return p
}

func (r rules) attr(path string) fs.Attr { r.Helper(); return r.at(path).Node.Attr() }

func (r rules) want(what string, err, want error) {
	r.Helper()
	if err != want {
		r.Errorf("%s: %v, want %v", what, err, want)
	}
}

// In a directory with the set-group-ID bit, a new file inherits the group (inode(7)). A user who is not a member of this group
// cannot create a program that runs with it. All expected values were observed on Linux 6.18.
func TestNewFilesInSetGroupDirectory(t *testing.T) {
	r := newRules(t)
	r.make("/team", fs.Dir|fs.SetGID|0o777, 0, 77)
	r.make("/own", fs.Dir|fs.SetGID|0o777, 0, 50)
	for _, dir := range []string{"/team", "/own"} {
		for name, mode := range map[string]fs.Mode{
			"program": fs.SetGID | 0o755, "locked": fs.SetGID | 0o745, "all": fs.SetUID | fs.SetGID | fs.Sticky | 0o777,
		} {
			f, err := r.user.Open(r.user.Root, dir+"/"+name, fs.Create|fs.WriteOnly, mode)
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		r.want("mkdir", r.user.Mkdir(r.user.Root, dir+"/sub", 0o755), nil)
		r.want("mknod", r.user.Mknod(r.user.Root, dir+"/fifo", fs.Fifo|fs.SetGID|0o755, fs.Device{}), nil)
		r.want("symlink", r.user.Symlink("x", r.user.Root, dir+"/link"), nil)
	}
	f, err := r.user.Open(r.user.Root, "/team", fs.TempFile|fs.MustBeDir|fs.WriteOnly, fs.SetGID|0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if a := f.Attr(); a.Mode != fs.Regular|0o755 || a.GID != 77 {
		t.Errorf("O_TMPFILE: mode %o, group %d", a.Mode, a.GID)
	}
	for path, want := range map[string]fs.Mode{
		"/team/program": fs.Regular | 0o755, "/team/locked": fs.Regular | fs.SetGID | 0o745,
		"/team/all": fs.Regular | fs.SetUID | fs.Sticky | 0o755, "/team/sub": fs.Dir | fs.SetGID | 0o755,
		"/team/fifo": fs.Fifo | 0o755, "/team/link": fs.Symlink | 0o777,
		"/own/program": fs.Regular | fs.SetGID | 0o755, "/own/all": fs.Regular | fs.SetUID | fs.SetGID | fs.Sticky | 0o755,
		"/own/fifo": fs.Fifo | fs.SetGID | 0o755, "/own/link": fs.Symlink | 0o777,
	} {
		gid := uint32(77)
		if strings.HasPrefix(path, "/own") {
			gid = 50
		}
		if a := r.attr(path); a.Mode != want || a.GID != gid || a.UID != 1000 {
			t.Errorf("%s: mode %o, owner %d:%d, want mode %o, owner 1000:%d", path, a.Mode, a.UID, a.GID, want, gid)
		}
	}
}

// A user can give another user's file a further name only if the file is not a privileged program (protected_hardlinks of
// proc(5)).
func TestLinkToFileOfOther(t *testing.T) {
	r := newRules(t)
	r.make("/d", fs.Dir|0o777, 0, 0)
	for name, test := range map[string]struct {
		mode fs.Mode
		want error
	}{
		"plain": {0o666, nil}, "unreadable": {0o222, linux.EPERM}, "setuid": {fs.SetUID | 0o777, linux.EPERM},
		"setgid": {fs.SetGID | 0o777, linux.EPERM}, "locked": {fs.SetGID | 0o767, nil},
	} {
		r.make("/"+name, fs.Regular|test.mode, 0, 0)
		r.want(name, r.user.Link(r.at("/"+name), r.user.Root, "/d/"+name), test.want)
	}
	r.make("/mine", fs.Regular|fs.SetUID|0o755, 1000, 1000)
	r.want("mine", r.user.Link(r.at("/mine"), r.user.Root, "/d/mine"), nil)
}

// A directory moves to another directory only if the user may write to it, because ".." changes. An exchange moves two.
func TestMoveOfUnwritableDirectory(t *testing.T) {
	r := newRules(t)
	for path, mode := range map[string]fs.Mode{"/a": 0o777, "/b": 0o777} {
		r.make(path, fs.Dir|mode, 0, 0)
	}
	r.make("/a/free", fs.Dir|0o777, 0, 0)
	r.make("/a/file", fs.Regular|0o444, 0, 0)
	r.make("/b/fixed", fs.Dir|0o755, 0, 0)
	move := func(from, to string, flags fs.RenameFlags) error {
		return r.user.Rename(r.user.Root, from, r.user.Root, to, flags)
	}
	r.want("fixed to a", move("/b/fixed", "/a/x", 0), linux.EACCES)
	r.want("exchange fixed, free", move("/b/fixed", "/a/free", fs.RenameExchange), linux.EACCES)
	r.want("exchange free, fixed", move("/a/free", "/b/fixed", fs.RenameExchange), linux.EACCES)
	r.want("exchange file, fixed", move("/a/file", "/b/fixed", fs.RenameExchange), linux.EACCES)
	r.want("exchange in one directory", move("/a/file", "/a/free", fs.RenameExchange), nil)
	r.want("rename in one directory", move("/b/fixed", "/b/renamed", 0), nil)
	r.want("file to b", move("/a/free", "/b/file", 0), nil)
}

// The order of the checks of rename(2) and of path resolution decides which error is returned.
func TestOrderOfErrors(t *testing.T) {
	r := newRules(t)
	r.make("/d", fs.Dir|0o755, 0, 0)
	r.make("/m", fs.Dir|0o755, 0, 0)
	r.make("/f", fs.Regular|0o644, 0, 0)
	r.make("/closed", fs.Dir|0o700, 0, 0)
	if err := r.root.Tree.Mount(memfs.New(memfs.Config{}), r.at("/m"), true); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string, flags fs.RenameFlags) error {
		return r.root.Rename(r.root.Root, from, r.root.Root, to, flags)
	}
	r.want("a dot to another mount", move("/m/.", "/x", 0), linux.EXDEV)
	r.want("to a dot", move("/f", "/d/.", 0), linux.EBUSY)
	r.want("to a dot that must not exist", move("/f", "/d/.", fs.RenameNoReplace), linux.EEXIST)
	r.want("a dot to a dot", move("/d/.", "/d/.", fs.RenameNoReplace), linux.EBUSY)
	r.want("exchange with a slash after a file", move("/d", "/f/", fs.RenameExchange), linux.ENOTDIR)
	r.want("exchange with a slash after a directory", move("/f", "/d/", fs.RenameExchange), nil)
	r.want("exchange back", move("/f/", "/d", fs.RenameExchange), nil)

	userMove := func(from, to string, flags fs.RenameFlags) error {
		return r.user.Rename(r.user.Root, from, r.user.Root, to, flags)
	}
	r.make("/open", fs.Dir|0o777, 0, 0)
	r.make("/open/d", fs.Dir|0o755, 0, 0)
	r.make("/sticky", fs.Dir|fs.Sticky|0o777, 0, 0)
	r.make("/sticky/d", fs.Dir|0o755, 0, 0)
	r.want("link", r.root.Link(r.at("/f"), r.root.Root, "/d/link"), nil)
	r.want("a file to itself", userMove("/f", "/f", 0), nil)
	r.want("a file to another name of it", userMove("/f", "/d/link", 0), nil)
	r.want("a file to itself, which must not exist", userMove("/f", "/f", fs.RenameNoReplace), linux.EEXIST)
	r.want("a file to itself, with a slash", userMove("/f", "/f/", 0), linux.ENOTDIR)
	r.want("to a file that must not exist", userMove("/f", "/d/link", fs.RenameNoReplace), linux.EEXIST)
	r.want("exchange with nothing", userMove("/f", "/d/nothing", fs.RenameExchange), linux.ENOENT)
	r.want("an unwritable directory to a sticky one", userMove("/open/d", "/sticky/d", 0), linux.EPERM)
	r.want("nothing on a read-only file system", move("/m/nothing", "/m/x", 0), linux.EROFS)

	long := strings.Repeat("n", 256)
	for path, want := range map[string]error{
		"/f/" + long: linux.ENOTDIR, "/closed/" + long: linux.EACCES, "/d/" + long: linux.ENAMETOOLONG,
	} {
		_, err := r.user.Lookup(r.user.Root, path, true)
		r.want(path[:3], err, want)
	}
}

// A path and the target of a symbolic link in it are each limited to PATH_MAX bytes, but not both together.
func TestLongPathThroughLink(t *testing.T) {
	r := newRules(t)
	r.make("/d", fs.Dir|0o755, 0, 0)
	r.make("/d/f", fs.Regular|0o644, 0, 0)
	r.want("symlink", r.root.Symlink("/"+strings.Repeat("./", 2000)+"d", r.root.Root, "/link"), nil)
	p, err := r.root.Lookup(r.root.Root, "/link/"+strings.Repeat("./", 2000)+"f", true)
	if err != nil || p.Node != r.at("/d/f").Node {
		t.Error(err)
	}
}

// A change of the owner or the group removes the set-user-ID and set-group-ID bits from files of all types except directories.
func TestChownRemovesSetIDs(t *testing.T) {
	r := newRules(t)
	for name, kind := range map[string]fs.Mode{"/f": fs.Regular, "/p": fs.Fifo, "/s": fs.Socket, "/c": fs.CharDevice, "/d": fs.Dir} {
		r.make(name, kind|0o755, 1000, 1000)
		r.change(name, fs.Change{Fields: fs.SetMode, Mode: fs.SetUID | fs.SetGID | 0o755})
		r.want(name, r.user.Change(r.at(name), fs.Change{Fields: fs.SetGroup, GID: 50}), nil)
		want := kind | 0o755
		if kind == fs.Dir {
			want |= fs.SetUID | fs.SetGID
		}
		if a := r.attr(name); a.Mode != want || a.GID != 50 {
			t.Errorf("%s: mode %o, group %d, want mode %o, group 50", name, a.Mode, a.GID, want)
		}
	}
}

// A user who is not a member of the group of a file removes its set-group-ID bit by a write, by truncate and by chown, even if the
// group may not execute the file.
func TestSetGroupOfLockedFile(t *testing.T) {
	r := newRules(t)
	keeper := *r.user
	keeper.Who.Rights = fs.Explicit | fs.KeepSetIDs
	for name, test := range map[string]struct {
		by   *fs.View
		gid  uint32
		keep bool
	}{"member": {r.user, 50, true}, "other": {r.user, 77, false}, "keeper": {&keeper, 77, true}} {
		for change, do := range map[string]func(path string) error{
			"write": func(path string) error {
				f, err := test.by.Open(r.root.Root, path, fs.WriteOnly, 0)
				if err == nil && !test.by.Who.Has(fs.KeepSetIDs) { // as write(2) does
					f.ClearSetIDs(&test.by.Who)
				}
				return err
			},
			"O_TRUNC": func(path string) error {
				_, err := test.by.Open(r.root.Root, path, fs.WriteOnly|fs.Truncate, 0)
				return err
			},
			"truncate": func(path string) error { return test.by.Change(r.at(path), fs.Change{Fields: fs.SetSize}) },
			"chown": func(path string) error {
				return test.by.Change(r.at(path), fs.Change{Fields: fs.SetGroup, GID: 50})
			},
		} {
			path := "/" + name + change
			r.make(path, fs.Regular|fs.SetGID|0o666, 1000, test.gid)
			r.want(path, do(path), nil)
			if got := r.attr(path).Mode&fs.SetGID != 0; got != test.keep {
				t.Errorf("%s: the bit stays: %v, want %v", path, got, test.keep)
			}
		}
	}
}
