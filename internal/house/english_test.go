package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/build"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loam/internal/house/english"
)

var update = flag.Bool("update", false, "lower the ceilings in dialect.txt to the counts of today")

// ceilingFile has a line "count path" for each package and document that still has phrases of the
// dialect. Anything that is not in it must have none.
const ceilingFile = "internal/house/dialect.txt"

// TestDialect checks that comments and documents are plain English. Phrases that readers stumble over
// are counted for each package and each document. The count may not exceed the ceiling in dialect.txt,
// and a ceiling may only be lowered:
//
//	go test ./internal/house -run Dialect -update
func TestDialect(t *testing.T) {
	found := map[string][]english.Finding{}
	err := english.Walk(os.DirFS(rootDir(t)), func(p english.Passage) {
		if f := english.Dialect(p); len(f) > 0 {
			found[unit(p.File)] = append(found[unit(p.File)], f...)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ceilings, err := parseCeilings(string(read(t, ceilingFile)))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		writeCeilings(t, ceilings, found)
		return
	}
	for _, u := range slices.Sorted(maps.Keys(found)) {
		report(t, tooMuch(u, ceilings[u], found[u]))
	}
}

// unit returns the name under which the phrases of a file are counted: the file itself for a document, its package for code.
func unit(file string) string {
	if strings.HasSuffix(file, ".md") {
		return file
	}
	return path.Dir(file)
}

// tooMuch complains if a package or document has more phrases than its ceiling.
func tooMuch(unit string, ceiling int, found []english.Finding) (complaints []string) {
	if len(found) <= ceiling {
		return nil
	}
	complaints = append(complaints, fmt.Sprintf(
		"%s has %d phrases that are hard to read, and %d are allowed: rewrite at least %d of these, new ones first",
		unit, len(found), ceiling, len(found)-ceiling))
	for _, f := range found {
		complaints = append(complaints, fmt.Sprintf("%s:%d: %q: %s", f.File, f.Line, f.Phrase, f.Reason))
	}
	return complaints
}

func parseCeilings(text string) (map[string]int, error) {
	ceilings := map[string]int{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		var n int
		var unit string
		if _, err := fmt.Sscan(line, &n, &unit); err != nil {
			return nil, fmt.Errorf("%s: %q: want a count and a path", ceilingFile, strings.TrimSpace(line))
		}
		ceilings[unit] = n
	}
	return ceilings, nil
}

// writeCeilings lowers the ceilings to the counts found. It raises none.
func writeCeilings(t *testing.T, ceilings map[string]int, found map[string][]english.Finding) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# The number of hard phrases that each package and document may have at most. See english_test.go.\n" +
		"# These counts may only fall: go test ./internal/house -run Dialect -update\n")
	for _, u := range slices.Sorted(maps.Keys(ceilings)) {
		if n := min(ceilings[u], len(found[u])); n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n, u)
		}
	}
	if err := os.WriteFile(filepath.Join(rootDir(t), ceilingFile), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTooMuchIsFound(t *testing.T) {
	two := make([]english.Finding, 2)
	for ceiling, want := range map[int]int{0: 3, 1: 3, 2: 0, 3: 0} {
		if got := tooMuch("p", ceiling, two); len(got) != want {
			t.Errorf("ceiling %d: %d complaints, want %d", ceiling, len(got), want)
		}
	}
	if _, err := parseCeilings("two stack\n"); err == nil {
		t.Error("a line without a count was accepted")
	}
}

// TestFilesInComments checks that the files that comments name exist: in the folder of the comment,
// below the root, at the end of any path of the tree, or in the source of Go.
func TestFilesInComments(t *testing.T) {
	var tree []string
	files(t, func(p string) { tree = append(tree, "/"+p) })
	known := func(dir, name string) bool {
		return slices.ContainsFunc(tree, func(p string) bool { return strings.HasSuffix(p, "/"+name) }) ||
			exists(filepath.Join(rootDir(t), dir, name)) || isStandardFile(name)
	}
	err := english.Walk(os.DirFS(rootDir(t)), func(p english.Passage) {
		if !strings.HasSuffix(p.File, ".md") {
			report(t, missingFiles(p, known))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// missingFiles complains about file names in a comment for which known is false.
func missingFiles(p english.Passage, known func(dir, name string) bool) (complaints []string) {
	for _, name := range english.FileNames(p) {
		if !known(path.Dir(p.File), name) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: the comment names %s, which does not exist", p.File, p.Line, name))
		}
	}
	return complaints
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// isStandardFile reports whether name is a file of the Go distribution, such as runtime/proc.go.
func isStandardFile(name string) bool {
	for _, below := range []string{"", "*", "*/*"} {
		if found, _ := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", below, name)); len(found) > 0 {
			return true
		}
	}
	return false
}

func TestMissingFilesAreFound(t *testing.T) {
	known := func(dir, name string) bool { return dir == "stack" && name == "turn.go" }
	for text, want := range map[string]int{
		"See turn.go.\n":                         0,
		"See gone.go, and stack/NAME/doc.go.\n":  1,
		"See gone.md and https://x.org/a.txt.\n": 1,
		"See QEMU's docs/gone.txt.\n":            0,
	} {
		if got := missingFiles(english.Passage{File: "stack/a.go", Text: text}, known); len(got) != want {
			t.Errorf("%q: got %q, want %d complaints", text, got, want)
		}
	}
}
