package imagefile_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/fs/ext4/format"
	"loam/fs/imagefile"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes an image.
func create(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	f, err := imagefile.Create(path, size, format.Config{Label: "test"})
	must(t, err)
	must(t, f.Close())
	return path
}

func open(t *testing.T, path string, writable bool) *imagefile.Image {
	t.Helper()
	i, err := imagefile.Open(path, writable)
	must(t, err)
	return i
}

// tree makes a folder with one file of each kind that can be copied, and one file of a kind that cannot.
func tree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o750))
	must(t, os.WriteFile(filepath.Join(dir, "a/large"), bytes.Repeat([]byte("0123456789abcdef"), 200_000), 0o640))
	must(t, os.WriteFile(filepath.Join(dir, "a/b/empty"), nil, 0o604))
	must(t, os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755))
	must(t, syscall.Chmod(filepath.Join(dir, "run"), 0o4755))
	must(t, os.Symlink("a/b/../large", filepath.Join(dir, "link")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Chtimes(filepath.Join(dir, "run"), time.Unix(1e9, 0), time.Unix(1e9, 5)))
	return dir
}

// describe lists a folder of the host: modes, sizes, times of files, targets, contents.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err != nil || st.Mode()&os.ModeNamedPipe != 0 {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%s %v", name, st.Mode())
		if st.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			must(t, err)
			fmt.Fprintf(&b, " %d %v %d", len(data), st.ModTime().UnixNano(), bytes.Count(data, []byte("a")))
		}
		if to, err := os.Readlink(path); err == nil {
			b.WriteString(" " + to)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// A folder that is copied into an image and out again is unchanged, and e2fsck accepts the image. Files that cannot
// be copied are reported.
func TestCopy(t *testing.T) {
	from, image := tree(t), create(t, 64<<20)
	var left []string
	skipped := func(name, _ string) { left = append(left, filepath.Base(name)) }
	i := open(t, image, true)
	must(t, i.CopyIn(from, "/", skipped))
	must(t, i.CopyIn(from, "/again", skipped))
	must(t, i.CopyIn(filepath.Join(from, "run"), "/again/a", skipped))
	must(t, i.CopyIn(from, "/", skipped)) // copied once more, over the existing files
	must(t, i.Close())
	if out, err := exec.Command("/usr/sbin/e2fsck", "-fn", image).CombinedOutput(); err != nil {
		t.Errorf("e2fsck: %v: %s", err, out)
	}
	f, err := imagefile.Check(image)
	if err != nil || !f.OK() {
		t.Errorf("Check: %v, %q", err, f.Problems)
	}
	before, err := os.ReadFile(image)
	must(t, err)
	i = open(t, image, false)
	out := t.TempDir()
	must(t, i.CopyOut("/tree", out, skipped))
	must(t, i.CopyOut("/again/a/run", filepath.Join(out, "other"), skipped))
	must(t, i.Close())
	if got, want := describe(t, filepath.Join(out, "tree")), describe(t, from); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b, err := os.ReadFile(filepath.Join(out, "other")); string(b) != "#!/bin/sh\n" {
		t.Errorf("a single file: %q, %v", b, err)
	}
	if fmt.Sprint(left) != "[pipe pipe pipe]" {
		t.Errorf("left out: %v", left)
	}
	if after, err := os.ReadFile(image); err != nil || !bytes.Equal(before, after) {
		t.Errorf("reading has changed the image: %v", err)
	}
}

// Listings show all files and their attributes.
func TestList(t *testing.T) {
	image := create(t, 64<<20)
	i := open(t, image, true)
	defer i.Close()
	must(t, i.CopyIn(tree(t), "/t", nil))
	show := func(f func(*bytes.Buffer) error) string {
		var b bytes.Buffer
		must(t, f(&b))
		return b.String()
	}
	if got := show(func(b *bytes.Buffer) error { return i.List("/t", false, true, b) }); got != "a\na/b\na/b/empty\na/large\nlink\nrun\n" {
		t.Errorf("names: %s", got)
	}
	got := show(func(b *bytes.Buffer) error { return i.List("/t", true, false, b) })
	for _, want := range []string{"drwxr-x---   3 ", "lrwxrwxrwx   1 ", "link -> a/b/../large\n", "-rwsr-xr-x   1 ", "          10 2001-09-09 01:46:40 run\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := show(func(b *bytes.Buffer) error { return i.Cat("/t/run", b) }); got != "#!/bin/sh\n" {
		t.Errorf("cat: %q", got)
	}
	if got := show(func(b *bytes.Buffer) error { return i.Stat("/t/run", b) }); !strings.Contains(got, "mode      4755 -rwsr-xr-x\nlinks     1\n") {
		t.Errorf("stat: %s", got)
	}
	if got := show(func(b *bytes.Buffer) error { return i.Describe(b) }); !strings.Contains(got, "label     test\n") || !strings.Contains(got, "has_journal, ") {
		t.Errorf("describe: %s", got)
	}
}

// Every wrong argument gives an error of one line, and leaves no file behind.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	image := create(t, 8<<20)
	i := open(t, image, true)
	must(t, i.CopyIn("/proc/self/status", "/status", nil))
	b := &bytes.Buffer{}
	foreign := filepath.Join(dir, "foreign")
	must(t, os.WriteFile(foreign, make([]byte, 4096), 0o600))
	large := filepath.Join(dir, "large")
	must(t, os.WriteFile(large, make([]byte, 16<<20), 0o600))
	for want, err := range map[string]error{
		"has no /none: look with loam disk ls":    i.Cat("/none", b),
		"/lost+found is a folder: name a file":    i.Cat("/lost+found", b),
		"/none cannot be read":                    i.CopyIn("/none", "/", nil),
		"/status: not a directory":                i.CopyIn(tree(t), "/status", nil),
		"no space left on device":                 i.CopyIn(large, "/", nil),
		"has no /x: look":                         i.CopyOut("/x", dir, nil),
		"cannot be copied to /none/x":             i.CopyOut("/status", "/none/x", nil),
		"is in use: another program":              second(imagefile.Open(image, false)),
		"there is no " + dir + "/none: create it": second(imagefile.Open(dir+"/none", false)),
		"is no image of a disk":                   second(imagefile.Open(dir, false)),
		"has no ext4 file system":                 second(imagefile.Check(foreign)),
		"exists already":                          second(imagefile.Create(foreign, 8<<20, format.Config{})),
		"too few for a file system":               second(imagefile.Create(dir+"/small", 1<<20, format.Config{})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	must(t, i.Close())
	if _, err := os.Stat(dir + "/small"); err == nil {
		t.Error("small was left behind")
	}
}

func second[T any](_ T, err error) error { return err }

// An image grows, and keeps its files. An image that cannot grow keeps its size.
func TestGrow(t *testing.T) {
	path, dir := create(t, 20<<20), tree(t)
	i := open(t, path, true)
	must(t, i.CopyIn(dir, "/", func(string, string) {}))
	must(t, i.Close())
	must(t, imagefile.Grow(path, 300<<20))
	f, err := imagefile.Check(path)
	must(t, err)
	if !f.OK() || f.Summary.Blocks*uint64(f.Summary.BlockSize) != 300<<20 {
		t.Errorf("%d blocks of %d bytes, %q", f.Summary.Blocks, f.Summary.BlockSize, f.Problems)
	}
	out := filepath.Join(t.TempDir(), "out")
	i = open(t, path, false)
	must(t, i.CopyOut("/tree", out, func(string, string) {}))
	must(t, i.Close())
	if got, want := describe(t, out), describe(t, dir); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := imagefile.Grow(path, 1<<50); err == nil {
		t.Error("it grew to 1 PiB")
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 300<<20 {
		t.Errorf("it has %d bytes, %v", st.Size(), err)
	}
}
