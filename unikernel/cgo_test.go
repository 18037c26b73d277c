package unikernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If an imported package has no files left because of cgo, the error says that the program needs
// cgo. It does not if other build constraints exclude the files.
func TestCgoIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, file string
		named      bool
	}{
		{"cgo", "package c\n\nimport \"C\"\n", true},
		{"another system", "//go:build windows\n\npackage c\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"go.mod":  "module example.org/m\n\ngo 1.24\n",
				"main.go": "package main\n\nimport _ \"example.org/m/c\"\n\nfunc main() {}\n",
				"c/c.go":  c.file,
			} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p, err := NewPlan(t.Context(), Target{Args: []string{"."}, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Build(t.Context()); err == nil || strings.Contains(err.Error(), "needs cgo") != c.named {
				t.Error(err)
			}
		})
	}
}

// The error also says so if an imported package has other files, and lacks a name that a file with cgo
// defines.
func TestCgoBesideOtherFiles(t *testing.T) {
	for file, named := range map[string]bool{"import \"C\"\n\nconst V = 1\n": true, "const W = 1\n": false} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"go.mod":   "module example.org/m\n\ngo 1.24\n",
			"main.go":  "package main\n\nimport \"example.org/m/c\"\n\nfunc main() { print(c.V) }\n",
			"c/c.go":   "package c\n\n" + file,
			"c/all.go": "package c\n",
		} {
			if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewPlan(t.Context(), Target{Args: []string{"."}, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Build(t.Context()); err == nil || strings.Contains(err.Error(), "needs cgo") != named {
			t.Error(err)
		}
	}
}
