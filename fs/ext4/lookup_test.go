package ext4_test

import (
	"sync/atomic"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4"
)

// Lookups of names that were read before, also of absent ones, and opens and closes of such files take no lock: they end while a
// change runs.
func TestLookupsTakeNoLock(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M"))
	var inside atomic.Pointer[func()] // called during an operation, which holds the lock of the file system
	s := mount(t, d, ext4.Config{Now: func() time.Time {
		if f := inside.Swap(nil); f != nil {
			(*f)()
		}
		return time.Now()
	}})
	defer s.Close()
	v := newView(s)
	must(t, v.Mkdir(v.Root, "/a", 0o755))
	writeFile(t, v, "/a/b", "x")
	writeFile(t, v, "/other", "x")
	look := func() {
		if p, err := v.Lookup(v.Root, "/a/b", true); err != nil || p.Node.Attr().Size != 1 {
			t.Errorf("/a/b: %v", err)
		}
		if _, err := v.Lookup(v.Root, "/a/absent", true); err != linux.ENOENT {
			t.Errorf("/a/absent: %v", err)
		}
	}
	openClose := func() {
		f, err := v.Open(v.Root, "/a/b", fs.ReadOnly, 0)
		if err != nil {
			t.Errorf("open: %v", err)
			return
		}
		f.Close()
	}
	look()
	done := make(chan struct{}) // closed by the goroutine below
	f := func() {
		go func() {
			look()
			openClose()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("a lookup, open or close waits for a change of another file")
		}
	}
	inside.Store(&f)
	p, err := v.Lookup(v.Root, "/other", true)
	must(t, err)
	must(t, v.Change(p, fs.Change{Fields: fs.SetMode, Mode: 0o600}))
	if inside.Load() != nil {
		t.Fatal("the change did not read the clock")
	}
	<-done
	if n := testing.AllocsPerRun(100, look); n != 0 {
		t.Errorf("lookups of cached names make %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, openClose); n != 2 {
		t.Errorf("an open and close make %v allocations, want 2: the fs.File and the handle", n)
	}
}

// Each change of a name and of attributes is visible to the next lookup.
func TestLookupsSeeChanges(t *testing.T) {
	d := loadImage(t, makeImage(t, "16M"))
	s := mount(t, d, ext4.Config{})
	defer s.Close()
	v := newView(s)
	want := func(path, content string) {
		t.Helper()
		for range 2 { // from the blocks, and from the cache
			p, err := v.Lookup(v.Root, path, true)
			switch {
			case content == "" && err != linux.ENOENT:
				t.Errorf("%s exists, or %v", path, err)
			case content != "" && err != nil:
				t.Errorf("%s: %v", path, err)
			case content != "" && p.Node.Attr().Size != int64(len(content)):
				t.Errorf("%s has %d bytes, want %d", path, p.Node.Attr().Size, len(content))
			}
		}
	}
	want("/a/one", "")
	must(t, v.Mkdir(v.Root, "/a", 0o755))
	want("/a/one", "")
	writeFile(t, v, "/a/one", "1")
	writeFile(t, v, "/a/three", "333")
	want("/a/one", "1")
	want("/a/two", "")
	must(t, v.Rename(v.Root, "/a/one", v.Root, "/a/two", 0))
	want("/a/one", "")
	want("/a/two", "1")
	must(t, v.Rename(v.Root, "/a/two", v.Root, "/a/three", fs.RenameExchange))
	want("/a/two", "333")
	want("/a/three", "1")
	must(t, v.Rename(v.Root, "/a/two", v.Root, "/a/three", 0))
	want("/a/two", "")
	want("/a/three", "333")
	p, err := v.Lookup(v.Root, "/a/three", true)
	must(t, err)
	must(t, v.Link(p, v.Root, "/a/two"))
	must(t, v.Unlink(v.Root, "/a/three"))
	want("/a/three", "")
	want("/a/two", "333")
	must(t, v.Change(p, fs.Change{Fields: fs.SetSize, Size: 5}))
	want("/a/two", "55555")
	must(t, v.Rename(v.Root, "/a", v.Root, "/b", 0))
	want("/a/two", "")
	want("/b/two", "55555")
	must(t, v.Unlink(v.Root, "/b/two"))
	must(t, v.Rmdir(v.Root, "/b"))
	must(t, v.Mkdir(v.Root, "/b", 0o755))
	want("/b/two", "")
}

func writeFile(t testing.TB, v *fs.View, path, content string) {
	t.Helper()
	f, err := v.Open(v.Root, path, fs.WriteOnly|fs.Create, 0o644)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	must(t, f.Close())
}
