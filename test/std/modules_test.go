package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadSuites(t *testing.T) {
	list, err := readSuites("# a comment\nexample.com/m@v1.2.3 -short -run=A|B . ./sub/...\n\nexample.com/n@v0.1.0 .\n")
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	s := list[0]
	if s.String() != "example.com/m@v1.2.3" || !slices.Equal(s.flags, []string{"-short", "-run=A|B"}) || !slices.Equal(s.patterns, []string{".", "./sub/..."}) {
		t.Errorf("%+v", s)
	}
	for _, text := range []string{"example.com/m .", "example.com/m@v1.2.3 -short"} {
		if _, err := readSuites(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if got, err := chosen(list, []string{"example.com/n"}); err != nil || len(got) != 1 || got[0].version != "v0.1.0" {
		t.Errorf("one of them: %v, %v", got, err)
	}
	if got, err := chosen(list, nil); err != nil || len(got) != 2 {
		t.Errorf("all of them: %v, %v", got, err)
	}
	if _, err := chosen(list, []string{"example.com/o"}); err == nil {
		t.Error("a module that is not there is taken")
	}
	head := modulesHead(platforms[0], list, 2)
	for _, want := range []string{"-modules -keep DIR` in 2 pieces", "| example.com/m | v1.2.3 | -short -run=A\\|B | . ./sub/... |\n"} {
		if !strings.Contains(head, want) {
			t.Errorf("no %q in\n%s", want, head)
		}
	}
}

// The lists of suites and of reasons in the tree are valid, and each reason is about a module in the
// list.
func TestSuitesAreSuites(t *testing.T) {
	list, err := readSuites(modulesText)
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := readReasons(modulesReasonsText, "process")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reasons {
		if !slices.ContainsFunc(list, func(s suite) bool { return strings.HasPrefix(r.pkg+"/", s.module+"/") }) {
			t.Errorf("%s is of no module of modules.txt", r.pkg)
		}
	}
}

// A copy is writable, and has a go.mod even if the original has none.
func TestCopy(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(filepath.Join(from, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "sub", "file"), []byte("text"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := copyFolder(to, from); err != nil {
		t.Fatal(err)
	}
	s := suite{module: "example.com/m"}
	for range 2 { // on the second call the copy already has a go.mod
		if err := s.beModule(to); err != nil {
			t.Fatal(err)
		}
	}
	mod, err := os.ReadFile(filepath.Join(to, "go.mod"))
	if err != nil || string(mod) != "module example.com/m\n" {
		t.Errorf("%q, %v", mod, err)
	}
	info, err := os.Stat(filepath.Join(to, "sub", "file"))
	if err != nil || info.Mode().Perm() != 0o644 || info.Size() != 4 {
		t.Errorf("%v, %v", info, err)
	}
}
