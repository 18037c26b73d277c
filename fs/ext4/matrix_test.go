package ext4_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/memfs"
	"loam/internal/race"
)

// Compatibility: images made by mke2fs with many combinations of features are read and written.

// combinations are arguments for mke2fs that choose features.
var combinations = []struct {
	name, size string
	args       string
	readOnly   bool // this package supports the features only for reading
}{
	{"default", "64M", "", false},
	{"1 KiB", "48M", "-b 1024", false},
	{"2 KiB", "64M", "-b 2048", false},
	{"8 KiB", "64M", "-b 8192", false},
	{"16 KiB", "96M", "-b 16384", false},
	{"64 KiB", "192M", "-b 65536", false},
	{"64 KiB without checksums", "192M", "-b 65536 -O ^metadata_csum", false},
	{"without checksums", "64M", "-O ^metadata_csum", false},
	{"uninit_bg", "64M", "-O ^metadata_csum,uninit_bg", false},
	{"uninit_bg 64bit", "64M", "-O ^metadata_csum,uninit_bg,64bit -b 1024", false},
	{"32bit", "64M", "-O ^64bit", false},
	{"no journal", "64M", "-O ^has_journal", false},
	{"no flex_bg", "64M", "-O ^flex_bg,^resize_inode -b 1024", false},
	{"meta_bg", "64M", "-O meta_bg,^resize_inode -b 1024", false},
	{"sparse_super2", "64M", "-O sparse_super2,^resize_inode -b 1024", false},
	{"no dir_index", "64M", "-O ^dir_index", false},
	{"no filetype", "64M", "-O ^filetype", false},
	{"inodes of 128 bytes", "64M", "-I 128 -O ^extra_isize", false},
	{"inodes of 512 bytes", "64M", "-I 512", false},
	{"orphan_file", "64M", "-O orphan_file", false},
	{"large_dir", "64M", "-O large_dir -b 1024", false},
	{"metadata_csum_seed", "64M", "-O metadata_csum_seed -U 01234567-89ab-cdef-0123-456789abcdef", false},
	{"bigalloc", "256M", "-O bigalloc", true},
	{"inline_data", "64M", "-O inline_data", true},
	{"quota", "64M", "-O quota", true},
	{"project", "64M", "-O project -I 256", true},
	{"ext3", "64M", "-t ext3", true},
	{"ext2", "64M", "-t ext2", true},
}

// sourceTree creates files of many kinds on the host.
func sourceTree(t *testing.T) string {
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(7, 7))
	write := func(name string, size int) {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		must(t, os.WriteFile(filepath.Join(dir, name), b, 0o640))
	}
	for _, d := range []string{"a", "a/b", "a/b/c", "many", "empty"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o750))
	}
	for i, size := range []int{0, 1, 59, 60, 61, 1023, 4096, 4097, 70_000, 3 << 20} {
		write(fmt.Sprintf("a/size%d-%d", i, size), size)
	}
	for i := range 1200 {
		write(fmt.Sprintf("many/name number %d of many", i), i%7)
	}
	write(strings.Repeat("n", 255), 10)
	write("ümlaut", 10)
	hole := filepath.Join(dir, "hole")
	write("hole", 5000)
	must(t, os.Truncate(hole, 9<<20))
	f, err := os.OpenFile(hole, os.O_WRONLY, 0)
	must(t, err)
	f.WriteAt([]byte("in the middle"), 5<<20)
	f.WriteAt([]byte("end"), 9<<20-3) // mke2fs -d with inline_data does not copy a hole at the end
	f.Close()
	must(t, os.Symlink("a/b", filepath.Join(dir, "short link")))
	must(t, os.Symlink(strings.Repeat("long/", 40), filepath.Join(dir, "long link")))
	must(t, os.Link(filepath.Join(dir, "ümlaut"), filepath.Join(dir, "a/hard link")))
	must(t, os.Chmod(filepath.Join(dir, "ümlaut"), 0o604))
	syscall.Mknod(filepath.Join(dir, "fifo"), linux.S_IFIFO|0o600, 0)
	syscall.Mknod(filepath.Join(dir, "device"), linux.S_IFCHR|0o600, 0x12345)
	for i := range 4 {
		value := bytes.Repeat([]byte{'v'}, 10+100*i)
		syscall.Setxattr(hole, fmt.Sprintf("user.attribute%d", i), value, 0)
	}
	must(t, os.Chtimes(hole, time.Unix(1e9, 0), time.Unix(5e8, 0)))
	return dir
}

