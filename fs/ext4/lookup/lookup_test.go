package lookup

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loam/abi/linux"
	"loam/fs"
)

// file is a node for tests. Only its identity matters.
type file struct {
	fs.Node
	n int
}

// Names of different directories and generations are different names.
func TestNames(t *testing.T) {
	var c Cache
	dir, later := File{12, 1}, File{12, 2}
	if _, err := c.Name(dir, "a"); err != ErrUnknown {
		t.Error("an empty cache knows a name")
	}
	c.ForgetName(dir, "a")
	c.AddName(dir, "a", file{n: 1})
	c.AddName(dir, "absent", nil)
	if n, err := c.Name(dir, "a"); err != nil || n != (file{n: 1}) {
		t.Errorf("%v, %v", n, err)
	}
	if n, err := c.Name(dir, "absent"); err != linux.ENOENT || n != nil {
		t.Errorf("absent: %v, %v", n, err)
	}
	if _, err := c.Name(later, "a"); err != ErrUnknown {
		t.Error("a name of another generation is known")
	}
	if _, err := c.Name(File{13, 1}, "a"); err != ErrUnknown {
		t.Error("a name of another directory is known")
	}
	c.ForgetName(dir, "a")
	if _, err := c.Name(dir, "a"); err != ErrUnknown {
		t.Error("a forgotten name is known")
	}
}

func TestAttributes(t *testing.T) {
	var c Cache
	f := File{12, 1}
	c.ForgetAttr(12)
	c.AddAttr(f, fs.Attr{Inode: 12, Size: 7})
	if c.Linked(f) {
		t.Error("a file without a name is linked")
	}
	c.AddAttr(f, fs.Attr{Inode: 12, Size: 7, Links: 1})
	if !c.Linked(f) || c.Linked(File{12, 2}) {
		t.Error("the links of the cached attributes are not used")
	}
	if a, known := c.Attr(f); !known || a.Size != 7 {
		t.Errorf("%+v, %v", a, known)
	}
	if _, known := c.Attr(File{12, 2}); known {
		t.Error("attributes of another generation are known")
	}
	c.ForgetAttr(12)
	if _, known := c.Attr(f); known {
		t.Error("forgotten attributes are known")
	}
}

// Entries that share a slot replace each other, and never appear under another name.
func TestCollisions(t *testing.T) {
	var c Cache
	const names = 3 * slots
	for i := range names {
		c.AddName(File{uint32(i % 7), 1}, strconv.Itoa(i), file{n: i})
	}
	found := 0
	for i := range names {
		if n, err := c.Name(File{uint32(i % 7), 1}, strconv.Itoa(i)); err == nil {
			if found++; n != (file{n: i}) {
				t.Fatalf("name %d is %v", i, n)
			}
		}
	}
	if found < slots/2 || found > slots {
		t.Errorf("%d names are known, of %d slots", found, slots)
	}
}

// Readers and writers may use a cache at the same time.
func TestConcurrent(t *testing.T) {
	var c Cache
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				text, in := strconv.Itoa(i%50), File{uint32(i % 3), 1}
				switch (i + g) % 3 {
				case 0:
					c.AddName(in, text, file{n: i % 50})
					c.AddAttr(in, fs.Attr{Inode: uint64(in.Inode)})
				case 1:
					c.ForgetName(in, text)
					c.ForgetAttr(in.Inode)
				default:
					if n, err := c.Name(in, text); err == nil && n != (file{n: i % 50}) {
						t.Errorf("name %s is %v", text, n)
					}
					if a, known := c.Attr(in); known && a.Inode != uint64(in.Inode) {
						t.Errorf("the attributes of %d are those of %d", in.Inode, a.Inode)
					}
				}
			}
		})
	}
	all.Wait()
}

