package fs_test

import (
	"fmt"
	"slices"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
)

// unnamed is a file system whose nodes do not know their names. It counts lookups.
type unnamed struct {
	fs.FileSystem
	lookups *int
}

func (u unnamed) Root() fs.Directory { return unnamedRoot{u.FileSystem.Root(), u.lookups} }

type unnamedRoot struct {
	fs.Directory
	lookups *int
}

func (r unnamedRoot) Lookup(name string) (fs.Node, error) {
	*r.lookups++
	n, err := r.Directory.Lookup(name)
	if d, ok := n.(fs.Directory); ok {
		return unnamedRoot{d, r.lookups}, err
	}
	return struct{ fs.Node }{n}, err
}

// watch records the events of the files in a directory.
type watch struct {
	dir  fs.Node
	list []string
}

func (w *watch) Watches(dir fs.Node) bool { return dir == w.dir }

func (w *watch) Happened(n fs.Notice) {
	if n.Dir == w.dir {
		w.list = append(w.list, fmt.Sprintf("%x/%s", n.Event, n.Name))
	}
}

// A watch on a directory reports the files in it, but not the root of a file system that is mounted on one of them. Without a
// watch on the directory of an open file, the name of the file is not looked up.
func TestWatchDirectory(t *testing.T) {
	lookups := 0
	newSystem := func() fs.FileSystem { return unnamed{memfs.New(memfs.Config{}), &lookups} }
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

	w.dir, lookups = nil, 0
	_, err = f.Write([]byte("text"))
	check(err)
	check(f.Close())
	if lookups != 0 {
		t.Errorf("%d lookups for a directory without a watch", lookups)
	}
}
