package fs_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// mountTest has a tree with the directories /a/b and /m, and the executable file /a/f.
func mountTest(t *testing.T) (v *fs.View, at func(path string) fs.Place) {
	t.Helper()
	v = fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	for _, dir := range []string{"/a", "/a/b", "/m"} {
		if err := v.Mkdir(v.Root, dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Mknod(v.Root, "/a/f", fs.Regular|0o755, fs.Device{}); err != nil {
		t.Fatal(err)
	}
	return v, func(path string) fs.Place {
		t.Helper()
		p, err := v.Lookup(v.Root, path, true)
		if err != nil {
			t.Fatal(path, err)
		}
		return p
	}
}

func sameErrors(t *testing.T, list map[string][2]error) {
	t.Helper()
	for what, e := range list {
		if e[0] != e[1] {
			t.Errorf("%s: %v, want %v", what, e[0], e[1])
		}
	}
}

// A mount hides the directory below it until it is removed, which a mount inside it prevents.
func TestUnmount(t *testing.T) {
	v, at := mountTest(t)
	about := fs.Mounted{Source: "x", Path: "/a", Kind: "tmpfs", Flags: fs.ReadOnlyMount}
	sameErrors(t, map[string][2]error{
		"on a file": {v.Tree.Move(v.Tree.Detached(about, memfs.New(memfs.Config{})), at("/a/f"), "/a/f"), linux.EINVAL},
		"mount":     {v.Tree.Move(v.Tree.Detached(about, memfs.New(memfs.Config{})), at("/a"), "/a"), nil},
	})
	_, err := v.Lookup(v.Root, "/a/f", true)
	sameErrors(t, map[string][2]error{
		"hidden":    {err, linux.ENOENT},
		"read-only": {v.Mkdir(v.Root, "/a/c", 0o755), linux.EROFS},
		"remount":   {v.Tree.Remount(at("/a"), 0), nil},
		"no mount":  {v.Tree.Remount(at("/m"), 0), linux.EINVAL},
	})
	if err := v.Mkdir(v.Root, "/a/c", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := v.Tree.Move(v.Tree.Detached(fs.Mounted{Kind: "tmpfs"}, memfs.New(memfs.Config{})), at("/a/c"), "/a/c"); err != nil {
		t.Fatal(err)
	}
	if list := v.Tree.Mounted(); len(list) != 2 || list[0] != (fs.Mounted{Source: "x", Path: "/a", Kind: "tmpfs"}) || list[1].Path != "/a/c" {
		t.Errorf("mounts: %+v", list)
	}
	sameErrors(t, map[string][2]error{
		"with a mount inside": {v.Tree.Unmount(at("/a")), linux.EBUSY},
		"the root":            {v.Tree.Unmount(at("/")), linux.EBUSY},
		"no root of a mount":  {v.Tree.Unmount(at("/m")), linux.EINVAL},
	})
	inside := at("/a/c")
	sameErrors(t, map[string][2]error{"the inner": {v.Tree.Unmount(inside), nil}})
	sameErrors(t, map[string][2]error{"again": {v.Tree.Unmount(inside), linux.EINVAL}, "the outer": {v.Tree.Unmount(at("/a")), nil}})
	at("/a/f")
	if list := v.Tree.Mounted(); len(list) != 0 {
		t.Errorf("mounts: %+v", list)
	}
}

// A bound directory is the same directory at another place. Its parent is the parent of the other place, and it has flags of its own.
func TestBind(t *testing.T) {
	v, at := mountTest(t)
	sameErrors(t, map[string][2]error{
		"a file over a directory": {v.Tree.Bind(fs.Mounted{}, at("/a/f"), at("/m")), linux.ENOTDIR},
		"bind":                    {v.Tree.Bind(fs.Mounted{Path: "/m"}, at("/a"), at("/m")), nil},
	})
	if err := v.Mkdir(v.Root, "/m/new", 0o755); err != nil {
		t.Fatal(err)
	}
	if a, b := at("/a/new"), at("/m/new"); a.Node != b.Node || a.Device() != b.Device() {
		t.Error("not the same directory")
	}
	if at("/m/..") != at("/") || at("/m/b/..") != at("/m") {
		t.Error("the parent is another")
	}
	if path, err := v.Path(at("/m/b")); path != "/m/b" || err != nil {
		t.Error(path, err)
	}
	if err := v.Tree.Remount(at("/m"), fs.NoExecute|fs.NoDevices); err != nil {
		t.Fatal(err)
	}
	if err := v.Mknod(v.Root, "/m/d", fs.CharDevice|0o666, fs.Device{Major: 1, Minor: 3}); err != nil {
		t.Fatal(err)
	}
	_, device := v.Open(v.Root, "/m/d", fs.ReadOnly, 0)
	_, other := v.Open(v.Root, "/a/d", fs.ReadOnly, 0)
	sameErrors(t, map[string][2]error{
		"noexec":           {v.Access(at("/m/f"), fs.ToExecute), linux.EACCES},
		"search":           {v.Access(at("/m/b"), fs.ToExecute), nil},
		"the first place":  {v.Access(at("/a/f"), fs.ToExecute), nil},
		"nodev":            {device, linux.EACCES},
		"without a driver": {other, linux.ENXIO},
	})
}

// The mounts of a copy of a tree change independently of the tree.
func TestCopy(t *testing.T) {
	v, at := mountTest(t)
	if err := v.Tree.Move(v.Tree.Detached(fs.Mounted{}, memfs.New(memfs.Config{})), at("/m"), "/m"); err != nil {
		t.Fatal(err)
	}
	if err := v.Mkdir(v.Root, "/m/x", 0o755); err != nil {
		t.Fatal(err)
	}
	tree, moved := v.Tree.Copy()
	w := fs.NewView(tree)
	w.Dir = moved(at("/m/x"))
	if path, err := w.Path(w.Dir); path != "/m/x" || err != nil {
		t.Error(path, err)
	}
	if path, err := w.Path(at("/a/b")); err != linux.ENOENT { // as for a descriptor that was opened before
		t.Errorf("a place of the first tree has the path %q, %v", path, err)
	}
	if place, err := w.Lookup(at("/a/b"), "../../..", true); place != at("/") || err != nil {
		t.Errorf("above the root of the first tree: %v, %v", place, err)
	}
	place, err := w.Lookup(w.Dir, "../../a", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Move(tree.Detached(fs.Mounted{}, memfs.New(memfs.Config{})), place, "/a"); err != nil {
		t.Fatal(err)
	}
	_, err = w.Lookup(w.Root, "/a/f", true)
	sameErrors(t, map[string][2]error{"hidden in the copy": {err, linux.ENOENT}, "unmount": {v.Tree.Unmount(at("/m")), nil}})
	at("/a/f")
	if _, err := w.Lookup(w.Root, "/m/x", true); err != nil {
		t.Error(err)
	}
}
