package fs_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
)

// mixed is a file system whose root has no Identity. Neither have the directories whose names begin with a letter of plain.
type mixed struct {
	fs.FileSystem
	plain string
	root  fs.Directory
}

// plainNodes are the directories without an Identity, by name. So a lookup allocates no memory.
type plainNodes struct {
	sync.Mutex
	of map[string]fs.Node
}

type plainRoot struct {
	fs.Directory
	plain string
	nodes *plainNodes
}

type plainDir struct{ fs.Directory }

func newMixed(plain string) mixed {
	m := memfs.New(memfs.Config{})
	return mixed{m, plain, plainRoot{m.Root(), plain, &plainNodes{of: map[string]fs.Node{}}}}
}

func (m mixed) Root() fs.Directory { return m.root }

func (r plainRoot) Lookup(name string) (fs.Node, error) {
	n, err := r.Directory.Lookup(name)
	if err != nil || !strings.Contains(r.plain, name[:1]) {
		return n, err
	}
	r.nodes.Lock()
	defer r.nodes.Unlock()
	if r.nodes.of[name] == nil {
		r.nodes.of[name] = plainDir{n.(fs.Directory)}
	}
	return r.nodes.of[name], nil
}

// A walk finds every mount, however many there are, on nodes with and without an Identity, and in copies of the tree. It allocates
// no memory.
func TestCrossings(t *testing.T) {
	for name, root := range map[string]fs.FileSystem{
		"all":  memfs.New(memfs.Config{}),
		"half": newMixed("b"),
		"none": newMixed("ab"),
	} {
		t.Run(name+" have an Identity", func(t *testing.T) { testCrossings(t, root) })
	}
}

func testCrossings(t *testing.T, root fs.FileSystem) {
	v := fs.NewView(fs.NewTree(root))
	mounted := map[string]fs.Node{}
	check := func(v *fs.View) {
		t.Helper()
		for path, want := range mounted {
			if p, err := v.Lookup(v.Root, path, true); err != nil || p.Node != want {
				t.Fatalf("%d mounts: the mount on %s is not found: %v", len(mounted), path, err)
			}
		}
	}
	for i := range 40 {
		path := fmt.Sprintf("/%c%d", "ab"[i%2], i)
		if err := v.Mkdir(v.Root, path, 0o755); err != nil {
			t.Fatal(err)
		}
		p := placeOf(t, v, path)
		m, isMixed := root.(mixed)
		if _, ok := p.Node.(fs.Identified); ok != (!isMixed || !strings.Contains(m.plain, path[1:2])) {
			t.Fatalf("%s has an Identity: %v", path, ok)
		}
		mount := memfs.New(memfs.Config{})
		mounted[path] = mount.Root()
		if err := v.Tree.Mount(mount, p, false); err != nil {
			t.Fatal(err)
		}
		check(v)
	}
	copied, _ := v.Tree.Copy()
	again := fs.NewView(copied)
	check(again)
	if err := v.Mkdir(v.Root, "/b7/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		v.Lookup(v.Root, "/b7/dir", true)
		v.Lookup(v.Root, "/a6", true)
		again.Lookup(again.Root, "/b3", true)
	})
	if n != 0 {
		t.Errorf("a walk makes %v allocations", n)
	}
	for path := range mounted {
		unmountAt(t, v, path)
		if p := placeOf(t, v, path); p.Node == mounted[path] {
			t.Errorf("%s: the removed mount is found", path)
		}
	}
	check(again)
}

