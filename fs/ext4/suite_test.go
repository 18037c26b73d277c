package ext4_test

import (
	"testing"

	"loam/fs"
	"loam/fs/ext4"
	"loam/fs/fstest"
	"loam/internal/race"
)

// TestFileSystem runs the common test suite of file systems, and checks every image with e2fsck
// afterwards.
func TestFileSystem(t *testing.T) {
	path := makeImage(t, "256M", "-N", "110000")
	names := 100_000
	if race.Enabled { // one goroutine makes all changes, so the race detector would find nothing
		names = 10_000
	}
	checked := func(t *testing.T) fs.FileSystem {
		d := loadImage(t, path)
		s := mount(t, d, ext4.Config{})
		root := s.Root()
		if err := root.Rmdir("lost+found"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := root.Make("lost+found", fs.Dir|0o700, fs.Owner{}, fs.Device{}); err != nil {
				t.Log(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			check(t, d)
		})
		return s
	}
	fstest.TestNames(t, names, checked)
	t.Run("trusted attributes", func(t *testing.T) { fstest.TestTrusted(t, checked) })
	t.Run("files opened as a path", func(t *testing.T) { fstest.TestPathOnly(t, checked) })
	t.Run("access control lists", func(t *testing.T) { fstest.TestACL(t, checked) })
}
