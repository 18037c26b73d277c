package unikernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// A program that makes system calls by itself, in assembly, reaches nothing of the
// host: the program tests that from within, and here are what it must not reach.
func TestSealed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o666); err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[NetworkKind]string{NoNetwork: "none", UserNetwork: "user"} {
		t.Run(name, func(t *testing.T) {
			cmd := guestCommand(kind, "sealed", secret)
			out, err := cmd.CombinedOutput()
			if status := cmd.ProcessState.ExitCode(); status != 7 || string(out) != "ok\n" { // 7 by assembly
				t.Errorf("status %d, %v: %s", status, err, out)
			}
		})
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "of the host" {
		t.Errorf("a file of the host, then: %q, %v", b, err)
	}
	if _, err := os.Stat("/tmp/of-the-program"); err == nil {
		t.Error("a file of the program is a file of the host")
	}
}

// A user without privilege has a sealed program, too, and files that root owns.
func TestSealedUnprivileged(t *testing.T) {
	p, err := NewPlan(t.Context(), Target{Args: []string{"./testdata/guest/sealed"}})
	if err == nil {
		err = p.Build(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(p.Program)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "loam-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Chdir(dir) // the user may have no way to it from a / that is root's alone
	if err := errors.Join(os.WriteFile("sealed", program, 0o755), os.Chmod("sealed", 0o755), os.Chmod(".", 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "./sealed")
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	if status := cmd.ProcessState.ExitCode(); status != 7 || string(out) != "ok\n" {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
}

// All threads of a program have the filter, and descriptors that the loam command was
// given by mistake are closed.
func TestSealOfThreads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const far = 1500 // further than what a process has as a rule
	if err := syscall.Dup2(int(w.Fd()), far); err != nil {
		t.Fatal(err)
	}
	cmd, lines := running(t, Process, w)
	w.Close()
	syscall.Close(far)
	guest := childOf(t, cmd.Process.Pid)
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", guest))
	if one := regexp.MustCompile(`(?m)^Max core file size +1 +1 `); err != nil || !one.Match(limits) {
		t.Errorf("a sealed process may dump its core: %v\n%s", err, limits)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", guest))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads of %d: %v, %v", guest, threads, err)
	}
	for _, name := range threads {
		b, err := os.ReadFile(name)
		if err == nil && (!bytes.Contains(b, []byte("\nSeccomp:\t2\n")) || !bytes.Contains(b, []byte("\nNoNewPrivs:\t1\n"))) {
			t.Errorf("%s is not sealed:\n%s", name, b)
		}
	}
	own, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", r.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", guest))
	if err != nil || len(files) == 0 {
		t.Fatalf("descriptors of %d: %v, %v", guest, files, err)
	}
	for _, name := range files {
		if to, err := os.Readlink(name); err == nil && to == own {
			t.Errorf("%s is a pipe of the test's", name)
		}
	}
	cmd.Process.Kill()
	for lines.Scan() {
	}
	cmd.Wait()
}

// childOf is the only child of a process.
func childOf(t *testing.T, pid int) (child int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Fatalf("children of %d: %v, %v", pid, lists, err)
	}
	for _, name := range lists {
		b, err := os.ReadFile(name)
		if err == nil && len(b) > 0 {
			fmt.Sscan(string(b), &child)
		}
	}
	if child == 0 {
		t.Fatal("the command has no child")
	}
	return child
}
