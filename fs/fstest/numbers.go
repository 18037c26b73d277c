package fstest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"loam/abi/linux"
	"loam/fs"
)

// Tests that cannot be written as scripts: many names, times, and concurrency.

// must fails the test if a preparatory call fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, v *fs.View, path string, flags fs.Flags) *fs.File {
	t.Helper()
	f, err := v.Open(v.Dir, path, flags, 0o644)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	return f
}

// ManyNames checks that a directory holds count names, finds each, and lists each exactly once.
func ManyNames(t *testing.T, v *fs.View, count int) {
	must(t, v.Mkdir(v.Dir, "d", 0o755))
	for i := range count {
		must(t, v.Mknod(v.Dir, fmt.Sprint("d/", i), fs.Regular|0o644, fs.Device{}))
	}
	for i := range count {
		if _, err := v.Lookup(v.Dir, fmt.Sprint("d/", i), true); err != nil {
			t.Fatalf("name %d: %v", i, err)
		}
	}
	seen := map[string]bool{}
	dir := open(t, v, "d", fs.MustBeDir)
	defer dir.Close()
	for more := true; more; {
		room := 100 // number of entries that fit into one listing, as into a buffer of getdents64(2)
		more = false
		must(t, dir.ReadDir(func(e fs.Entry) bool {
			if room--; room < 0 {
				return false
			}
			if seen[e.Name] {
				t.Errorf("%s comes twice", e.Name)
			}
			seen[e.Name], more = true, true
			return true
		}))
	}
	if len(seen) != count+2 {
		t.Errorf("%d names are listed, want %d", len(seen), count+2)
	}
	for i := range count {
		must(t, v.Unlink(v.Dir, fmt.Sprint("d/", i)))
	}
	must(t, v.Rmdir(v.Dir, "d"))
}

// listingInMotion checks that names that always exist are listed exactly once, while other names are
// created and removed between parts of the listing.
func listingInMotion(t *testing.T, v *fs.View) {
	for i := range 500 {
		must(t, v.Mknod(v.Dir, fmt.Sprint("stays", i), fs.Regular, fs.Device{}))
		must(t, v.Mknod(v.Dir, fmt.Sprint("goes", i), fs.Regular, fs.Device{}))
	}
	dir := open(t, v, "/", fs.MustBeDir)
	defer dir.Close()
	var stayed []string
	for i, more := 0, true; more; i++ {
		room := 3
		more = false
		must(t, dir.ReadDir(func(e fs.Entry) bool {
			if room--; room < 0 {
				return false
			}
			more = true
			if e.Name[0] == 's' {
				stayed = append(stayed, e.Name)
			}
			return true
		}))
		if i < 500 {
			must(t, v.Unlink(v.Dir, fmt.Sprint("goes", i)))
		}
		if i%2 == 0 && i < 100 {
			must(t, v.Mknod(v.Dir, fmt.Sprint("comes", i), fs.Regular, fs.Device{}))
		}
	}
	slices.Sort(stayed)
	if n := len(stayed); n != 500 || len(slices.Compact(stayed)) != 500 {
		t.Errorf("%d of 500 names, once or more", n)
	}
}

// holes checks that unwritten parts of a file read as zeros and use no space.
func holes(t *testing.T, v *fs.View) {
	f := open(t, v, "f", fs.ReadWrite|fs.Create)
	defer f.Close()
	const far = 300 << 30
	for _, at := range []int64{far, 5 << 20, 4095} {
		if n, err := f.WriteAt([]byte("xy"), at); n != 2 || err != nil {
			t.Fatalf("write at %d: %d, %v", at, n, err)
		}
	}
	if a := f.Attr(); a.Size != far+2 || a.Blocks > 64 {
		t.Errorf("size %d, %d blocks of 512 bytes", a.Size, a.Blocks)
	}
	b := make([]byte, 8192)
	n, err := f.ReadAt(b, 0)
	want := make([]byte, 8192)
	copy(want[4095:], "xy")
	if n != len(b) || err != nil || !bytes.Equal(b, want) {
		t.Errorf("around 4095: %d bytes, %v", n, err)
	}
	must(t, f.Truncate(4096))
	must(t, f.Truncate(10<<20))
	n, _ = f.ReadAt(b, 4090)
	if n != len(b) || !bytes.Equal(b[:8], []byte{0, 0, 0, 0, 0, 'x', 0, 0}) {
		t.Errorf("cut and grown again: %v", b[:8])
	}
	if _, err := f.WriteAt([]byte("x"), 1<<62); err != linux.EFBIG {
		t.Errorf("write at 2^62: %v", err)
	}
}

