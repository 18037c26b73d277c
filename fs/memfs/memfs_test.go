package memfs_test

import (
	"bytes"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/fstest"
	"loam/fs/memfs"
	"loam/mem/cache"
	"loam/mem/memtest"
)

func TestFileSystem(t *testing.T) {
	fstest.Test(t, func(*testing.T) fs.FileSystem { return memfs.New(memfs.Config{}) })
	t.Run("files opened as a path", func(t *testing.T) {
		fstest.TestPathOnly(t, func(*testing.T) fs.FileSystem { return memfs.New(memfs.Config{Bytes: 64 << 10, Files: 3}) })
	})
	t.Run("trusted attributes", func(t *testing.T) {
		fstest.TestTrusted(t, func(*testing.T) fs.FileSystem { return memfs.New(memfs.Config{}) })
		fstest.TestACL(t, func(*testing.T) fs.FileSystem { return memfs.New(memfs.Config{Bytes: 64 << 10}) })
	})
}

func newView(c memfs.Config) *fs.View { return fs.NewView(fs.NewTree(memfs.New(c))) }

// A full file system returns ENOSPC, keeps its content, and has room again after a file is removed.
func TestFull(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10, Files: 3})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Write(make([]byte, 100<<10))
	if n != 64<<10 || err != nil {
		t.Errorf("a write that does not fit: %d, %v; want as much as fits", n, err)
	}
	if n, err = f.Write([]byte("x")); n != 0 || err != linux.ENOSPC {
		t.Errorf("a write to a full file system: %d, %v", n, err)
	}
	if n, err := f.WriteAt([]byte("x"), 0); n != 1 || err != nil {
		t.Errorf("a write where there is room: %d, %v", n, err)
	}
	if err := v.Mkdir(v.Dir, "d", 0o755); err != nil {
		t.Error(err)
	}
	if err := v.Mkdir(v.Dir, "e", 0o755); err != linux.ENOSPC {
		t.Errorf("a fourth file of three: %v", err)
	}
	f.Close()
	if err := v.Unlink(v.Dir, "f"); err != nil {
		t.Error(err)
	}
	if u := v.Root.Usage(); u.BlocksFree != u.Blocks || u.FilesFree != 1 {
		t.Errorf("after the removal: %+v", u)
	}
}

// A write to a nameless file that has just been closed allocates no memory.
func TestWriteAfterClose(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Unlink(v.Dir, "f"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if n, err := f.Write([]byte("x")); n != 0 || err != linux.EBADF {
		t.Errorf("write: %d, %v", n, err)
	}
	if u := v.Root.Usage(); u.BlocksFree != u.Blocks {
		t.Errorf("memory is lost: %+v", u)
	}
}

// A nameless file counts towards the limit until it is closed, or until its last name is removed.
func TestTempFileGoes(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10, Files: 2})
	for _, named := range []bool{false, true} {
		f, err := v.Open(v.Dir, ".", fs.ReadWrite|fs.MustBeDir|fs.TempFile, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("x"))
		if named {
			err = v.Link(f.Place(), v.Dir, "f")
		}
		f.Close()
		if u := v.Root.Usage(); err != nil || (u.FilesFree == 0) != named || (u.BlocksFree < u.Blocks) != named {
			t.Errorf("named %v, closed: %+v, %v", named, u, err)
		}
		if err := v.Link(f.Place(), v.Dir, "g"); named != (err == nil) {
			t.Errorf("named %v: a name for what is closed: %v", named, err)
		}
	}
	v.Unlink(v.Dir, "f")
	v.Unlink(v.Dir, "g")
	if u := v.Root.Usage(); u.FilesFree != 1 || u.BlocksFree != u.Blocks {
		t.Errorf("after the removal: %+v", u)
	}
}

// Extended attributes count towards the limit, and are freed with the file.
func TestXattrsTakeMemory(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	p := f.Place()
	if err := v.SetXattr(p, "user.a", make([]byte, 40<<10), 0); err != nil {
		t.Fatal(err)
	}
	if err := v.SetXattr(p, "user.b", make([]byte, 40<<10), 0); err != linux.ENOSPC {
		t.Errorf("more than there is room for: %v", err)
	}
	if got := v.Xattrs(p); len(got) != 1 {
		t.Errorf("attributes %q", got)
	}
	if err := v.SetXattr(p, "user.a", nil, 0); err != nil {
		t.Error(err)
	}
	if u := v.Root.Usage(); u.Blocks-u.BlocksFree != 1 {
		t.Errorf("a short one takes %d pages", u.Blocks-u.BlocksFree)
	}
	if err := v.Unlink(v.Dir, "f"); err != nil {
		t.Error(err)
	}
	if _, err := v.Xattr(p, "user.a"); err != nil {
		t.Errorf("removed, and open: %v", err)
	}
	f.Close()
	if u := v.Root.Usage(); u.BlocksFree != u.Blocks {
		t.Errorf("after the removal: %+v", u)
	}
	if err := v.SetXattr(p, "user.a", nil, 0); err != linux.ENOENT {
		t.Errorf("of a file that has gone: %v", err)
	}
}

