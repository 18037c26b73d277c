package tarfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	iofs "io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	stdfstest "testing/fstest"
	"time"

	"loam/fs"
	"loam/fs/fstest"
	"loam/fs/memfs"
)

// pack packs a directory and loads the archive.
func pack(t *testing.T, dir string) (*fs.View, Packed, []byte) {
	t.Helper()
	var image bytes.Buffer
	p, err := Pack(&image, dir)
	if err != nil {
		t.Fatal(err)
	}
	system, err := Load(image.Bytes(), memfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return fs.NewView(fs.NewTree(system)), p, image.Bytes()
}

// fill creates a directory with one file of every type.
func fill(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	long := strings.Repeat("long/", 40) + strings.Repeat("n", 200)
	for name, text := range map[string]string{
		"a": "text", "empty": "", "d/e/f": "deep", long: "far", "big": strings.Repeat("0123456789abcdef", 1<<16), "ünïcode name": "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink("d/e/f", filepath.Join(dir, "link")),
		os.Symlink("/nowhere", filepath.Join(dir, "dangling")),
		os.Chmod(filepath.Join(dir, "a"), 0o4755),
		os.Chmod(filepath.Join(dir, "d"), 0o750),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Chtimes(filepath.Join(dir, "a"), time.Unix(5, 6), time.Unix(7, 8)),
		os.Chtimes(filepath.Join(dir, "d"), time.Unix(5, 6), time.Unix(9, 10)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The loaded tree equals the packed one: names, types, modes, owners, times, links and content.
func TestRoundTrip(t *testing.T) {
	dir := fill(t)
	v, packed, _ := pack(t, dir)
	if packed.Skipped != 0 || packed.Bytes < 1<<20 {
		t.Errorf("packed %+v", packed)
	}
	count := 0
	err := filepath.WalkDir(dir, func(path string, _ iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		count++
		name := "/" + strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
		var want syscall.Stat_t
		if err := syscall.Lstat(path, &want); err != nil {
			return err
		}
		p, err := v.Lookup(v.Root, name, false)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return nil
		}
		got := p.Node.Attr()
		if uint32(got.Mode) != want.Mode || got.UID != want.Uid || int64(got.Modify) != want.Mtim.Nano() {
			t.Errorf("%s: mode %o, owner %d, time %d; want %o, %d, %d", name, got.Mode, got.UID, got.Modify, want.Mode, want.Uid, want.Mtim.Nano())
		}
		switch got.Mode.Type() {
		case fs.Symlink:
			target, _ := os.Readlink(path)
			if text, _ := v.Readlink(v.Root, name); text != target {
				t.Errorf("%s leads to %s, not %s", name, text, target)
			}
		case fs.Regular:
			text, _ := os.ReadFile(path)
			f, err := v.Open(v.Root, name, fs.ReadOnly, 0)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(text)+1)
			if n, err := f.Read(b); err != nil || !bytes.Equal(b[:n], text) {
				t.Errorf("%s: %d bytes, %v; want %d", name, n, err, len(text))
			}
		}
		return nil
	})
	if err != nil || count != packed.Files {
		t.Errorf("%d files, packed %d, %v", count, packed.Files, err)
	}
	for _, name := range []string{"/dangling", "/fifo"} { // TestFS cannot open them
		if err := v.Unlink(v.Root, name); err != nil {
			t.Error(err)
		}
	}
	if err := stdfstest.TestFS(v.IO(), "a", "d/e/f", "link"); err != nil {
		t.Error(err)
	}
}

// PackOwn leaves out large files and writes subdirectories empty.
func TestPackOwn(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"small": 10, "large": 11, "folder/small": 1} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	packed, err := PackOwn(&archive, dir, 10)
	if err != nil || packed.Skipped != 1 || packed.Bytes != 10 {
		t.Errorf("packed %+v, %v", packed, err)
	}
	system, err := Load(archive.Bytes(), memfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := fs.NewView(fs.NewTree(system))
	for name, want := range map[string]bool{"/small": true, "/folder": true, "/large": false, "/folder/small": false} {
		if _, err := v.Lookup(v.Root, name, false); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Packing a single file gives a root directory with that file.
func TestOneFile(t *testing.T) {
	v, _, _ := pack(t, filepath.Join(fill(t), "a"))
	if p, err := v.Lookup(v.Root, "/a", false); err != nil || p.Node.Attr().Size != 4 {
		t.Errorf("%v", err)
	}
}

// The archive never changes, whatever is written to its files. Random reads, writes and truncations
// give the same results as on a slice.
func TestCopyOnWrite(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewSource(seed))
	v, _, image := pack(t, fill(t))
	before := slices.Clone(image)
	f, err := v.Open(v.Root, "/big", fs.ReadWrite, 0)
	if err != nil {
		t.Fatal(err)
	}
	model := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	for range 2000 {
		at, n := random.Intn(1<<20+1<<14), random.Intn(20_000)
		switch random.Intn(10) {
		case 0:
			if err := f.Truncate(int64(at)); err != nil {
				t.Fatal(err)
			}
			model = append(model, make([]byte, max(at-len(model), 0))...)[:at]
		case 1, 2, 3, 4:
			b := make([]byte, n)
			random.Read(b)
			if _, err := f.WriteAt(b, int64(at)); err != nil {
				t.Fatal(err)
			}
			model = append(model, make([]byte, max(at+n-len(model), 0))...)
			copy(model[at:], b)
		default:
			b := make([]byte, n)
			got, err := f.ReadAt(b, int64(at))
			want := model[min(at, len(model)):min(at+n, len(model))]
			if err != nil || !bytes.Equal(b[:got], want) {
				t.Fatalf("read of %d at %d: %d bytes, %v; want %d", n, at, got, err, len(want))
			}
		}
	}
	if !bytes.Equal(image, before) {
		t.Error("the archive has changed")
	}
}

// A loaded file system passes the suite of package fstest.
func TestFileSystem(t *testing.T) {
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: ".", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	fstest.Test(t, func(t *testing.T) fs.FileSystem {
		system, err := Load(image.Bytes(), memfs.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return system
	})
}

// Load handles archives of other programs: missing directories, names that would leave the archive,
// duplicate names, links between files, and a truncated end.
func TestForeignArchives(t *testing.T) {
	archive := func(headers ...tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			io.CopyN(w, zeros{}, h.Size)
		}
		w.Close()
		return b.Bytes()
	}
	file := func(name string, size int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	for name, c := range map[string]struct {
		image []byte
		has   string // path of a file of 5 bytes; empty: Load fails
	}{
		"no folders":   {archive(file("x/y/z", 5)), "/x/y/z"},
		"folder later": {archive(file("x/y", 5), tar.Header{Typeflag: tar.TypeDir, Name: "x", Mode: 0o700}), "/x/y"},
		"dot dot":      {archive(file("../../etc/passwd", 5)), "/etc/passwd"},
		"twice":        {archive(file("a", 5), file("a", 1)), ""},
		"hard link":    {archive(file("a", 5), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}), "/b"},
		"no target":    {archive(tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}), ""},
		"a device":     {archive(tar.Header{Typeflag: tar.TypeChar, Name: "null"}), ""},
		"below a file": {archive(file("a", 5), file("a/b", 5)), ""},
		"cut off":      {archive(file("a", 5), file("b", 5000))[:2000], ""},
		"empty":        {nil, "-"},
	} {
		system, err := Load(c.image, memfs.Config{})
		switch {
		case c.has == "" && err == nil:
			t.Errorf("%s: loaded", name)
		case c.has == "" || c.has == "-":
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			v := fs.NewView(fs.NewTree(system))
			if p, err := v.Lookup(v.Root, c.has, false); err != nil || p.Node.Attr().Size != 5 {
				t.Errorf("%s: %s: %v", name, c.has, err)
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, typ := range []byte{tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h := tar.Header{Typeflag: typ, Name: "a/b", Linkname: "..", Mode: 0o644}
		if w.WriteHeader(&h) != nil {
			f.Fatal("no header")
		}
		w.Close()
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		system, err := Load(image, memfs.Config{})
		if err == nil && system.Root() == nil {
			t.Error("no root")
		}
	})
}

// A deferred archive is loaded on first use, and then equals the result of Load.
func TestDeferred(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	var image bytes.Buffer
	if _, err := Pack(&image, dir); err != nil {
		t.Fatal(err)
	}
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	if err := v.Mkdir(v.Root, "/d", 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := v.Lookup(v.Root, "/d", true)
	if err != nil {
		t.Fatal(err)
	}
	loaded := false
	system := watched{Deferred(image.Bytes(), memfs.Config{}), &loaded}
	if err := v.Tree.Mount(system, at, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Mkdir(v.Root, "/e", 0o700); err != nil || loaded {
		t.Errorf("beside it: %v, loaded is %v", err, loaded)
	}
	f, err := v.Open(v.Root, "/d/f", fs.ReadOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := f.Read(b); string(b[:n]) != "text" || err != nil || !loaded {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if p, err := v.Lookup(v.Root, "/d/../d/./..", true); err != nil || p != v.Root {
		t.Errorf("above it is %v, %v", p, err)
	}
}

// watched is a file system that records whether its root was requested.
type watched struct {
	fs.FileSystem
	asked *bool
}

func (w watched) Root() fs.Directory {
	*w.asked = true
	return w.FileSystem.Root()
}

// Files that a kernel generates (as in /proc) are not packed. Such a file may report a size of 0, or a size larger
// than any storage.
func TestPackOfInventions(t *testing.T) {
	for _, name := range []string{"/proc", "/proc/self/status", "/sys"} {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		var b bytes.Buffer
		if p, err := Pack(&b, name); !errors.Is(err, ErrMadeUp) || b.Len() > 0 {
			t.Errorf("%s: %+v, %v, %d bytes", name, p, err, b.Len())
		}
	}
}

// A file that is replaced by a symbolic link before it is opened is left out. The target of the link is
// not packed.
func TestPackReplaced(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for name, text := range map[string]string{secret: "secret", filepath.Join(dir, "file"): "a file"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	st, err := root.Lstat("file")
	if err != nil {
		t.Fatal(err)
	}
	p := &packer{root: root}
	for what, replace := range map[string]func(name string) error{
		"a link out of the folder": func(name string) error { return os.Symlink(secret, name) },
		"a link in the folder":     func(name string) error { return os.Symlink(".", name) },
		"a pipe":                   func(name string) error { return syscall.Mkfifo(name, 0o644) },
	} {
		name := filepath.Join(dir, "file")
		if err := errors.Join(os.Remove(name), replace(name)); err != nil {
			t.Fatal(err)
		}
		if f, err := p.open("file", st); err == nil {
			t.Errorf("%s in its place is opened: %s", what, f.Name())
		}
	}
}

// While one goroutine swaps a directory for a link to another directory, nothing of the other directory
// is packed.
func TestPackSwappedFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644), os.Mkdir(filepath.Join(dir, "a"), 0o755)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		name, kept := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(name, kept)
			os.Symlink(outside, name)
			os.Remove(name)
			os.Rename(kept, name)
		}
	}()
	for range 300 {
		var archive bytes.Buffer
		Pack(&archive, dir) // an error is acceptable, since the folder changes meanwhile
		if bytes.Contains(archive.Bytes(), []byte("secret\x00")) && bytes.Contains(archive.Bytes(), []byte("/secret")) {
			t.Fatal("a file from outside is packed")
		}
	}
	close(stop)
	<-stopped
}

// A single file may be named relative to the working folder, without any folder.
func TestPackRelativeFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("one", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "./one"} {
		v, _, _ := pack(t, name)
		if _, err := v.Lookup(v.Root, "/one", false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
