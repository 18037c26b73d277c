package image

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loam/boot"
	"loam/unikernel/overlay"
)

// built returns the program of testdata/guest as the linker writes it.
func built(t testing.TB) []byte {
	t.Helper()
	return buildOf(t, guest)
}

// buildOf returns a copy of a program of testdata as the linker writes it.
func buildOf(t testing.TB, build func() ([]byte, error)) []byte {
	t.Helper()
	data, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), data...)
}

// The programs of testdata. Each is built when it is first needed, and only once.
var (
	guest = sync.OnceValues(func() ([]byte, error) { return build("./testdata/guest") })
	ring3 = sync.OnceValues(func() ([]byte, error) { return build("./testdata/ring3") })
)

// build builds a package together with the kernel.
func build(pkg string) ([]byte, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	files, err := overlay.Generate(strings.TrimSpace(string(goroot)), runtime.Version(), overlay.Ring0)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, err := filepath.Abs(pkg)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	add := func(name string, src []byte) error {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		replace[name] = path
		return os.WriteFile(path, src, 0o644)
	}
	err = add(filepath.Join(source, "kernel.go"), []byte("package main\n\nimport _ \"loam/kernel\"\n"))
	for name, src := range files {
		err = errors.Join(err, add(filepath.Join(strings.TrimSpace(string(goroot)), "src", name), src))
	}
	list, jerr := json.Marshal(map[string]any{"Replace": replace})
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := errors.Join(err, jerr, os.WriteFile(overlayFile, list, 0o644)); err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "guest")
	cmd := exec.Command("go", "build", "-overlay", overlayFile, "-ldflags", LinkFlags(), "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	return os.ReadFile(program)
}

// A file that is not a program for a virtual machine is rejected and not changed.
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

func prepared(t testing.TB, b []byte) []byte {
	if err := Prepare(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// Variables that the kernel does not need at boot are excluded from the loaded segment, unless the symbol table is
// missing.
func TestZeroed(t *testing.T) {
	const least = 60 << 20 // bytes that must not be in the loaded segment: the program has a larger array of zeros
	b := prepared(t, built(t))
	if z := boot.Zeroed(b[:pageSize]); z.Size() < least {
		t.Errorf("zeroed: %#x", z)
	}
	b = built(t)
	copy(b[40:48], make([]byte, 8)) // no section headers: offset 0
	copy(b[58:64], make([]byte, 6)) // number of section headers: 0
	if z := boot.Zeroed(prepared(t, b)[:pageSize]); z.Size() != 0 {
		t.Errorf("zeroed without a symbol table: %#x", z)
	}
}
