package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// disk runs "loam disk" and returns its exit status and output.
func disk(args ...string) (status int, out, errors string) {
	root := newRoot()
	var o, e bytes.Buffer
	root.SetOut(&o)
	root.SetErr(&e)
	status = execute(root.Context(), root, append([]string{"disk"}, args...))
	return status, o.String(), e.String()
}

// The commands print their results and return the documented exit statuses.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	image, file := filepath.Join(dir, "data.img"), filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.img")
	for _, c := range []struct {
		args   string
		status int
		out    string // text that the output must contain
		errors string
	}{
		{"create --size 8M --label name data.img", 0, "", ""},
		{"check data.img", 0, "data.img: clean: 0 files, 2 folders, ", ""},
		{"cp file data.img:/copy", 0, "", ""},
		{"ls data.img", 0, "copy\nlost+found\n", ""},
		{"ls -l data.img /copy", 0, "-rw-r-----   1 ", ""},
		{"cat data.img /copy", 0, "text\n", ""},
		{"cp data.img:/copy back", 0, "", ""},
		{"stat data.img", 0, "label     name\n", ""},
		{"stat data.img /copy", 0, "size      5\n", ""},
		{"grow data.img 20M", 0, "", ""},
		{"check data.img", 0, "data.img: clean: 1 files, 2 folders, ", ""},
		{"cat data.img /copy", 0, "text\n", ""},
		{"grow data.img 8M", 2, "", "has 20971520 bytes already; use resize2fs to make it smaller"},
		{"grow data.img much", 2, "", "the size much is no size"},
		{"grow data.img", 2, "", "write loam disk grow IMAGE SIZE"},
		{"grow none.img 8M", 2, "", "there is no "},
		{"grow file 8M", 2, "", "has no ext4 file system"},
		{"create data.img", 2, "", "there is no size"},
		{"create --size 8M data.img", 2, "", "exists already"},
		{"create --size 8 --block-size 5 other.img", 2, "", "power of two"},
		{"create --size much other.img", 2, "", "--size much is no size"},
		{"check", 2, "", "write loam disk check IMAGE"},
		{"check none.img", 2, "", "there is no "},
		{"check file", 2, "", "has no ext4 file system"},
		{"cat data.img /none", 2, "", "has no /none; look with loam disk ls "},
		{"cp file back", 2, "", "is in an image; write one of them as IMAGE:/PATH"},
		{"cp data.img:/copy data.img:/x", 2, "", "are in an image; copy to the host first"},
		{"chekc data.img", 2, "", "did you mean loam disk check?"},
		{"check damaged.img", 1, "damaged: repair it with e2fsck -f", ""},
	} {
		if strings.HasSuffix(c.args, "check damaged.img") {
			data, err := os.ReadFile(image)
			if err != nil {
				t.Fatal(err)
			}
			// The test damages the name "copy" in the root folder.
			at := bytes.Index(data, []byte("copy"))
			data[at] = 'k'
			if err := os.WriteFile(damaged, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := strings.Fields(c.args)
		for i, a := range args {
			if strings.Contains(a, ".img") || a == "file" || a == "back" {
				args[i] = filepath.Join(dir, a)
			}
		}
		status, out, errors := disk(args...)
		if status != c.status || !strings.Contains(out, c.out) || !strings.Contains(errors, c.errors) || strings.Count(errors, "\n") > 1 {
			t.Errorf("%s: status %d, %s%s; want %d, %q, %q", c.args, status, out, errors, c.status, c.out, c.errors)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(b) != "text\n" {
		t.Errorf("copied out: %q, %v", b, err)
	}
	if left, _ := filepath.Glob(dir + "/other*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
