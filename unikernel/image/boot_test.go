package image

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"loam/unikernel/overlay"
)

// built is a program as the linker leaves it.
func built(t *testing.T) []byte {
	t.Helper()
	files, err := overlay.Machine()
	if err != nil {
		t.Fatal(err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, src := range files {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, src, 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(strings.TrimSpace(string(goroot)), "src", name)] = path
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "hello")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
		"-ldflags", LinkFlags(), "-o", program, "./testdata/hello")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// bootTime bounds a boot, which takes a fraction of a second.
const bootTime = time.Minute

// runMachine runs an image and returns what it says and how QEMU ends.
func runMachine(t *testing.T, image string, options ...string) (output string, status int) {
	t.Helper()
	qemu, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("there is no QEMU: apt-get install qemu-system-x86")
	}
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, append(options, "-accel", "tcg", "-cpu", "max", "-display", "none",
		"-nodefaults", "-serial", "stdio", "-no-reboot", "-device", "isa-debug-exit", "-kernel", image)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A prepared program boots, finds its memory, and ends the machine with a status:
// QEMU's is one more than twice that.
func TestBoot(t *testing.T) {
	data := built(t)
	if err := Prepare(data); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "hello.elf")
	if err := os.WriteFile(image, data, 0o644); err != nil {
		t.Fatal(err)
	}
	const booted = `^loam: in ring 0\nloam: (\d+) MiB of memory are free\n$`
	for _, c := range []struct {
		options []string
		free    string // in MiB; the program has some
	}{
		{[]string{"-machine", "q35", "-m", "32M"}, "2[0-9]"},
		{[]string{"-machine", "pc", "-m", "256M"}, "2[45][0-9]"},
		{[]string{"-machine", "microvm", "-m", "128M"}, "1[12][0-9]"},
		{[]string{"-machine", "q35", "-m", "1G"}, "10[0-9][0-9]"},
	} {
		out, status := runMachine(t, image, c.options...)
		want := regexp.MustCompile(strings.Replace(booted, `\d+`, c.free, 1))
		if status != 1 || !want.MatchString(strings.ReplaceAll(out, "\r", "")) {
			t.Errorf("%v: status %d, %q", c.options, status, out)
		}
	}
}

// What is not such a program is refused, and not changed.
func TestPrepareRefuses(t *testing.T) {
	data := built(t)
	for name, spoil := range map[string]func(b []byte) []byte{
		"cut off":         func(b []byte) []byte { return b[:100] },
		"no ELF":          func(b []byte) []byte { b[1] = 'e'; return b },
		"for 32 bits":     func(b []byte) []byte { b[4] = 1; return b },
		"a library":       func(b []byte) []byte { b[16] = 3; return b },
		"linked low":      func(b []byte) []byte { copy(b[24:32], make([]byte, 8)); return b },
		"wild headers":    func(b []byte) []byte { b[38] = 1; return b },
		"too many":        func(b []byte) []byte { b[57] = 255; return b },
		"without a note":  func(b []byte) []byte { b[64+56] = 9; return b },
		"prepared before": func(b []byte) []byte { return prepared(t, b) },
	} {
		b := spoil(append([]byte(nil), data...))
		before := string(b)
		if err := Prepare(b); !errors.Is(err, ErrNotProgram) {
			t.Errorf("%s: error %v", name, err)
		}
		if string(b) != before {
			t.Errorf("%s: was changed", name)
		}
	}
}

func prepared(t *testing.T, b []byte) []byte {
	if err := Prepare(b); err != nil {
		t.Fatal(err)
	}
	return b
}
