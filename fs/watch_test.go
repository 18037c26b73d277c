package fs_test

import (
	"fmt"
	"slices"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
)

// unnamed is a file system whose nodes do not know their names.
type unnamed struct{ fs.FileSystem }

func (u unnamed) Root() fs.Directory { return unnamedRoot{u.FileSystem.Root()} }

type unnamedRoot struct{ fs.Directory }

func (r unnamedRoot) Lookup(name string) (fs.Node, error) {
	n, err := r.Directory.Lookup(name)
	if d, ok := n.(fs.Directory); ok {
		return unnamedRoot{d}, err
	}
	return struct{ fs.Node }{n}, err
}

// watch records the events of the files in a directory.
type watch struct {
	dir  fs.Node
	list []string
}

func (w *watch) Happened(n fs.Notice) {
	if n.Dir == w.dir {
		w.list = append(w.list, fmt.Sprintf("%x/%s", n.Event, n.Name))
	}
}

// A watch on a directory reports the files in it, but not the root of a file system that is mounted on one of them.
func TestWatchDirectory(t *testing.T) {
	newSystem := func() fs.FileSystem { return unnamed{memfs.New(memfs.Config{})} }
	v := fs.NewView(fs.NewTree(newSystem()))
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(v.Mkdir(v.Root, "/m", 0o755))
	at, err := v.Lookup(v.Root, "/m", true)
	check(err)
	check(v.Tree.Mount(newSystem(), at, false))
	check(v.Mknod(v.Root, "/f", fs.Regular|0o644, fs.Device{}))

	w := &watch{dir: v.Root.Node}
	v.Tree.Watch(w)
	mounted, err := v.Open(v.Root, "/m", fs.ReadOnly, 0)
	check(err)
	check(mounted.Close())
	f, err := v.Open(v.Root, "/f", fs.ReadWrite, 0)
	check(err)
	_, err = f.Write([]byte("text"))
	check(err)
	if want := []string{"20/f", "2/f"}; !slices.Equal(w.list, want) {
		t.Errorf("events %q, want %q", w.list, want)
	}
	check(f.Close())
}
