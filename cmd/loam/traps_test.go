package main

import (
	"strings"
	"testing"
)

// noteTraps lists the functions with SYSCALL instructions in one line, and prints nothing if there are none.
func TestNoteTraps(t *testing.T) {
	var note strings.Builder
	noteTraps(&note, nil)
	if note.Len() != 0 {
		t.Errorf("without functions: %q", note.String())
	}
	noteTraps(&note, []string{"main.call", "main.send"})
	const want = "loam: note: there are SYSCALL instructions in main.call, main.send; each is served by a trap, which takes longer than a call\n"
	if got := note.String(); got != want {
		t.Errorf("%q", got)
	}
}