// concurrentAppends checks that records appended by several writers are never mixed.
func concurrentAppends(t *testing.T, v *fs.View) {
	const writers, each = 8, 200
	var group sync.WaitGroup
	for i := range writers {
		f := open(t, v, "log", fs.WriteOnly|fs.Create|fs.Append)
		group.Go(func() {
			defer f.Close()
			for range each {
				f.Write(bytes.Repeat([]byte{'a' + byte(i)}, 100))
			}
		})
	}
	group.Wait()
	f := open(t, v, "log", fs.ReadOnly)
	defer f.Close()
	counts := map[byte]int{}
	for b := make([]byte, 100); ; {
		n, err := f.Read(b)
		must(t, err)
		if n == 0 {
			break
		}
		if !bytes.Equal(b, bytes.Repeat(b[:1], 100)) {
			t.Fatalf("a record of several: %q", b)
		}
		counts[b[0]]++
	}
	for i := range writers {
		if n := counts['a'+byte(i)]; n != each {
			t.Errorf("writer %d: %d records of %d", i, n, each)
		}
	}
}

// concurrentRenames checks that the tree stays a tree and loses no directory while directories are
// moved into one another.
func concurrentRenames(t *testing.T, v *fs.View) {
	for _, d := range []string{"a", "b", "c", "d"} {
		must(t, v.Mkdir(v.Dir, d, 0o755))
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 500 {
				names := "abcd"
				x, y := names[(i+j)%4:][:1], names[(i+j*3+1)%4:][:1]
				v.Rename(v.Dir, x, v.Dir, y+"/"+x, 0)
				v.Rename(v.Dir, y+"/"+x, v.Dir, x, 0)
			}
		})
	}
	group.Wait()
	if n := countDirs(t, v, "/"); n != 5 {
		t.Errorf("%d directories, want 5", n)
	}
}

func countDirs(t *testing.T, v *fs.View, path string) int {
	f := open(t, v, path, fs.MustBeDir)
	defer f.Close()
	n := 1
	must(t, f.ReadDir(func(e fs.Entry) bool {
		if e.Name[0] != '.' {
			n += countDirs(t, v, path+"/"+e.Name)
		}
		return true
	}))
	return n
}

// unlinkedButOpen checks that a file without a name lives as long as it is open, and then frees its
// space.
func unlinkedButOpen(t *testing.T, v *fs.View) {
	before := v.Root.Usage()
	f := open(t, v, "f", fs.ReadWrite|fs.Create)
	must(t, v.Unlink(v.Dir, "f"))
	if n, err := f.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	if a := f.Attr(); a.Links != 0 || a.Size != 1<<20 {
		t.Errorf("%d links, size %d", a.Links, a.Size)
	}
	must(t, f.Close())
	must(t, v.Mkdir(v.Dir, "d", 0o700))
	d := open(t, v, "d", fs.ReadOnly)
	must(t, v.Rmdir(v.Dir, "d"))
	if err := d.ReadDir(func(fs.Entry) bool { return true }); err != linux.ENOENT {
		t.Errorf("listing of a directory that was removed: %v", err)
	}
	must(t, d.Close())
	if after := v.Root.Usage(); after != before {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// times checks that a write updates the times, and that explicitly set times are kept.
func times(t *testing.T, v *fs.View) {
	f := open(t, v, "f", fs.ReadWrite|fs.Create)
	defer f.Close()
	set := fs.Change{Fields: fs.SetAccess | fs.SetModify, Access: 1, Modify: 1e18}
	must(t, v.Change(f.Place(), set))
	if a := f.Attr(); a.Access != 1 || a.Modify != 1e18 {
		t.Errorf("set, it has %d and %d", a.Access, a.Modify)
	}
	start := fs.Time(time.Now().Add(-time.Second).UnixNano())
	f.Write([]byte("x"))
	if a := f.Attr(); a.Modify < start || a.Status < start {
		t.Errorf("written, it has %d and %d, before %d", a.Modify, a.Status, start)
	}
	must(t, v.Change(v.Root, set))
	must(t, v.Symlink("f", v.Dir, "l"))
	if a := v.Root.Node.Attr(); a.Modify == 1e18 {
		t.Error("a new name did not change the time of its directory")
	}
}

// ioFS checks that View.IO passes the suite of testing/fstest.
func ioFS(t *testing.T, v *fs.View) {
	for _, dir := range []string{"a", "a/b"} {
		must(t, v.Mkdir(v.Dir, dir, 0o755))
	}
	for _, path := range []string{"f", "a/g", "a/b/h"} {
		f := open(t, v, path, fs.WriteOnly|fs.Create)
		f.Write([]byte("content of " + path))
		f.Close()
	}
	must(t, v.Symlink("b/h", v.Dir, "a/link"))
	if err := fstest.TestFS(v.IO(), "f", "a/g", "a/b/h", "a/link"); err != nil {
		t.Error(err)
	}
}
