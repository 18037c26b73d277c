package unikernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"loam/exec/library"
)

// linuxCommand is like machineCommand, but for a Linux program.
func linuxCommand(program string, args ...string) *exec.Cmd {
	cmd := machineCommand(NoNetwork, program, args...)
	cmd.Args[1] = program
	cmd.Env = append(cmd.Env, "LC_ALL=C") // other locales are not in the root folder
	return cmd
}

// rootWith creates a root folder with programs of this system, their loader and their libraries.
func rootWith(t *testing.T, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	put := func(path string) {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dev := filepath.Join(root, "dev") // a /dev as debootstrap creates it
	if err := os.Mkdir(dev, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/fd", filepath.Join(dev, "fd")); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		put(p)
		needs, err := library.Host{}.Find(p)
		if err != nil {
			t.Fatal(err)
		}
		put(needs.Interp)
		for _, l := range needs.Libraries {
			put(l.Path)
		}
	}
	return root
}
