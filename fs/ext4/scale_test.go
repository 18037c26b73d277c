package ext4_test

import (
	"fmt"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4"
	"loam/internal/race"
)

// TestScale tests sizes at which counts and levels change: an index of two levels, a file of 1.5
// TiB with holes and a tree of extents, the maximum number of links of a file, and more
// subdirectories than a link count can hold.
func TestScale(t *testing.T) {
	d := loadImage(t, makeImage(t, "1G", "-N", "130000", "-b", "1024"))
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	const mostLinks = 65_000
	names, links, dirs := 30_000, mostLinks, mostLinks+100
	if race.Enabled { // the race detector finds nothing in a loop of one goroutine
		names, links, dirs = 3000, 1000, 1000
	}
	must(t, v.Mkdir(v.Dir, "many", 0o755))
	for i := range names {
		must(t, v.Mknod(v.Dir, fmt.Sprint("many/name of a file ", i), fs.Regular|0o644, fs.Device{}))
	}
	if n := len(listing(t, v, "/many")); n != names {
		t.Errorf("%d names, want %d", n, names)
	}
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	for i := range 3000 {
		if n, err := f.WriteAt([]byte("x"), int64(i)<<29+int64(i)); n != 1 || err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	for n := 1; n <= links; n++ {
		var want error
		if n == mostLinks {
			want = linux.EMLINK
		}
		if err := v.Link(f.Place(), v.Dir, fmt.Sprint("many/link", n)); err != want {
			t.Fatalf("%d links: %v, want %v", n, err, want)
		}
	}
	must(t, f.Close())
	for i := range dirs {
		must(t, v.Mkdir(v.Dir, fmt.Sprint("d", i), 0o755))
	}
	if n := v.Root.Node.Attr().Links; dirs > mostLinks && n != 1 {
		t.Errorf("more directories than can be counted: %d links", n)
	}
	must(t, s.Close())
	check(t, d)
}

// A directory without an index is listed by several calls, each of which continues after the last entry of the
// previous one.
func TestLongListing(t *testing.T) {
	d := loadImage(t, makeImage(t, "32M", "-O", "^dir_index", "-N", "12000"))
	s := mount(t, d, ext4.Config{})
	v := newView(s)
	want := map[string]bool{}
	for i := range 9_000 {
		name := fmt.Sprint("f", i)
		must(t, v.Mknod(v.Dir, name, fs.Regular|0o644, fs.Device{}))
		want[name] = true
	}
	names := listing(t, v, "/")
	for _, name := range names {
		delete(want, name)
	}
	if len(names) != 9_000 || len(want) > 0 {
		t.Errorf("%d names are listed, and %d are not", len(names), len(want))
	}
	must(t, s.Close())
	check(t, d)
}
