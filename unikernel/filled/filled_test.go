package filled

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var held sync.Mutex

// lock is a Locker for the goroutines of a test.
func lock(string) (func(), error) {
	held.Lock()
	return held.Unlock, nil
}

// write writes the file called file in a folder, which it makes.
func write(dir, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644)
}

// A folder of the cache is filled again if a file in it is missing or too short, and only then.
func TestDamagedFolderIsFilledAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "std", "name")
	fills := 0
	fill := func() {
		t.Helper()
		err := Fill(dir, lock, func(dir string) error {
			fills++
			if err := write(filepath.Join(dir, "a"), "text"); err != nil {
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
	if left, err := os.ReadDir(filepath.Dir(dir)); len(left) != 1 || err != nil {
		t.Errorf("%d folders are left, %v", len(left), err)
	}
}

// Processes that find the same folder damaged at the same time replace it once: afterwards it is never missing.
func TestDamagedFolderIsReplacedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "std", "name")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				err := Fill(dir, lock, func(dir string) error { return write(dir, "text") })
				if text, readErr := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "text" {
					t.Errorf("%v, %q, %v", err, text, readErr)
				}
			}
		})
	}
	all.Wait()
}