// same fails the test if the files of a view differ from the files in a folder of the host; times selects whether
// modification times are compared.
func same(t *testing.T, v *fs.View, guest, host string, times bool) {
	t.Helper()
	entries, err := os.ReadDir(host)
	must(t, err)
	var want []string
	for _, e := range entries {
		if e.Name() != "lost+found" {
			want = append(want, e.Name())
		}
	}
	f, err := v.Open(v.Dir, guest, fs.ReadOnly|fs.MustBeDir, 0)
	must(t, err)
	var got []string
	must(t, f.ReadDir(func(e fs.Entry) bool {
		if e.Name != "." && e.Name != ".." && e.Name != "lost+found" {
			got = append(got, e.Name)
		}
		return true
	}))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %d names, want %d", guest, len(got), len(want))
	}
	for _, name := range want {
		sameFile(t, v, guest+"/"+name, filepath.Join(host, name), times)
	}
}

func sameFile(t *testing.T, v *fs.View, guest, host string, times bool) {
	t.Helper()
	var st syscall.Stat_t
	must(t, syscall.Lstat(host, &st))
	p, err := v.Lookup(v.Dir, guest, false)
	if err != nil {
		t.Fatalf("%s: %v", guest, err)
	}
	a := p.Node.Attr()
	isDir := a.Mode.Type() == fs.Dir
	if uint32(a.Mode) != st.Mode || !isDir && uint64(a.Links) != st.Nlink || !isDir && a.Size != st.Size ||
		a.UID != st.Uid || times && int64(a.Modify)/1e9 != st.Mtim.Sec {
		t.Errorf("%s: %+v, want mode %o, links %d, size %d, modified %d", guest, a, st.Mode, st.Nlink, st.Size, st.Mtim.Sec)
	}
	switch a.Mode.Type() {
	case fs.Dir:
		same(t, v, guest, host, times)
	case fs.Symlink:
		want, _ := os.Readlink(host)
		if got, err := v.Readlink(v.Dir, guest); got != want {
			t.Errorf("%s leads to %q, %v", guest, got, err)
		}
	case fs.CharDevice:
		if a.Device.Number() != uint64(st.Rdev) {
			t.Errorf("%s: device %v, want %#x", guest, a.Device, st.Rdev)
		}
	case fs.Regular:
		want, err := os.ReadFile(host)
		must(t, err)
		if got := content(t, v, guest); sha256.Sum256(got) != sha256.Sum256(want) {
			t.Errorf("%s: %d bytes differ from %d", guest, len(got), len(want))
		}
		sameAttributes(t, v, p, host)
	}
}

func sameAttributes(t *testing.T, v *fs.View, p fs.Place, host string) {
	t.Helper()
	for _, name := range v.Xattrs(p) {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		got, err := v.Xattr(p, name)
		must(t, err)
		want := make([]byte, 1000)
		n, err := syscall.Getxattr(host, name, want)
		if err != nil || !bytes.Equal(got, want[:n]) {
			t.Errorf("%s: %s is %q, want %q, %v", host, name, got, want[:max(n, 0)], err)
		}
	}
	list := make([]byte, 1000)
	n, _ := syscall.Listxattr(host, list)
	if want := bytes.Count(list[:max(n, 0)], []byte("user.")); want != len(v.Xattrs(p)) {
		t.Errorf("%s: attributes %q, want %d", host, v.Xattrs(p), want)
	}
}

func content(t *testing.T, v *fs.View, path string) []byte {
	t.Helper()
	f, err := v.Open(v.Dir, path, fs.ReadOnly, 0)
	must(t, err)
	defer f.Close()
	b := make([]byte, f.Attr().Size)
	for n := 0; n < len(b); {
		got, err := f.Read(b[n:])
		if err != nil || got == 0 {
			t.Fatalf("%s: %d bytes at %d, %v", path, got, n, err)
		}
		n += got
	}
	return b
}

