//go:build !race

package unikernel

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program whose goroutines all wait for one another ends with Go's deadlock error, as on Linux. It does so with a
// network, with an open socket, and after the program has used its standard streams: Loam's own goroutines and timers
// do not count. A program that an outside event can wake continues.
func TestAsleep(t *testing.T) {
	linux := filepath.Join(t.TempDir(), "asleep")
	build := exec.Command("go", "build", "-o", linux, "./asleep")
	build.Dir = "testdata/guest"
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ends := []string{"nothing", "channel", "mutexes", "group", "goexit", "printed", "read", "slept", "stopped", "listened", "talked", "locked"}
	for _, p := range []struct {
		name    string
		command func(args ...string) *exec.Cmd
		ends    []string
	}{
		{"linux", func(args ...string) *exec.Cmd { return exec.Command(linux, args...) }, ends},
		{"process", func(args ...string) *exec.Cmd { return guestCommand(UserNetwork, "asleep", args...) }, ends},
		{"vm", func(args ...string) *exec.Cmd { return machineCommand(UserNetwork, "asleep", args...) }, []string{"goexit", "printed", "read", "talked"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			for _, end := range p.ends {
				checkAsleep(t, p.command(end), end)
			}
			checkAwake(t, p.command())
		})
	}
}

// checkAsleep runs a command, which must end with the deadlock error.
func checkAsleep(t *testing.T, cmd *exec.Cmd, end string) {
	t.Helper()
	out, _ := cmd.CombinedOutput()
	text := strings.TrimPrefix(string(out), "printed\n")
	want := "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 ["
	if end == "goexit" {
		want = "fatal error: no goroutines (main called runtime.Goexit) - deadlock!\n"
	}
	if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.HasPrefix(text, want) || strings.Contains(text, "\nloam/") {
		t.Errorf("%s: status %d: %s", end, status, out)
	}
}

// checkAwake runs a command that prints ok as soon as it reads input. The input is sent after a second, so that the
// program waits for it first.
func checkAwake(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	r, w := io.Pipe()
	cmd.Stdin = r
	timer := time.AfterFunc(time.Second, func() { w.Write([]byte{'\n'}); w.Close() })
	defer timer.Stop()
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v: %s", err, out)
	}
}
