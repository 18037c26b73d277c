package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Functions with SYSCALL instructions are listed in one line. This test binary contains Go's own for Linux.
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