func TestHitsDoNotAllocate(t *testing.T) {
	var c Cache
	dir := File{12, 1}
	c.AddName(dir, "a", file{n: 1})
	c.AddAttr(dir, fs.Attr{})
	if n := testing.AllocsPerRun(100, func() { c.Name(dir, "a"); c.Attr(dir) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The first inodes of block groups, where new directories are, do not share a slot: groups have 8192 inodes in most file systems.
func TestInodesOfGroups(t *testing.T) {
	var c Cache
	const perGroup, groups = 8192, 16
	for g := range uint32(groups) {
		c.AddAttr(File{g*perGroup + 1, 1}, fs.Attr{})
		c.AddAttr(File{g*perGroup + 2, 1}, fs.Attr{})
	}
	for g := range uint32(groups) {
		for _, inode := range []uint32{g*perGroup + 1, g*perGroup + 2} {
			if _, known := c.Attr(File{inode, 1}); !known {
				t.Errorf("inode %d is not known", inode)
			}
		}
	}
}

func TestCounts(t *testing.T) {
	var c Counts
	c.Clear()
	if n := c.Add(File{Inode: 12}, -1); n != 0 {
		t.Errorf("%d, want 0", n)
	}
	c.Add(File{Inode: 12}, 1)
	if n := c.Add(File{Inode: 12}, 1); n != 2 || c.Count(File{Inode: 12}) != 2 || c.Count(File{Inode: 13}) != 0 {
		t.Errorf("%d, %d and %d, want 2, 2 and 0", n, c.Count(File{Inode: 12}), c.Count(File{Inode: 13}))
	}
	if n := c.Add(File{Inode: 12}, -2); n != 0 || c.Count(File{Inode: 12}) != 0 {
		t.Errorf("%d and %d, want 0", n, c.Count(File{Inode: 12}))
	}
	c.Add(File{Inode: 12}, 1)
	if c.Clear(); c.Count(File{Inode: 12}) != 0 {
		t.Error("a number is left")
	}
}

// Numbers of many files do not mix, although several files share a part. A number that goes up and down allocates no memory.
func TestCountsOfMany(t *testing.T) {
	var c Counts
	const files = 4 * parts
	for i := range uint32(files) {
		c.Add(File{i, 1}, int(i%3)+1)
	}
	for i := range uint32(files) {
		if n := c.Add(File{i, 1}, -1); n != int(i%3) || c.Count(File{i, 1}) != n || c.Count(File{i, 2}) != 0 {
			t.Fatalf("file %d: %d and %d, want %d", i, n, c.Count(File{i, 1}), i%3)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Add(File{0, 1}, 1); c.Add(File{0, 1}, -1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A part with many files keeps their numbers when it changes to a map and back. The memory for many files is freed.
func TestCountsGrowAndShrink(t *testing.T) {
	var c Counts
	var files []File // of one part
	for i := uint32(0); len(files) < 2*mostListed; i++ {
		if f := (File{i, 1}); c.part(f) == &c.parts[3] {
			files = append(files, f)
		}
	}
	p := &c.parts[3]
	check := func(open []File) {
		t.Helper()
		for i, f := range files {
			want := 0
			if i < len(open) {
				want = i + 1
			}
			if n := c.Count(f); n != want {
				t.Fatalf("%d open files: file %d has %d, want %d", len(open), i, n, want)
			}
		}
	}
	for range 2 {
		for i, f := range files {
			if n := c.Add(f, i+1); n != i+1 {
				t.Fatalf("file %d: %d", i, n)
			}
			check(files[:i+1])
		}
		if len(p.many) != len(files) || p.few != nil {
			t.Errorf("%d files are in the map and %d in the list, want %d and 0", len(p.many), len(p.few), len(files))
		}
		c.Add(files[7], 3)
		if n := c.Add(files[7], -3); n != 8 {
			t.Errorf("%d, want 8", n)
		}
		for i := len(files) - 1; i >= 0; i-- {
			if n := c.Add(files[i], -i-1); n != 0 {
				t.Fatalf("file %d: %d", i, n)
			}
			check(files[:i])
		}
		if p.many != nil || len(p.few) != 0 || cap(p.few) > 2*mostListed {
			t.Errorf("a map of %d and a list of %d are left", len(p.many), cap(p.few))
		}
	}
	for _, f := range files {
		c.Add(f, 1)
	}
	c.Clear()
	check(nil)
}

// If an op removes the last name of a file while an open or close counts, the op sees that the file is open, or the open or close sees
// that the name is gone. The test is the op: it holds the lock that the other one waits for.
func TestRemovalDuringOpenAndClose(t *testing.T) {
	f := File{12, 1}
	for _, test := range []struct {
		name string
		open int // before
		call func(*Counts, *Cache) bool
	}{
		{"lookup.(*Counts).Open", 0, func(c *Counts, known *Cache) bool { return c.Open(f, known) }},
		{"lookup.(*Counts).Close", 1, func(c *Counts, known *Cache) bool { return c.Close(f, known) }},
	} {
		var c Counts
		var known Cache
		known.AddAttr(f, fs.Attr{Links: 1})
		c.Add(f, test.open)
		linked := make(chan bool)
		p := c.part(f)
		p.mu.Lock()
		go func() { linked <- test.call(&c, &known) }()
		awaitLocked(test.name)
		known.ForgetAttr(f.Inode) // the op has not seen the call, and reads the number test.open
		p.mu.Unlock()
		if <-linked {
			t.Errorf("%s uses a name that the op has removed", test.name)
		}
	}
}

// awaitLocked returns when a goroutine waits for a lock in a function.
func awaitLocked(function string) {
	b := make([]byte, 1<<20)
	for {
		for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
			if strings.Contains(g, function) && strings.Contains(g, "[sync.Mutex.Lock") {
				return
			}
		}
		runtime.Gosched()
	}
}

func TestOpenAndClose(t *testing.T) {
	var c Counts
	var known Cache
	f := File{12, 1}
	if c.Open(f, &known) || c.Close(f, &known) {
		t.Error("a file without attributes has a name")
	}
	known.AddAttr(f, fs.Attr{Links: 1})
	if !c.Open(f, &known) || !c.Close(f, &known) || c.Count(f) != 0 {
		t.Error("a file has no name")
	}
	known.ForgetAttr(12)
	c.Add(f, 2)
	if !c.Close(f, &known) || c.Close(f, &known) {
		t.Error("only the last close needs the name")
	}
}

func BenchmarkCounts(b *testing.B) {
	var c Counts
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			c.Add(File{12, 1}, 1)
			c.Add(File{12, 1}, -1)
		}
	})
}

// BenchmarkCountsOfMany opens and closes different files, while others are open.
func BenchmarkCountsOfMany(b *testing.B) {
	for _, open := range []int{0, 1000, 10000, 30000, 100000, 500000} {
		b.Run(strconv.Itoa(open), func(b *testing.B) { benchmarkCountsOfMany(b, open) })
	}
}

func benchmarkCountsOfMany(b *testing.B, open int) {
	var c Counts
	for i := range uint32(open) {
		c.Add(File{13 + i, 1}, 1)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var of atomic.Uint32
	b.RunParallel(func(p *testing.PB) {
		f := File{0, 1 + of.Add(1)}
		for p.Next() {
			f.Inode = (f.Inode + 7919) % 1e6
			c.Add(f, 1)
			c.Add(f, -1)
		}
	})
}