// Reading and overwriting existing pages does not allocate.
func TestNoAllocation(t *testing.T) {
	v := newView(memfs.Config{})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 10000)
	f.WriteAt(b, 0)
	if n := testing.AllocsPerRun(100, func() { f.ReadAt(b, 0); f.WriteAt(b, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLookup(b *testing.B) {
	v := newView(memfs.Config{})
	for _, d := range []string{"usr", "usr/share", "usr/share/zoneinfo"} {
		v.Mkdir(v.Dir, d, 0o755)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Lookup(v.Dir, "/usr/share/zoneinfo", true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	v := newView(memfs.Config{})
	f, _ := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	p := make([]byte, 4096)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		f.WriteAt(p, 0)
	}
}

// A file that has neither name nor handle cannot be opened, and is counted once when it goes.
func TestOpenOfGoneFile(t *testing.T) {
	m := memfs.New(memfs.Config{Files: 3})
	v := fs.NewView(fs.NewTree(m))
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := v.Unlink(v.Dir, "f"); err != nil {
		t.Fatal(err)
	}
	for _, flags := range []fs.Flags{fs.ReadOnly, fs.PathOnly} {
		h, err := f.Place().Node.Open(flags)
		if err != linux.ENOENT {
			t.Errorf("flags %#x: %v, want ENOENT", flags, err)
		}
		if err == nil {
			h.Close()
		}
	}
	if free := m.Usage().FilesFree; free != 2 {
		t.Errorf("%d files are free, want 2", free)
	}
}

// An open with PathOnly leaves the content outside the page cache.
func TestPathOnlyOpenEntersNoCache(t *testing.T) {
	source := new(memfs.Source)
	v := newView(memfs.Config{Source: source})
	f, err := v.Open(v.Root, "f", fs.ReadWrite|fs.Create, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.Write([]byte("content"))
	memory := memtest.NewMemory(1)
	pages := cache.New(memory, cache.Limits{})
	source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
	path, err := v.Open(v.Root, "f", fs.PathOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c := f.Handle().(fs.Paged).Content(); c != nil || memory.Used() != 0 {
		t.Errorf("the content is in the page cache: %v, %d pages", c, memory.Used())
	}
	path.Close()
	f.Close()
}

// With a page cache, the file system behaves the same, and frees all pages in the end.
func TestPageCache(t *testing.T) {
	fstest.Test(t, func(t *testing.T) fs.FileSystem {
		memory := memtest.NewMemory(8)
		pages := cache.New(memory, cache.Limits{})
		source := new(memfs.Source)
		source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
		return memfs.New(memfs.Config{Source: source})
	})
}

// When a file is opened, its written pages and its base (the content in the archive) move to the page cache. Its
// pages are freed with the file.
func TestMoveToPageCache(t *testing.T) {
	source := new(memfs.Source)
	m := memfs.New(memfs.Config{Bytes: 1 << 20, Source: source})
	v := fs.NewView(fs.NewTree(m))
	f, err := v.Open(v.Root, "f", fs.ReadWrite|fs.Create, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	below := bytes.Repeat([]byte("below"), 2000)
	if err := memfs.SetContent(f.Place().Node, below); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(below)
	copy(want[5000:], "written")
	f.WriteAt([]byte("written"), 5000)
	memory := memtest.NewMemory(1)
	pages := cache.New(memory, cache.Limits{})
	source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
	second, err := v.Open(v.Root, "f", fs.ReadOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	if c := second.Handle().(fs.Paged).Content(); c == nil {
		t.Fatal("the file has no content in the page cache")
	}
	for _, f := range []*fs.File{f, second} {
		got := make([]byte, len(want)+1)
		if n, err := f.ReadAt(got, 0); n != len(want) || err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("%d bytes, %v; the content is another", n, err)
		}
	}
	if memory.Used() != 1 {
		t.Errorf("%d pages, want that of the write", memory.Used())
	}
	f.Close()
	second.Close()
	if err := v.Unlink(v.Root, "f"); err != nil {
		t.Fatal(err)
	}
	if u := m.Usage(); memory.Used() != 0 || u.BlocksFree != u.Blocks {
		t.Errorf("%d pages are left, usage %+v", memory.Used(), u)
	}
}

// A directory that was removed while it was open still has its attributes, which take no space.
func TestAttributesOfRemovedDirectory(t *testing.T) {
	v := newView(memfs.Config{Bytes: 4096})
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		must(t, v.Mkdir(v.Dir, "d", 0o755))
		p, err := v.Lookup(v.Dir, "d", true)
		must(t, err)
		must(t, v.SetXattr(p, "user.n", []byte("v"), 0))
		must(t, v.Rmdir(v.Dir, "d"))
		if got, err := v.Xattr(p, "user.n"); string(got) != "v" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if err := v.SetXattr(p, "user.m", nil, 0); err != linux.ENOENT {
			t.Errorf("another attribute: %v", err)
		}
		must(t, v.RemoveXattr(p, "user.n"))
	}
}

// LimitFiles does not count the files that are present.
func TestLimitFiles(t *testing.T) {
	m := memfs.New(memfs.Config{})
	v := fs.NewView(fs.NewTree(m))
	for i, name := range []string{"a", "b", "c", "d"} {
		if i == 2 {
			m.LimitFiles(1)
		}
		want := error(nil)
		if i == 3 {
			want = linux.ENOSPC
		}
		if err := v.Mkdir(v.Dir, name, 0o755); err != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
