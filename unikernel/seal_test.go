package unikernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// A program with system calls in its own assembly code cannot reach the host. The program tests that from within. This
// test provides a file and a process that it must not reach.
func TestSealed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o666); err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[NetworkKind]string{NoNetwork: "none", UserNetwork: "user"} {
		t.Run(name, func(t *testing.T) {
			cmd := guestCommand(kind, "sealed", secret)
			out, err := cmd.CombinedOutput()
			// the program's last action is an exit with status 7 by its own assembly code
			if status := cmd.ProcessState.ExitCode(); status != 7 || string(out) != "ok\n" {
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

// All threads of a program have the filter of system calls, and descriptors that the loam command
// inherited by mistake are closed.
func TestSealOfThreads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const far = 1500 // a descriptor number above those that a process usually uses
	if err := syscall.Dup2(int(w.Fd()), far); err != nil {
		t.Fatal(err)
	}
	cmd, lines := running(t, Process, w)
	w.Close()
	syscall.Close(far)
	guest := childOf(t, childOf(t, cmd.Process.Pid)) // the grandchild: the child is package sandbox's stage
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
		for _, want := range []string{"Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"} {
			if err == nil && !bytes.Contains(b, []byte("\n"+want+"\n")) {
				t.Errorf("%s is not sealed, %q is not there:\n%s", name, want, b)
			}
		}
		if os.Getuid() == 0 && err == nil && !bytes.Contains(b, []byte("\nUid:\t65534\t65534\t65534\t65534\n")) {
			t.Errorf("%s is root's:\n%s", name, b)
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

// childOf returns the only child of a process.
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
