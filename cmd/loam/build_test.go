package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"
)

// What "loam build" writes, QEMU boots without loam: it has its name for arguments,
// the serial port for output, and its status.
func TestBuildBoots(t *testing.T) {
	loam := command(t)
	main := program(t, `package main

import (
	"fmt"
	"os"
)

func main() {
	_, told := os.LookupEnv("LOAM_GUEST")
	fmt.Println("booted", os.Args, told)
	os.Exit(5)
}
`)
	image := filepath.Join(t.TempDir(), "program.elf")
	if out, err := loam("build", "-o", image, main).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "64M", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit", "-kernel", image).CombinedOutput()
	const want = "loam: eth0: the machine has no virtio network card; the program has its loopback\n" +
		"booted [program] false\n"
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2*5+1 || string(out) != want {
		t.Errorf("%v: %q", err, out)
	}
}

func TestBuildRefuses(t *testing.T) {
	_, errs, status := loam(t, "build", ".")
	if status != statusUsage || errs != "loam: there is no name for the file; write loam build -o program.elf .\n" {
		t.Errorf("status %d, %s", status, errs)
	}
}
