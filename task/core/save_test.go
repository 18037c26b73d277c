package core_test

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"

	"loam/fs"
	"loam/fs/memfs"
	"loam/mem"
	"loam/mem/memtest"
	"loam/posix"
	"loam/task/core"
	"loam/task/signal"
)

const rw = mem.Read | mem.Write

// dumped is a process whose core dump is tested.
type dumped struct {
	*core.Dump
	process *posix.Process
	memory  *memtest.Memory
	tables  *memtest.Tables
}

// newDumped returns a process with a map of its own and a file system with a number of bytes.
func newDumped(bytes int64) *dumped {
	memory := memtest.NewMemory(4)
	tables := memtest.NewTables(memory)
	m := mem.New(mem.Config{
		Memory: memory, Tables: tables, Account: &mem.Account{Total: 1 << 20}, Layout: mem.NewLayout(8<<20, nil),
		Limits: mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: 8 << 20, Memlock: 8 << 20},
	})
	d := &core.Dump{
		Signal: signal.Info{Signal: signal.Segmentation}, Arguments: func() []byte { return nil }, Memory: m,
		Threads: []core.Thread{{ID: 1}}, Limit: ^uint64(0), FileLimit: ^uint64(0), Aborted: make(chan struct{}),
	}
	tree := fs.NewTree(memfs.New(memfs.Config{Bytes: bytes, Files: 10}))
	return &dumped{d, posix.New(posix.Options{Files: tree}), memory, tables}
}

