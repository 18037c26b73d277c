package format_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loam/block/file"
	"loam/block/memory"
	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/ext4/format"
)

// tool runs a program of e2fsprogs.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = "/usr/sbin/" + name
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip(name + " of e2fsprogs is not installed")
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// For all sizes, e2fsck finds no problem in a new file system, before and after it is used, and
// resize2fs can enlarge it.
func TestFormat(t *testing.T) {
	const m = 1 << 20
	for _, c := range []struct {
		size   int64
		config format.Config
	}{
		{format.MinSize, format.Config{}},
		{5*m + 512, format.Config{Label: "sixteen bytes..."}},
		{63 * m, format.Config{}},
		{64 * m, format.Config{UID: 1000, GID: 1000}},
		{128*m + 8192, format.Config{}}, // one group, and a second group of only two blocks
		{600 * m, format.Config{BlockSize: 1024}},
		{300 * m, format.Config{BlockSize: 2048, InodeRatio: 4096}},
		{256 * m, format.Config{BlockSize: 64 << 10}},
		{256 * m, format.Config{BlockSize: 16 << 10, Journal: 8 << 20}},
		{40 << 30, format.Config{Reserved: 5}},
		{1 << 40, format.Config{Inodes: 1 << 20, InodeRatio: 1 << 20}},
	} {
		t.Run(fmt.Sprintf("%d bytes, %+v", c.size, c.config), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Truncate(c.size); err != nil {
				t.Fatal(err)
			}
			d, err := file.New(f, file.Config{Buffered: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := format.Write(d, c.config); err != nil {
				t.Fatal(err)
			}
			tool(t, "e2fsck", "-fn", path)
			s, err := ext4.Open(d, ext4.Config{})
			if err != nil {
				t.Fatal(err)
			}
			v := fs.NewView(fs.NewTree(s))
			for i := range 100 {
				h, err := v.Open(v.Root, fmt.Sprintf("/file%d", i), fs.WriteOnly|fs.Create, 0o644)
				if err == nil {
					_, err = h.Write(make([]byte, 100*i))
					h.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if out := tool(t, "e2fsck", "-fn", path); !strings.Contains(out, "111/") {
				t.Errorf("e2fsck counts other files: %s", out)
			}
			if c.size > 1<<30 {
				return
			}
			if err := os.Truncate(path, 3*c.size/4096*4096); err != nil {
				t.Fatal(err)
			}
			tool(t, "e2fsck", "-fp", path) // resize2fs requires that the last check is later than the last mount
			tool(t, "resize2fs", path)
			tool(t, "e2fsck", "-fn", path)
		})
	}
}

// Sizes and options for which no file system is possible are rejected.
func TestRefused(t *testing.T) {
	for want, c := range map[string]struct {
		size   int64
		config format.Config
	}{
		"too few for a file system": {1 << 20, format.Config{}},
		"more than 16 bytes":        {8 << 20, format.Config{Label: "seventeen bytes.."}},
		"power of two":              {8 << 20, format.Config{BlockSize: 3000}},
		"too few for a journal":     {8 << 20, format.Config{BlockSize: 16 << 10}},
		"too many for":              {8 << 20, format.Config{Inodes: 1 << 20}},
	} {
		err := format.Write(memory.New(c.size, memory.Config{}), c.config)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes, %+v: %v, want %q", c.size, c.config, err, want)
		}
	}
}
