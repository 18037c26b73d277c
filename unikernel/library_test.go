package unikernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that is linked with a library of C, for which it needs no cgo, is refused for both
// platforms, the library is named, and no program is left behind.
func TestLibraryIsNamed(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/m\n\ngo 1.24\n",
		"main.go": "package main\n\n//go:cgo_import_dynamic _ _ \"libc.so.6\"\n\nfunc main() {}\n",
	} {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, platform := range []Platform{Process, Machine} {
		p, err := NewPlan(t.Context(), Target{Args: []string{"."}, Dir: dir, Platform: platform})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "libc.so.6") {
			t.Errorf("%v: %v", platform, err)
		}
		if _, err := os.Stat(p.Program); !os.IsNotExist(err) {
			t.Errorf("%v: it left a program behind: %v", platform, err)
		}
	}
}

// A program of Go alone is linked with none, one that can lie anywhere (-buildmode=pie) included.
func TestNoLibrary(t *testing.T) {
	for _, flags := range [][]string{nil, {"-buildmode=pie"}} {
		program := filepath.Join(t.TempDir(), "program")
		source := filepath.Join(t.TempDir(), "main.go")
		if err := writeFile(source, []byte("package main\n\nfunc main() {}\n")); err != nil {
			t.Fatal(err)
		}
		args := append(append([]string{"build", "-o", program}, flags...), source)
		build := exec.CommandContext(t.Context(), "go", args...)
		build.Env = append(os.Environ(), guestEnv...)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := withoutLibraries(program, "it"); err != nil {
			t.Errorf("%v: %v", flags, err)
		}
	}
}
