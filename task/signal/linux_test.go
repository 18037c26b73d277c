//go:build linux

package signal

import (
	"os"
	ossignal "os/signal"
	"syscall"
	"testing"

	"loam/abi/linux"
)

// TestDefaultsAsLinux: each signal does to a process what it does on Linux.
func TestDefaultsAsLinux(t *testing.T) {
	for n := Number(1); n <= Last; n++ {
		if host := syscall.Signal(n); ossignal.Ignored(host) { // ignored as in a background job: children would inherit that
			ossignal.Notify(make(chan os.Signal, 1), host) // children do not inherit a handler, so they get the default action
			defer ossignal.Ignore(host)
		}
		if got, want := effectHere(n), effectOnLinux(t, n); got != want {
			t.Errorf("signal %d: effect %d, on Linux %d", n, got, want)
		}
	}
}

func effectHere(n Number) Effect {
	p, th := NewProcess()
	p.Send(user(n), true)
	return th.Next().Effect
}

func effectOnLinux(t *testing.T, n Number) Effect {
	t.Helper()
	// The child leads a process group of its own, and its parent is outside of the group. In an orphaned
	// group, the signals by which a terminal stops processes would have no effect.
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}}
	pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "10"}, attr)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.Signal(n))
	var status syscall.WaitStatus
	if harmless.Has(n) { // if Linux agrees, the process lives until it is killed
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if _, err := syscall.Wait4(pid, &status, linux.WUNTRACED, nil); err != nil {
		t.Fatal(err)
	}
	switch {
	case status.Stopped():
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return Suspend
	case status.Signal() == syscall.SIGKILL && n != Kill:
		return None
	case cores.Has(n): // whether the process dumps a core depends on limits of the host
		return Core
	}
	return Terminate
}