// A mount that was removed finds no mount of another one that shows the same directories and was made later.
func TestCrossingsOfRemovedMount(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	for _, path := range []string{"/x", "/y", "/of", "/of/d"} {
		if err := v.Mkdir(v.Root, path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount := func(path string, f fs.FileSystem) {
		t.Helper()
		if err := v.Tree.Mount(f, placeOf(t, v, path), false); err != nil {
			t.Fatal(err)
		}
	}
	bind := func(path string) fs.Place {
		t.Helper()
		if err := v.Tree.Bind(fs.Mounted{Path: path}, placeOf(t, v, "/of"), placeOf(t, v, path)); err != nil {
			t.Fatal(err)
		}
		return placeOf(t, v, path)
	}
	removed := bind("/x")
	mount("/x/d", memfs.New(memfs.Config{}))
	unmountAt(t, v, "/x/d")
	unmountAt(t, v, "/x")
	bind("/y")
	later := memfs.New(memfs.Config{})
	mount("/y/d", later)
	if p := placeOf(t, v, "/y/d"); p.Node != later.Root() {
		t.Error("the mount is not found")
	}
	if p, err := v.Lookup(removed, "d", true); err != nil || p.Node == later.Root() {
		t.Errorf("from the removed mount: the mount is found, or %v", err)
	}
}

// Walks continue while mounts are made, moved and removed in the tree and in a copy. They find each mount that does not change, and
// for the others the mount or the directory below it.
func TestCrossingsDuringChanges(t *testing.T) {
	v := fs.NewView(fs.NewTree(newMixed("p")))
	fixed := map[string]fs.Node{}
	for _, path := range []string{"/fixed", "/fixed/in", "/plain"} {
		mountAt(t, v, path)
		fixed[path] = placeOf(t, v, path).Node
	}
	changing := []string{"/c", "/p", "/fixed/c"} // places of mounts that change
	allowed := map[string][]fs.Node{}
	mounts := map[string]*memfs.FileSystem{}
	for _, path := range changing {
		if err := v.Mkdir(v.Root, path, 0o755); err != nil {
			t.Fatal(err)
		}
		mounts[path] = memfs.New(memfs.Config{})
		allowed[path] = []fs.Node{placeOf(t, v, path).Node, mounts[path].Root(), mounts["/c"].Root()}
	}
	copied, _ := v.Tree.Copy()
	views := []*fs.View{v, fs.NewView(copied)}
	var changers, walkers sync.WaitGroup
	var ended atomic.Bool
	for _, of := range views {
		changers.Go(func() {
			for range 100 {
				changeMounts(t, of, changing, mounts)
			}
		})
		for _, from := range []fs.Place{views[0].Root, views[1].Root} { // also from a directory of the other tree
			walkers.Go(func() {
				for !ended.Load() {
					walkAll(t, of, from, fixed, allowed)
				}
			})
		}
	}
	changers.Wait()
	ended.Store(true)
	walkers.Wait()
	for _, v := range views {
		walkAll(t, v, v.Root, fixed, allowed)
	}
}

// changeMounts mounts a file system on each path, moves the first one to the other places and back, and removes all.
func changeMounts(t *testing.T, v *fs.View, paths []string, mounts map[string]*memfs.FileSystem) {
	var covered []fs.Place
	for _, path := range paths {
		at := placeNow(t, v, path)
		covered = append(covered, at)
		if err := v.Tree.Move(v.Tree.Detached(fs.Mounted{Kind: "tmpfs"}, mounts[path]), at, path); err != nil {
			t.Error(err)
		}
		if p := placeNow(t, v, path); p.Node != mounts[path].Root() {
			t.Errorf("%s: the new mount is not found", path)
		}
	}
	first := placeNow(t, v, paths[0])
	for i := 1; i <= len(paths); i++ {
		to := i % len(paths)
		if err := v.Tree.Move(first, covered[to], paths[to]); err != nil {
			t.Error(err)
		}
		if p := placeNow(t, v, paths[to]); p != first {
			t.Errorf("%s: the mount that was moved is not found", paths[to])
		}
	}
	for i, path := range paths {
		if err := v.Tree.Unmount(placeNow(t, v, path)); err != nil {
			t.Error(err)
		}
		if p := placeNow(t, v, path); p != covered[i] {
			t.Errorf("%s: the removed mount is found", path)
		}
	}
}

// placeNow is placeOf for any goroutine.
func placeNow(t *testing.T, v *fs.View, path string) fs.Place {
	p, err := v.Lookup(v.Root, path, true)
	if err != nil {
		t.Error(err)
	}
	return p
}

func walkAll(t *testing.T, v *fs.View, from fs.Place, fixed map[string]fs.Node, allowed map[string][]fs.Node) {
	for path, want := range fixed {
		if p, err := v.Lookup(from, path[1:], true); from == v.Root && (err != nil || p.Node != want) {
			t.Errorf("%s: a mount that does not change is not found: %v", path, err)
		}
	}
	for path, nodes := range allowed {
		if p, err := v.Lookup(from, path[1:], true); from == v.Root && (err != nil || !slices.Contains(nodes, p.Node)) {
			t.Errorf("%s: neither the mount nor the directory below it is found: %v", path, err)
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
