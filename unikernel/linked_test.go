package unikernel

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A program that is named through a symbolic link is built for Loam. The link may name its folder or its files, and the
// current folder may be that folder or another one.
func TestLinkedFolder(t *testing.T) {
	at := t.TempDir()
	real, linked := filepath.Join(at, "real"), filepath.Join(at, "linked")
	for name, text := range map[string]string{
		"go.mod":  "module example.org/linked\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { println(\"linked\") }\n",
	} {
		if err := writeFile(filepath.Join(real, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, linked); err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{
		{Args: []string{linked}},
		{Args: []string{"."}, Dir: linked},
		{Args: []string{filepath.Join(linked, "main.go")}},
		{Args: []string{"main.go"}, Dir: linked},
		{Args: []string{"example.org/linked"}, Dir: linked},
	} {
		p, err := NewPlan(t.Context(), target)
		if err == nil {
			err = p.Build(t.Context())
		}
		if err != nil {
			t.Errorf("%v in %q: %v", target.Args, target.Dir, err)
			continue
		}
		program, err := os.ReadFile(p.Program)
		if err != nil || !bytes.Contains(program, []byte(guestModule+"/posix")) {
			t.Errorf("%v in %q: without Loam: %v", target.Args, target.Dir, err)
		}
	}
}
