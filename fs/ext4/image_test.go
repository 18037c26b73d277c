package ext4_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/block"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
)

// Images made by mke2fs, and checks of our images by e2fsck and debugfs.

// tool runs a program of e2fsprogs, and returns its output.
func tool(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip(name + " of e2fsprogs is not installed")
	}
	cmd := exec.Command(path, args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// makeImage runs mke2fs to make an image of a size such as "64M", and returns its path.
func makeImage(t testing.TB, size string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if !slices.Contains(args, "-t") {
		args = append([]string{"-t", "ext4"}, args...)
	}
	args = append([]string{"-q", "-F"}, args...)
	if out, err := tool(t, "mke2fs", append(args, path, size)...); err != nil {
		t.Fatalf("mke2fs %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return path
}

const piece = 1 << 20

// loadImage reads an image into a device in memory.
func loadImage(t testing.TB, path string) *memory.Device {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	d := memory.New(st.Size(), memory.Config{})
	to := block.NewIO(d)
	b := make([]byte, piece)
	zeros := make([]byte, piece)
	for at := int64(0); at < st.Size(); at += piece {
		n, err := f.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := to.WriteAt(b[:n], at); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// saveImage writes the contents of a device to a file.
func saveImage(t testing.TB, d block.Device) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	from := block.NewIO(d)
	b := make([]byte, 64<<10)
	zeros := make([]byte, 64<<10)
	for at := int64(0); at < d.Size(); at += int64(len(b)) {
		n, err := from.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := f.WriteAt(b[:n], at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Truncate(d.Size()); err != nil {
		t.Fatal(err)
	}
	return path
}

// check checks a device with e2fsck.
func check(t testing.TB, d block.Device) {
	t.Helper()
	path := saveImage(t, d)
	defer os.Remove(path)
	if out, err := tool(t, "e2fsck", "-fn", path); err != nil || strings.Contains(out, "FILE SYSTEM WAS MODIFIED") {
		t.Fatalf("e2fsck -fn: %v\n%s", err, out)
	}
	checkOurs(t, d)
}

// checkOurs checks a device with Check.
func checkOurs(t testing.TB, d block.Device) {
	t.Helper()
	f, err := ext4.Check(d)
	if err != nil || !f.OK() {
		t.Fatalf("Check: %v, %q", err, f.Problems)
	}
}

func mount(t testing.TB, d block.Device, c ext4.Config) *ext4.FileSystem {
	t.Helper()
	s, err := ext4.Open(d, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newView(s fs.FileSystem) *fs.View { return fs.NewView(fs.NewTree(s)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
