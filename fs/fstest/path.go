package fstest

import (
	"bytes"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// removals counts the events RemovedSelf.
type removals int

// Happened implements fs.Watcher.
func (r *removals) Happened(n fs.Notice) {
	if n.Event == fs.RemovedSelf {
		*r++
	}
}

// Watches implements fs.Watcher.
func (r *removals) Watches(fs.Node) bool { return false }

// TestPathOnly checks that a file that is open with PathOnly keeps its content after its last name is removed, and frees its
// space when the last open file is closed. The files of the file system are Lasting.
func TestPathOnly(t *testing.T, make func(t *testing.T) fs.FileSystem) {
	v := fs.NewView(fs.NewTree(make(t)))
	var gone removals
	v.Tree.Watch(&gone)
	must(t, v.Mkdir(v.Dir, "d", 0o755)) // so that the name f takes no further block
	before := v.Root.Usage()
	for i, lasts := range []string{"the path", "the file opened by it", "the path, which opened none"} {
		keepByPath(t, v, lasts, &gone)
		if after := v.Root.Usage(); after != before {
			t.Errorf("%s is closed last: before %+v, after %+v", lasts, before, after)
		}
		if int(gone) != i+1 {
			t.Errorf("%s is closed: %d removals are reported, want %d", lasts, gone, i+1)
		}
	}
}

// keepByPath removes the name of a file that is open with PathOnly, opens it again, and closes both. The one named by lasts is
// closed last.
func keepByPath(t *testing.T, v *fs.View, lasts string, gone *removals) {
	before := *gone
	content := bytes.Repeat([]byte("content "), 1000)
	f := open(t, v, "d/f", fs.WriteOnly|fs.Create)
	_, err := f.Write(content)
	must(t, err)
	must(t, f.Close())
	path := open(t, v, "d/f", fs.PathOnly)
	place := path.Place()
	node := place.Node.(fs.Lasting)
	must(t, v.Unlink(v.Dir, "d/f"))
	if !node.InUse() || *gone != before {
		t.Errorf("the name is removed: in use: %v, %d removals are reported", node.InUse(), *gone-before)
	}
	switch lasts {
	case "the path":
		f = reopen(t, v, place, content)
		must(t, f.Close())
	case "the file opened by it":
		f = reopen(t, v, place, content)
		must(t, path.Close())
		path = f
	}
	if !node.InUse() || *gone != before {
		t.Errorf("%s is open: in use: %v, %d removals are reported", lasts, node.InUse(), *gone-before)
	}
	if a := path.Attr(); a.Links != 0 || a.Size != int64(len(content)) {
		t.Errorf("%s is open: %d links, size %d", lasts, a.Links, a.Size)
	}
	must(t, path.Close())
	if node.InUse() {
		t.Errorf("%s is closed: the file is in use", lasts)
	}
	if _, err := v.OpenPlace(place, fs.ReadOnly); err != linux.ENOENT {
		t.Errorf("%s is closed: open: %v, want ENOENT", lasts, err)
	}
}

// reopen opens a file without a name by its place, as a path in /proc/self/fd does, and checks its content.
func reopen(t *testing.T, v *fs.View, p fs.Place, content []byte) *fs.File {
	t.Helper()
	f, err := v.OpenPlace(p, fs.ReadWrite)
	must(t, err)
	b := make([]byte, len(content)+1)
	if n, err := f.Read(b); err != nil || !bytes.Equal(b[:n], content) {
		t.Errorf("%d bytes, %v; want the content", n, err)
	}
	return f
}