func (d *dumped) mmap(t *testing.T, q mem.Request) uint64 {
	t.Helper()
	at, err := d.Memory.Mmap(q)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// file returns the file that Save has written.
func (d *dumped) file(t *testing.T) *fs.File {
	t.Helper()
	v := d.process.View()
	f, err := v.Open(v.Dir, "core", fs.ReadWrite, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A hole of any size costs one step, and the dump of shared memory allocates nothing.
func TestDumpOfHoles(t *testing.T) {
	d := newDumped(1 << 20)
	const size = 1 << 38
	private := d.mmap(t, mem.Request{Length: size, Prot: rw, Flags: mem.MapPrivate | mem.MapAnonymous | mem.MapNoReserve})
	shared := d.mmap(t, mem.Request{Length: 1 << 37, Prot: rw, Flags: mem.MapShared, Object: mem.NewShared(d.memory, 1<<25)})
	want := map[uint64]byte{private + 1<<37: 5, private + size - 1: 6, shared + 1<<36: 7}
	for at, v := range want {
		if d.tables.Store(d.Memory, at, v) != mem.Mapped {
			t.Fatal("no page")
		}
	}
	used := d.memory.Used()
	if d.Save(d.process, new(core.Settings)) != signal.CoreFlag || d.memory.Used() != used {
		t.Fatalf("no dump, or %d pages instead of %d", d.memory.Used(), used)
	}
	f, err := elf.NewFile(d.file(t))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, p := range f.Progs {
		for at, v := range want {
			var b [1]byte
			if at < p.Vaddr || at >= p.Vaddr+p.Memsz {
				continue
			}
			if _, err := p.ReadAt(b[:], int64(at-p.Vaddr)); err != nil || b[0] != v {
				t.Errorf("at %x: %d, %v; want %d", at, b[0], err, v)
			}
			found++
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d addresses in the dump", found, len(want))
	}
}

// Abort ends a dump, whether it comes before or in the middle.
func TestAbort(t *testing.T) {
	d := newDumped(1 << 20)
	d.Arguments = func() []byte { d.Abort(); d.Abort(); return nil }
	if d.Save(d.process, new(core.Settings)) != 0 || d.file(t).Attr().Size > mem.PageSize {
		t.Error("the dump went on")
	}
	if got := d.Status(0); got != int32(signal.Kill) {
		t.Errorf("status %#x", got)
	}
	if d.Wait(nil) {
		t.Error("the wait for threads went on")
	}
	d = newDumped(1 << 20)
	d.Abort()
	v := d.process.View()
	if _, err := v.Open(v.Dir, "core", 0, 0); d.Save(d.process, new(core.Settings)) != 0 || err == nil {
		t.Error("a dump that was aborted before has a file")
	}
	(*core.Dump)(nil).Abort()
}

// notes returns the content of the notes.
func (d *dumped) notes(t *testing.T) string {
	t.Helper()
	f, err := elf.NewFile(d.file(t))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, f.Progs[0].Filesz)
	if _, err := f.Progs[0].ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The list of mapped files has a limit, above which there is none.
func TestLargeListOfFiles(t *testing.T) {
	for files, there := range map[int]bool{3: true, 1100: false} {
		d := newDumped(64 << 20)
		path := ""
		for i := range files {
			path = fmt.Sprintf("/%s%d", strings.Repeat("x", 4000), i)
			d.mmap(t, mem.Request{Length: mem.PageSize, Prot: mem.Read, Flags: mem.MapPrivate, Object: mem.NewFixed(mem.Label{Path: path, Inode: 1}, d.memory.Zero())})
		}
		if d.Save(d.process, new(core.Settings)) == 0 {
			t.Fatal("no dump")
		}
		if got := strings.Contains(d.notes(t), path+"\x00"); got != there {
			t.Errorf("with %d files: a list %v, want %v", files, got, there)
		}
	}
}

// A full file system and the limits of the size end a dump.
func TestDumpEndsAtLimits(t *testing.T) {
	for name, limit := range map[string]func(*dumped){
		"disk":         func(*dumped) {},
		"RLIMIT_CORE":  func(d *dumped) { d.Limit = 64 << 10 },
		"RLIMIT_FSIZE": func(d *dumped) { d.FileLimit = 64 << 10 },
	} {
		d := newDumped(128 << 10)
		limit(d)
		at := d.mmap(t, mem.Request{Length: 1 << 20, Prot: rw, Flags: mem.MapPrivate | mem.MapAnonymous})
		for i := range uint64(1 << 20 / mem.PageSize) {
			d.tables.Store(d.Memory, at+i*mem.PageSize, 1)
		}
		if d.Save(d.process, new(core.Settings)) == 0 {
			t.Errorf("%s: no dump", name)
		}
		if size := d.file(t).Attr().Size; size == 0 || size > 128<<10 {
			t.Errorf("%s: %d bytes", name, size)
		}
	}
}

// A dump is written where kernel.core_pattern says. It replaces a regular file with one name, and nothing else.
func TestDumpReplacesOnlyRegularFile(t *testing.T) {
	kinds := map[string]struct {
		mode fs.Mode
		want int32
	}{
		"none": {0, signal.CoreFlag}, "file": {fs.Regular | 0o444, signal.CoreFlag}, "linked": {fs.Regular | 0o666, 0},
		"device": {fs.CharDevice | 0o666, 0}, "pipe": {fs.Fifo | 0o666, 0}, "directory": {fs.Dir | 0o777, 0}, "link": {fs.Symlink, 0},
	}
	for name, kind := range kinds {
		d := newDumped(1 << 20)
		v := d.process.View()
		must(t, v.Mkdir(v.Root, "/d", 0o755))
		path := "/d/" + name + ".7"
		switch {
		case kind.mode == 0:
		case kind.mode.Type() == fs.Symlink:
			must(t, v.Symlink("/target", v.Root, path))
		case kind.mode.Type() == fs.Dir:
			must(t, v.Mkdir(v.Root, path, 0o777))
		default:
			must(t, v.Mknod(v.Root, path, kind.mode, fs.Device{Major: 1, Minor: 3}))
		}
		before, _ := v.Lookup(v.Root, path, false)
		if name == "linked" {
			must(t, v.Link(before, v.Root, "/second"))
		}
		var s core.Settings
		s.SetPattern("/d/" + name)
		s.UsesPID.Store(1)
		d.PID = 7
		if got := d.Save(d.process, &s); got != kind.want {
			t.Errorf("%s: status %#x, want %#x", name, got, kind.want)
		}
		after, err := v.Lookup(v.Root, path, false)
		if err != nil || (after != before) != (kind.want != 0) {
			t.Errorf("%s: replaced: %v, %v", name, after != before, err)
		}
		if a := after.Node.Attr(); kind.want != 0 && (a.Size == 0 || a.Mode != fs.Regular|0o600) {
			t.Errorf("%s: mode %o, %d bytes", name, a.Mode, a.Size)
		}
		if _, err := v.Lookup(v.Root, "/target", false); err == nil {
			t.Errorf("%s: the dump was written through a symbolic link", name)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
