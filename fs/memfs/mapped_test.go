package memfs_test

import (
	"bytes"
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
	"loam/mem/cache"
	"loam/mem/memtest"
)

// slice implements fs.Memory with a slice.
type slice struct {
	bytes []byte
	freed *int
}

func (s slice) Address() uint64               { return 1 << 20 }
func (s slice) Size() int64                   { return int64(len(s.bytes)) }
func (s slice) Bytes(n int64) ([]byte, error) { return s.bytes[:n], nil }
func (s slice) Clear(from, to int64)          { clear(s.bytes[from:to]) }
func (s slice) Free()                         { *s.freed++ }

// mapFile creates a file with content and maps it.
func mapFile(t *testing.T, v *fs.View, content []byte, size int64) (f *fs.File, m slice, reserve fs.Reserve) {
	t.Helper()
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Fatal(err)
	}
	freed := new(int)
	reserve = func(size int64) (fs.Memory, error) { return slice{make([]byte, size), freed}, nil }
	memory, err := f.Handle().(fs.Mappable).Map(size, reserve)
	if err != nil {
		t.Fatal(err)
	}
	return f, memory.(slice), reserve
}

func TestMapped(t *testing.T) {
	v := newView(memfs.Config{})
	content := bytes.Repeat([]byte("0123456789"), 1000)
	f, m, _ := mapFile(t, v, content, 32<<10)
	if !bytes.Equal(m.bytes[:10_000], content) {
		t.Error("the memory does not have the file's content")
	}
	m.bytes[5] = 'x'
	b := make([]byte, 10)
	if n, err := f.ReadAt(b, 0); n != 10 || err != nil || string(b) != "01234x6789" {
		t.Errorf("what was written to the memory: %q, %v", b[:n], err)
	}
	if _, err := f.WriteAt([]byte("y"), 20_000); err != nil || m.bytes[20_000] != 'y' {
		t.Errorf("what was written to the file: %v", err)
	}
	if err := f.Truncate(3); err != nil {
		t.Error(err)
	}
	if err := f.Truncate(10); err != nil || string(m.bytes[:10]) != "012\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("shorter and longer again: %q, %v", m.bytes[:10], err)
	}
}

// A mapped file grows up to the size of its memory. When it is no longer mapped, it moves to larger
// memory.
func TestMappedGrows(t *testing.T) {
	v := newView(memfs.Config{})
	f, m, reserve := mapFile(t, v, []byte("text"), 8192)
	if n, err := f.WriteAt([]byte("x"), 8192); n != 0 || err != linux.ENOSPC {
		t.Errorf("a write behind the memory: %d, %v", n, err)
	}
	if err := f.Truncate(8193); err != linux.ENOSPC {
		t.Errorf("a longer file than the memory: %v", err)
	}
	h := f.Handle().(fs.Mappable)
	if _, err := h.Map(8193, reserve); err != linux.ENOMEM {
		t.Errorf("a longer mapping than the memory: %v", err)
	}
	h.Unmap()
	if n, err := f.WriteAt([]byte("x"), 8192); n != 1 || err != nil || *m.freed != 1 {
		t.Errorf("a write when nothing is mapped: %d, %v; freed %d times", n, err, *m.freed)
	}
	b := make([]byte, 4)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "text" {
		t.Errorf("in other memory: %q, %v", b, err)
	}
}

// The memory of a mapped file is freed with its last handle and name, and not before.
func TestMappedRemoved(t *testing.T) {
	v := newView(memfs.Config{Bytes: 64 << 10})
	f, m, _ := mapFile(t, v, []byte("text"), 8192)
	if err := v.Unlink(v.Dir, "f"); err != nil || *m.freed != 0 {
		t.Errorf("remove: %v; freed %d times", err, *m.freed)
	}
	f.Handle().(fs.Mappable).Unmap()
	f.Close()
	if u := v.Root.Usage(); *m.freed != 1 || u.BlocksFree != u.Blocks {
		t.Errorf("freed %d times; %+v", *m.freed, u)
	}
}

// A file that a program in ring 0 maps is moved out of the page cache, unless a process in ring 3 maps it. It is not
// moved back later.
func TestMapLeavesPageCache(t *testing.T) {
	memory := memtest.NewMemory(1)
	pages := cache.New(memory, cache.Limits{})
	source := new(memfs.Source)
	source.Set(func(base []byte, charge func(int64) error) fs.Content { return pages.NewMemory(base, charge) })
	v := newView(memfs.Config{Source: source})
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789"), 1000)
	f.WriteAt(content, 0)
	held := f.Handle().(fs.Paged).Content().(*cache.File)
	if !held.Hold() {
		t.Fatal("the file cannot be held")
	}
	freed := new(int)
	reserve := func(size int64) (fs.Memory, error) { return slice{make([]byte, size), freed}, nil }
	if _, err := f.Handle().(fs.Mappable).Map(20000, reserve); err != linux.ENODEV {
		t.Errorf("a map of a file that a process holds: %v", err)
	}
	held.Unhold()
	m, err := f.Handle().(fs.Mappable).Map(20000, reserve)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.(slice).bytes[:len(content)], content) || memory.Used() != 0 {
		t.Errorf("the memory has another content, or %d pages are left", memory.Used())
	}
	if held.Hold() {
		t.Error("a file that has left the page cache can be held")
	}
	second, err := v.Open(v.Dir, "f", fs.ReadOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	if second.Handle().(fs.Paged).Content() != nil {
		t.Error("the file is in the page cache again")
	}
}
