package fs_test

import (
	"fmt"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
)

// unidentified is a file system whose root has no Identity.
type unidentified struct{ fs.FileSystem }

type plainRoot struct{ fs.Directory }

func (u unidentified) Root() fs.Directory { return plainRoot{u.FileSystem.Root()} }

// A walk finds every mount, however many there are, on nodes with and without an Identity, and in copies of the tree. It allocates
// no memory.
func TestCrossings(t *testing.T) {
	for _, root := range []fs.FileSystem{memfs.New(memfs.Config{}), unidentified{memfs.New(memfs.Config{})}} {
		v := fs.NewView(fs.NewTree(root))
		mounted := map[string]fs.Node{}
		check := func(v *fs.View) {
			t.Helper()
			for path, want := range mounted {
				if p, err := v.Lookup(v.Root, path, true); err != nil || p.Node != want {
					t.Fatalf("%T, %d mounts: the mount on %s is not found: %v", root, len(mounted), path, err)
				}
			}
		}
		for i := range 40 {
			path := fmt.Sprintf("/m%d", i)
			if err := v.Mkdir(v.Root, path, 0o755); err != nil {
				t.Fatal(err)
			}
			p, err := v.Lookup(v.Root, path, true)
			if err != nil {
				t.Fatal(err)
			}
			m := memfs.New(memfs.Config{})
			mounted[path] = m.Root()
			if err := v.Tree.Mount(m, p, false); err != nil {
				t.Fatal(err)
			}
			check(v)
		}
		copied, _ := v.Tree.Copy()
		again := fs.NewView(copied)
		check(again)
		if err := v.Mkdir(v.Root, "/m7/dir", 0o755); err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(100, func() { v.Lookup(v.Root, "/m7/dir", true); again.Lookup(again.Root, "/m3", true) })
		if n != 0 {
			t.Errorf("%T: a walk makes %v allocations", root, n)
		}
	}
}

// After a mount has been removed, a walk reaches the directory below it.
func TestCrossingsChange(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	if err := v.Mkdir(v.Root, "/m", 0o755); err != nil {
		t.Fatal(err)
	}
	below, err := v.Lookup(v.Root, "/m", true)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m := memfs.New(memfs.Config{})
		if err := v.Tree.Move(v.Tree.Detached(fs.Mounted{Kind: "tmpfs"}, m), below, "/m"); err != nil {
			t.Fatal(err)
		}
		p, err := v.Lookup(v.Root, "/m", true)
		if err != nil || p.Node != m.Root() {
			t.Fatalf("%v: the new mount is not found", err)
		}
		if err := v.Tree.Unmount(p); err != nil {
			t.Fatal(err)
		}
		if p, err := v.Lookup(v.Root, "/m", true); err != nil || p != below {
			t.Fatalf("%v: the removed mount is found", err)
		}
	}
}
