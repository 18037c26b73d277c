package fs_test

import (
	"testing"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/memfs"
)

// A file can be mounted over a file. Its path then leads to the mounted file, which can be read, but
// not written, removed or renamed.
func TestMountFile(t *testing.T) {
	v := fs.NewView(fs.NewTree(memfs.New(memfs.Config{})))
	other := memfs.New(memfs.Config{})
	file, err := other.Root().Make("x", fs.Regular|0o644, fs.Owner{}, fs.Device{})
	if err != nil {
		t.Fatal(err)
	}
	if err := memfs.SetContent(file, []byte("mounted")); err != nil {
		t.Fatal(err)
	}
	if err := v.Mknod(v.Root, "/f", fs.Regular|0o644, fs.Device{}); err != nil {
		t.Fatal(err)
	}
	at, err := v.Lookup(v.Root, "/f", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Tree.MountFile(other, other.Root(), at, true); err != linux.EISDIR {
		t.Errorf("a directory over a file: %v", err)
	}
	if err := v.Tree.MountFile(other, file, at, true); err != nil {
		t.Fatal(err)
	}
	f, err := v.Open(v.Root, "/f", fs.ReadOnly, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 10)
	if n, err := f.Read(b); string(b[:n]) != "mounted" || err != nil {
		t.Errorf("read %q, %v", b[:n], err)
	}
	_, err = v.Open(v.Root, "/f", fs.WriteOnly, 0)
	for what, got := range map[string]struct{ err, want error }{
		"write":  {err, linux.EROFS},
		"remove": {v.Unlink(v.Root, "/f"), linux.EBUSY},
		"rename": {v.Rename(v.Root, "/f", v.Root, "/g", 0), linux.EBUSY},
		"below":  {v.Mkdir(v.Root, "/f/x", 0o755), linux.ENOTDIR},
	} {
		if got.err != got.want {
			t.Errorf("%s: %v, want %v", what, got.err, got.want)
		}
	}
}
