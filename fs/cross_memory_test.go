package fs_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"loam/fs"
	"loam/fs/memfs"
)

// mountAt makes a directory and mounts a new file system in memory on it.
func mountAt(t testing.TB, v *fs.View, path string) weak.Pointer[memfs.FileSystem] {
	t.Helper()
	if err := v.Mkdir(v.Root, path, 0o755); err != nil {
		t.Fatal(err)
	}
	m := memfs.New(memfs.Config{})
	if err := v.Tree.Mount(m, placeOf(t, v, path), false); err != nil {
		t.Fatal(err)
	}
	return weak.Make(m)
}

func unmountAt(t testing.TB, v *fs.View, path string) {
	t.Helper()
	if err := v.Tree.Unmount(placeOf(t, v, path)); err != nil {
		t.Fatal(err)
	}
}

func placeOf(t testing.TB, v *fs.View, path string) fs.Place {
	t.Helper()
	p, err := v.Lookup(v.Root, path, true)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inMemory returns how many file systems are in memory after a garbage collection.
func inMemory(all []weak.Pointer[memfs.FileSystem]) (n int) {
	runtime.GC()
	for _, m := range all {
		if m.Value() != nil {
			n++
		}
	}
	return n
}

// Nothing in the tree refers to a file system that was unmounted, whatever was walked before.
func TestUnmountedFileSystemsAreFreed(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	mountAt(t, v, "/a")
	mountAt(t, v, "/a/sub")
	big := mountAt(t, v, "/big")
	placeOf(t, v, "/a/sub")
	unmountAt(t, v, "/big")
	if inMemory([]weak.Pointer[memfs.FileSystem]{big}) != 0 {
		t.Error("a mount that nobody uses keeps a file system that was unmounted")
	}
	var all []weak.Pointer[memfs.FileSystem]
	last := ""
	for i := range 50 { // the next container starts before the last one ends
		container := fmt.Sprintf("/c%d", i)
		all = append(all, mountAt(t, v, container), mountAt(t, v, container+"/sub"))
		if last == "" {
			placeOf(t, v, "/a/sub")
		} else {
			unmountAt(t, v, last+"/sub")
			unmountAt(t, v, last)
		}
		last = container
	}
	if n := inMemory(all); n != 2 {
		t.Errorf("%d file systems are in memory, 2 are mounted", n)
	}
	runtime.KeepAlive(v)
}

// A directory that is open in a copy of the tree keeps only its own file system after the copy has ended.
func TestMountsOfEndedTreesAreFreed(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	var open fs.Place
	big := func() weak.Pointer[memfs.FileSystem] {
		copied, _ := v.Tree.Copy()
		ended := fs.NewView(copied)
		big := mountAt(t, ended, "/big")
		placeOf(t, ended, "/big")
		open = ended.Root
		return big
	}()
	if inMemory([]weak.Pointer[memfs.FileSystem]{big}) != 0 {
		t.Error("a directory of a tree that has ended keeps a file system that was mounted there")
	}
	runtime.KeepAlive(open)
	runtime.KeepAlive(v)
}

// twoTrees returns views of a tree with 30 mounts and of its copy. Both show the directory /d/e.
func twoTrees(t testing.TB) (own, other *fs.View) {
	own = fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	for i := range 30 {
		mountAt(t, own, fmt.Sprintf("/m%d", i))
	}
	for _, path := range []string{"/m0/d", "/d", "/d/e"} {
		if err := own.Mkdir(own.Root, path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copied, _ := own.Tree.Copy()
	return own, fs.NewView(copied)
}

// A walk in a tree, from a directory of another tree, finds no mount of the other tree. Neither this walk nor a walk in the other
// tree allocates memory.
func TestWalkFromAnotherTree(t *testing.T) {
	own, other := twoTrees(t)
	below, err := own.Lookup(other.Root, "m0", true)
	if err != nil || below == placeOf(t, other, "/m0") || below == placeOf(t, own, "/m0") {
		t.Errorf("%v, %v: a mount is found that is not in this tree at this place", below, err)
	}
	n := testing.AllocsPerRun(100, func() {
		own.Lookup(other.Root, "d/e", true)
		if p, err := other.Lookup(other.Root, "/m0/d", true); err != nil || p.Node == below.Node {
			t.Errorf("the mount is not found: %v", err)
		}
	})
	if n != 0 {
		t.Errorf("walks in two trees make %v allocations", n)
	}
}

// BenchmarkWalk resolves a path twice: in one tree, and alternately in a tree and from a directory of another tree.
func BenchmarkWalk(b *testing.B) {
	own, other := twoTrees(b)
	for name, views := range map[string][2]*fs.View{"OneTree": {other, other}, "FromAnotherTree": {own, other}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, v := range views {
					if _, err := v.Lookup(other.Root, "d/e", true); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
