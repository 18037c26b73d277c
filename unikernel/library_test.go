package unikernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program that is linked with a C library without cgo is rejected on both platforms. The error names the
// library, and no executable is left.
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
