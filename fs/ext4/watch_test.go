package ext4_test

import (
	"fmt"
	"slices"
	"testing"

	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/memfs"
)

// events records file events in a folder.
type events struct {
	folder fs.Node
	list   []string
}

// Watches implements fs.Watcher.
func (e *events) Watches(dir fs.Node) bool { return dir == e.folder }

// Happened implements fs.Watcher.
func (e *events) Happened(n fs.Notice) {
	if n.Dir == e.folder {
		e.list = append(e.list, fmt.Sprintf("%x/%s", n.Event, n.Name))
	}
}

// watched returns the events in a folder while a file is created, written, truncated, renamed, opened again and removed.
func watched(t *testing.T, v *fs.View) []string {
	t.Helper()
	must(t, v.Mkdir(v.Root, "/d", 0o755))
	folder, err := v.Lookup(v.Root, "/d", true)
	must(t, err)
	e := &events{folder: folder.Node}
	v.Tree.Watch(e)
	f, err := v.Open(v.Root, "/d/a", fs.Create|fs.Truncate|fs.ReadWrite, 0o644)
	must(t, err)
	_, err = f.Write([]byte("text"))
	must(t, err)
	_, err = f.ReadAt(make([]byte, 4), 0)
	must(t, err)
	must(t, f.Truncate(1))
	must(t, f.Close())
	must(t, v.Rename(v.Root, "/d/a", v.Root, "/d/b", 0))
	f, err = v.Open(v.Root, "/d/b", fs.Truncate|fs.ReadWrite, 0)
	must(t, err)
	_, err = f.Write([]byte("again"))
	must(t, err)
	must(t, v.Unlink(v.Root, "/d/b"))
	must(t, f.Close())
	return e.list
}

// A watch on a folder of a disk sees the same events of the files in it as a watch on a folder in memory.
func TestWatchFolder(t *testing.T) {
	s := mount(t, loadImage(t, makeImage(t, "16M")), ext4.Config{})
	defer s.Close()
	got, want := watched(t, newView(s)), watched(t, newView(memfs.New(memfs.Config{})))
	if !slices.Equal(got, want) {
		t.Errorf("events\n%q, in memory\n%q", got, want)
	}
}
