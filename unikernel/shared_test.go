package unikernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// hostFolders returns folders of the host for a program to change. For root they belong to another user.
func hostFolders(t *testing.T, n int) (all []string) {
	t.Helper()
	for range n {
		dir, err := os.MkdirTemp("", "loam-shared-") // not in t.TempDir(), because only the test's user may search it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, sharedOwner, sharedOwner); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, dir)
	}
	return all
}

const sharedOwner = 4321

// shares gives a command folders of the host.
func shares(cmd *exec.Cmd, folder string, folders ...string) *exec.Cmd {
	cmd.Env = append(cmd.Env, withShared+"="+strings.Join(folders, ":"), inFolder+"="+folder)
	return cmd
}

// ownedBy checks that all files below a folder have the folder's owner.
func ownedBy(t *testing.T, dir string) {
	t.Helper()
	want := os.Geteuid()
	if want == 0 {
		want = sharedOwner
	}
	err := filepath.Walk(dir, func(path string, st os.FileInfo, err error) error {
		if err == nil && int(st.Sys().(*syscall.Stat_t).Uid) != want {
			t.Errorf("%s belongs to user %d, want %d", path, st.Sys().(*syscall.Stat_t).Uid, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A Go program has the same results with files in a folder of the host as on Linux, on both platforms and in both cache
// modes.
func TestHostFolders(t *testing.T) {
	folders := hostFolders(t, 2)
	for name, command := range map[string]func(NetworkKind, string, ...string) *exec.Cmd{"process": guestCommand, "machine": machineCommand} {
		for i, folder := range []string{"/shared0", "/shared1"} {
			cmd := shares(command(NoNetwork, "files", "200", "shared", "mapping"), folder, folders...)
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Errorf("%s, %s: %v: %s", name, folder, err, out)
			}
			ownedBy(t, folders[i])
		}
	}
}

// Each folder of a microvm has a console of its own.
func TestHostFoldersOfMicroVM(t *testing.T) {
	folders := hostFolders(t, 2)
	for _, folder := range []string{"/shared0", "/shared1"} {
		cmd := shares(machineCommand(NoNetwork, "files", "20", "shared", "mapping"), folder, folders...)
		cmd.Env = append(cmd.Env, onModel+"=microvm")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("%s: %v: %s", folder, err, out)
		}
	}
}

// Git in ring 3 works on a repository of the host, and the host's git accepts the result.
func TestHostRepository(t *testing.T) {
	const git = "/usr/bin/git"
	dir := hostFolders(t, 1)[0]
	run := func(args ...string) string {
		t.Helper()
		cmd := shares(linuxCommand(git, args...), "/shared0", dir)
		cmd.Env = append(cmd.Env, onMachine+"=512", "HOME=/tmp")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	host := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(git, slices.Concat([]string{"-c", "safe.directory=*"}, args)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q on the host: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("init", "-q", "-b", "main", ".")
	for name, text := range map[string]string{"a": "one\n", "b": "two\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("add", "a", "b")
	run("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first")
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"status", "--short"}, {"log", "--format=%s"}, {"diff", "--stat"}, {"ls-files", "-s"}} {
		if got, want := run(args...), host(args...); got != want || want == "" {
			t.Errorf("git %q: %q, on the host %q", args, got, want)
		}
	}
	host("fsck", "--strict")
}

// A folder that cannot be shared is refused, with the reason and advice.
func TestHostFolderRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		"/none/there": "-v /none/there: no such file or directory: name a folder that is there and can be read",
		file:          "only folders can be given with :rw: give its folder, with :rw",
	} {
		out, err := shares(guestCommand(NoNetwork, "early"), "", folder).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s, want %q", folder, err, out, want)
		}
	}
}
