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

	"loam/boot"
)

// stopsByNMI boots a case of testdata/ring3 that prints "ready", sends the machine a non-maskable interrupt by QEMU's monitor, and
// checks that the kernel reports it and its registers.
func stopsByNMI(t *testing.T, image, name, processor string) {
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
	if _, err := io.WriteString(monitor, "nmi\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // the exit status of a crash is not 0
	const want = "the machine wants it to stop (a non-maskable interrupt)\nvector 0x2\ncode 0x0\n"
	if !strings.Contains(string(rest), want) || strings.Contains(string(rest), "failed again") {
		t.Errorf("%s on %s: %s", name, processor, rest)
	}
}