// few reduces the work under the race detector: tests with a single goroutine run only every ninth case.
const few = 9

// TestReadForeign reads file systems that mke2fs -d wrote.
func TestReadForeign(t *testing.T) {
	dir := sourceTree(t)
	for i, c := range combinations {
		if race.Enabled && i%few != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			d := loadImage(t, makeImage(t, c.size, append(strings.Fields(c.args), "-d", dir)...))
			s := mount(t, d, ext4.Config{ReadOnly: true, CacheBytes: 1 << 20})
			same(t, newView(s), "/", dir, true)
			must(t, s.Close())
			checkOurs(t, d)
			s = mount(t, d, ext4.Config{})
			if (s.ReadOnly() != "") != c.readOnly {
				t.Errorf("read-only: %q", s.ReadOnly())
			}
			must(t, s.Close())
			if !c.readOnly {
				check(t, d)
			}
		})
	}
}

// TestWriteAll makes the same random changes to each combination and to memfs. Both must have the
// same tree: as this package reads it, as debugfs reads it, and after it is opened again. e2fsck
// must find no problem.
func TestWriteAll(t *testing.T) {
	for i, c := range combinations {
		if c.readOnly || race.Enabled && i%few != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			base := loadImage(t, makeImage(t, c.size, strings.Fields(c.args)...))
			writeRandom(t, base, 1)
		})
	}
}

func writeRandom(t *testing.T, d *memory.Device, seed uint64) {
	s := mount(t, d, ext4.Config{CacheBytes: 1 << 20, Interval: time.Hour})
	m := memfs.New(memfs.Config{})
	a, b := newView(s), newView(m)
	r := &random{rnd: rand.New(rand.NewPCG(seed, 9))}
	for step := range 400 {
		r.pick()
		if x, y := r.do(a), r.do(b); x != y {
			t.Fatalf("seed %d, step %d: %v, and on memfs %v", seed, step, x, y)
		}
		if r.rnd.IntN(100) == 0 {
			must(t, s.Sync())
		}
	}
	equal(t, a, b, "/")
	must(t, s.Close())
	check(t, d)
	again := mount(t, d, ext4.Config{ReadOnly: true})
	equal(t, newView(again), b, "/")
	must(t, again.Close())
	dumped(t, d, b)
}

// dumped fails the test if the files that debugfs reads from the device differ from the files of a view.
func dumped(t *testing.T, d *memory.Device, v *fs.View) {
	t.Helper()
	path, dir := saveImage(t, d), t.TempDir()
	defer os.Remove(path)
	if out, err := tool(t, "debugfs", "-R", "rdump / "+dir, path); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	var walk func(string)
	walk = func(guest string) {
		for _, name := range listing(t, v, guest) {
			p, err := v.Lookup(v.Dir, guest+"/"+name, false)
			must(t, err)
			switch p.Node.Attr().Mode.Type() {
			case fs.Dir:
				walk(guest + "/" + name)
			case fs.Regular:
				got, err := os.ReadFile(filepath.Join(dir, guest, name))
				if err != nil || !bytes.Equal(got, content(t, v, guest+"/"+name)) {
					t.Errorf("debugfs reads %d bytes of %s/%s, %v", len(got), guest, name, err)
				}
			}
		}
	}
	walk("")
}

func listing(t *testing.T, v *fs.View, dir string) (names []string) {
	t.Helper()
	f, err := v.Open(v.Dir, dir+"/", fs.ReadOnly|fs.MustBeDir, 0)
	must(t, err)
	defer f.Close()
	must(t, f.ReadDir(func(e fs.Entry) bool {
		if e.Name != "." && e.Name != ".." && e.Name != "lost+found" {
			names = append(names, e.Name)
		}
		return true
	}))
	slices.Sort(names)
	return names
}

