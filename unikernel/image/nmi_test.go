//go:build !race

package image

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"loam/boot"
)

// pauseNMI is the time between the output of a program and the interrupt, in which the program enters ring 3 or the CPU becomes idle.
const pauseNMI = 200 * time.Millisecond

// A non-maskable interrupt ends a machine with a report: in ring 3, and while the CPU is idle in the kernel. It may arrive before the
// thread has entered ring 3; then the machine is started again.
func TestRing3Stopped(t *testing.T) {
	image := bootableOf(t, ring3)
	const tries = 10
	for _, processor := range []string{"max", vulnerable} {
		stopsByNMI(t, image, "idle", processor)
		inside := false
		for range tries {
			if inside = stopsByNMI(t, image, "endless", processor); inside {
				break
			}
		}
		if !inside {
			t.Errorf("%s: no interrupt arrived in ring 3", processor)
		}
	}
}

// stopsByNMI boots a case of testdata/ring3 that prints "ready", sends the machine a non-maskable interrupt by QEMU's monitor, and
// checks that the kernel reports it and its registers. It reports whether the CPU was in ring 3.
func stopsByNMI(t *testing.T, image, name, processor string) (inside bool) {
	t.Helper()
	words, err := boot.Config{Args: []string{"ring3", name}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, words, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, findQEMU(t), "-accel", "tcg", "-cpu", processor, "-machine", "q35", "-m", "256M", "-display", "none",
		"-nodefaults", "-chardev", "file,id=out,path=/dev/stderr", "-serial", "chardev:out", "-monitor", "stdio", "-no-reboot",
		"-device", "isa-debug-exit", "-kernel", image, "-initrd", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends
	defer runtime.UnlockOSThread()
	monitor, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line := ""; line != "ready\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%s on %s: %v", name, processor, err)
		}
	}
	time.Sleep(pauseNMI)
	if _, err := io.WriteString(monitor, "nmi\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // the exit status of a crash is not 0
	const want = "the machine wants it to stop (a non-maskable interrupt)\nvector 0x0000000000000002\ncode 0x0000000000000000\n"
	if !strings.Contains(string(rest), want) || strings.Contains(string(rest), "failed again") {
		t.Errorf("%s on %s: %s", name, processor, rest)
	}
	return strings.Contains(string(rest), "\nip 0x0000000000400")
}
