package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// noteTraps lists the functions with SYSCALL instructions in one line. The test uses its own binary, which contains
// the SYSCALL instructions of Go's standard library for Linux.
func TestNoteTraps(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var note strings.Builder
	if err := noteTraps(&note, self); err != nil {
		t.Fatal(err)
	}
	got := note.String()
	if !strings.HasPrefix(got, "loam: note: there are SYSCALL instructions in ") || !strings.Contains(got, "runtime.futex, ") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	if err := noteTraps(&note, filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("no file has no instructions")
	}
}