// equal fails the test if the trees of two views below dir differ.
func equal(t *testing.T, a, b *fs.View, dir string) {
	t.Helper()
	x, y := listing(t, a, dir), listing(t, b, dir)
	if !slices.Equal(x, y) {
		t.Fatalf("%s: %q, want %q", dir, x, y)
	}
	for _, name := range x {
		path := dir + "/" + name
		p, err := a.Lookup(a.Dir, path, false)
		must(t, err)
		q, err := b.Lookup(b.Dir, path, false)
		must(t, err)
		pa, qa := p.Node.Attr(), q.Node.Attr()
		isDir := pa.Mode.Type() == fs.Dir
		if pa.Mode != qa.Mode || pa.Links != qa.Links || !isDir && pa.Size != qa.Size || pa.UID != qa.UID || pa.GID != qa.GID {
			t.Fatalf("%s: %+v, want %+v", path, pa, qa)
		}
		if !slices.Equal(a.Xattrs(p), b.Xattrs(q)) {
			t.Fatalf("%s: attributes %q, want %q", path, a.Xattrs(p), b.Xattrs(q))
		}
		switch pa.Mode.Type() {
		case fs.Dir:
			equal(t, a, b, path)
		case fs.Symlink:
			x, _ := a.Readlink(a.Dir, path)
			if y, _ := b.Readlink(b.Dir, path); x != y {
				t.Fatalf("%s leads to %q, want %q", path, x, y)
			}
		case fs.Regular:
			if !bytes.Equal(content(t, a, path), content(t, b, path)) {
				t.Fatalf("%s differs", path)
			}
		}
	}
}

// random chooses a random operation and makes the same one on several views (of ext4 and of a file system in memory).
type random struct {
	rnd          *rand.Rand
	call, number int
	a, b         string
	data         []byte
	offset       int64
}

func (r *random) pick() {
	path := func() string {
		p := ""
		for range 1 + r.rnd.IntN(3) {
			p += "/" + []string{"a", "b", "c", "d"}[r.rnd.IntN(4)]
		}
		return p
	}
	r.call, r.a, r.b, r.number = r.rnd.IntN(14), path(), path(), r.rnd.IntN(1000)
	r.offset = int64(r.rnd.IntN(300_000))
	if r.rnd.IntN(3) == 0 {
		r.offset *= 97
	}
	r.data = make([]byte, r.rnd.IntN(40_000))
	for i := range r.data {
		r.data[i] = byte(r.rnd.Uint32())
	}
}

func (r *random) do(v *fs.View) error {
	switch r.call {
	case 0, 1:
		return v.Mkdir(v.Dir, r.a, 0o755)
	case 2:
		return v.Unlink(v.Dir, r.a)
	case 3:
		return v.Rmdir(v.Dir, r.a)
	case 4:
		return v.Rename(v.Dir, r.a, v.Dir, r.b, fs.RenameFlags(r.number%3))
	case 5:
		p, err := v.Lookup(v.Dir, r.a, false)
		if err != nil {
			return err
		}
		return v.Link(p, v.Dir, r.b)
	case 6:
		return v.Symlink(strings.Repeat("target", 1+r.number%30), v.Dir, r.b)
	case 7:
		return r.change(v, fs.Change{Fields: fs.SetSize, Size: r.offset})
	case 8:
		return r.change(v, fs.Change{Fields: fs.SetMode | fs.SetOwner, Mode: 0o755, UID: uint32(r.number * 1000)})
	case 9:
		p, err := v.Lookup(v.Dir, r.a, true)
		if err != nil {
			return err
		}
		return v.SetXattr(p, fmt.Sprintf("user.%d", r.number%5), r.data[:min(len(r.data), r.number%150)], 0)
	case 10:
		return r.fillNames(v)
	}
	f, err := v.Open(v.Dir, r.a, fs.ReadWrite|fs.Create, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(r.data, r.offset)
	return err
}

// fillNames creates many names in a directory, or removes them if they exist.
func (r *random) fillNames(v *fs.View) error {
	for i := range r.number % 300 {
		name := fmt.Sprintf("%s/%d%s", r.a, i, strings.Repeat("x", r.number%100))
		if v.Mknod(v.Dir, name, fs.Regular|0o644, fs.Device{}) != nil {
			v.Unlink(v.Dir, name)
		}
	}
	return nil
}

func (r *random) change(v *fs.View, c fs.Change) error {
	p, err := v.Lookup(v.Dir, r.a, true)
	if err != nil {
		return err
	}
	return v.Change(p, c)
}
