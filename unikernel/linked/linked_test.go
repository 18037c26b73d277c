package linked

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// link builds a program from one source file and returns the executable.
func link(t testing.TB, source string, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", "program"}, flags...), "main.go")...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "program"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

const empty = "package main\n\nfunc main() { println() }\n"

func check(content []byte) error {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	return Check(f)
}

// Check accepts programs of the unmodified toolchain, with any linker flags.
func TestOrdinary(t *testing.T) {
	for _, flags := range [][]string{nil, {"-trimpath"}, {"-ldflags=-s -w"}, {"-gcflags=all=-N -l"}} {
		content := link(t, empty, flags...)
		if err := check(content); err != nil {
			t.Errorf("%v: %v", flags, err)
		}
		f, err := elf.NewFile(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		const read, write = "runtime.read", "runtime.write1"
		if places, err := Places(f, []string{read, write}); err != nil || len(places) != 2 {
			t.Errorf("%v: %v, %v", flags, places, err)
		}
		if _, err := Places(f, []string{"main.main"}); !errors.Is(err, ErrProgram) {
			t.Errorf("%v: a function without system calls: %v", flags, err)
		}
	}
}

// Check rejects position-independent programs, and programs with an interpreter.
func TestRefused(t *testing.T) {
	if err := check(link(t, empty, "-buildmode=pie")); !errors.Is(err, ErrProgram) {
		t.Errorf("a program that lies anywhere: %v", err)
	}
	var libraries *Libraries
	if err := check(link(t, "package main\n\n//go:cgo_import_dynamic _ _ \"libc.so.6\"\n\nfunc main() {}\n")); !errors.As(err, &libraries) {
		t.Errorf("a library: %v", err)
	}
	var complaint *Complaint
	if err := check(link(t, "package main\n\n//go:cgo_import_dynamic _ _ \"\"\n\nfunc main() {}\n")); !errors.As(err, &complaint) {
		t.Errorf("an interpreter: %v", err)
	}
	content := link(t, empty)
	renamed := bytes.Replace(content, []byte("\x00.debug_line\x00"), []byte("\x00.init_array\x00"), 1)
	if err := check(renamed); !errors.As(err, &complaint) {
		t.Errorf("constructors: %v", err)
	}
}

// Check and Functions do not panic, whatever a file contains.
func FuzzCheck(f *testing.F) {
	content := link(f, empty, "-ldflags=-w")
	plain, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		f.Fatal(err)
	}
	// The areas that are changed, of at most 8 KiB each: the headers and the two tables.
	starts := []uint64{0, plain.Section(".gopclntab").Offset, plain.Section(".symtab").Offset}
	for area := range starts {
		f.Add(uint8(area), uint32(0), uint64(0))
		f.Add(uint8(area), uint32(32), ^uint64(0))
	}
	f.Fuzz(func(t *testing.T, area uint8, at uint32, word uint64) {
		changed := bytes.Clone(content)
		here := changed[starts[int(area)%len(starts)]:]
		binary.LittleEndian.PutUint64(here[int(at)%min(1<<13, len(here)-7):], word)
		file, err := elf.NewFile(bytes.NewReader(changed))
		if err != nil {
			return
		}
		Check(file)
		Places(file, []string{"runtime.read"})
	})
}
