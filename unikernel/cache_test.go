package unikernel

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A cache in which other users could place programs is rejected with a one-line error.
func TestCacheOfOthers(t *testing.T) {
	for what, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"writable": {func(dir string) error { os.Mkdir(dir, 0o755); return os.Chmod(dir, 0o777) }, "others may write"},
		"a link":   {func(dir string) error { return os.Symlink(t.TempDir(), dir) }, "is no folder"},
		"foreign":  {func(dir string) error { os.Mkdir(dir, 0o755); return os.Chown(dir, 65534, 65534) }, "belongs to user 65534"},
	} {
		if what == "foreign" && os.Getuid() != 0 {
			continue
		}
		home := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", home)
		if err := c.make(filepath.Join(home, "loam")); err != nil {
			t.Fatal(err)
		}
		if _, err := openCache(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A folder of the cache is filled again if a file in it is missing or too short, and only then.
func TestDamagedFolderIsFilledAgain(t *testing.T) {
	c := cache(t.TempDir())
	dir := c.path("std", "name")
	fills := 0
	fill := func() {
		t.Helper()
		err := c.fill(dir, func(dir string) error {
			fills++
			if err := writeFile(filepath.Join(dir, "a", "file"), []byte("text")); err != nil {
				return err
			}
			return os.Symlink("a/file", filepath.Join(dir, "link"))
		})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "link")); !strings.HasPrefix(string(text), "text") {
			t.Errorf("%q, %v", text, err)
		}
	}
	for what, damage := range map[string]func() error{
		"nothing":            func() error { return nil },
		"a missing file":     func() error { return os.Remove(filepath.Join(dir, "a", "file")) },
		"a missing folder":   func() error { return os.RemoveAll(filepath.Join(dir, "a")) },
		"a missing link":     func() error { return os.Remove(filepath.Join(dir, "link")) },
		"an empty file":      func() error { return os.Truncate(filepath.Join(dir, "a", "file"), 0) },
		"a missing list":     func() error { return os.Remove(filepath.Join(dir, listOfFiles)) },
		"a part of the list": func() error { return os.Truncate(filepath.Join(dir, listOfFiles), 9) },
		"no list":            func() error { return os.Truncate(filepath.Join(dir, listOfFiles), 0) },
		"no folder":          func() error { return os.RemoveAll(dir) },
		"a longer file":      func() error { return os.WriteFile(filepath.Join(dir, "a", "file"), []byte("text and more"), 0o644) },
	} {
		fill()
		before := fills
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		fill()
		if kept := what == "nothing" || what == "a longer file"; (fills > before) == kept {
			t.Errorf("%s: filled %d times", what, fills-before)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); len(left) != 2 || err != nil { // the folder and the lock
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}

// Processes that find the same folder damaged at the same time replace it once: afterwards it is never missing.
func TestDamagedFolderIsReplacedOnce(t *testing.T) {
	c := cache(t.TempDir())
	dir := c.path("std", "name")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				err := c.fill(dir, func(dir string) error { return writeFile(filepath.Join(dir, "file"), []byte("text")) })
				if text, readErr := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "text" {
					t.Errorf("%v, %q, %v", err, text, readErr)
				}
			}
		})
	}
	all.Wait()
}
