package unikernel

import (
	"os"
	"os/exec"
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

// A program whose cache is below a folder with a file system of its own in the guest, such as /dev/shm, starts and finds its
// own file.
func TestCacheInMemory(t *testing.T) {
	home, err := os.MkdirTemp("/dev/shm", "loam-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	for name, cmd := range map[string]*exec.Cmd{"process": guestCommand(NoNetwork, "child", "exit", "5"), "machine": machineCommand(NoNetwork, "child", "exit", "5")} {
		cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+home)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 5 {
			t.Errorf("%s: %v: %s", name, cmd.ProcessState, out)
		}
	}
}
