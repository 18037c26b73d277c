//go:build !race

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// QEMU boots an image written by "loam build" without loam. The image has its own name as its argument, writes to
// the serial port, and returns its exit status.
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
	if b, err := os.ReadFile("/srv/build.go"); err == nil {
		fmt.Println("has", len(b))
	}
	os.Exit(5)
}
`)
	image := filepath.Join(t.TempDir(), "program.elf")
	if out, err := loam("build", "-o", image, main).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	const serial = "loam: eth0: the machine has no virtio network card; the program has its loopback\n" +
		"booted [program] false\n"
	bootsTo(t, image, serial)

	if out, err := loam("build", "-o", image, "-v", ".:/srv", main).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	st, err := os.Stat("build.go")
	if err != nil {
		t.Fatal(err)
	}
	bootsTo(t, image, fmt.Sprintf("%shas %d\n", serial, st.Size()))
}

// bootsTo boots an image on a plain QEMU machine.
func bootsTo(t *testing.T, image, want string) {
	t.Helper()
	out, err := exec.Command("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "64M", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit", "-kernel", image).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2*5+1 || string(out) != want {
		t.Errorf("%v: %q", err, out)
	}
}
