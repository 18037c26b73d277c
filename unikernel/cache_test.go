package unikernel

import (
	"os"
	"path/filepath"
	"strings"
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
