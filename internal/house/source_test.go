package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"regexp"
	"strings"
	"testing"
)

// Rules for every Go file, tests included. Generated files are exempt from the limits on size.

const (
	maxFile     = 600 // lines of a file
	maxFunction = 100 // lines of a function, from func to its closing brace
)

func TestFormat(t *testing.T) {
	for _, f := range goFiles(t) {
		if want, err := format.Source(f.Text); err != nil || !bytes.Equal(want, f.Text) {
			t.Errorf("%s is not formatted: run make fmt", f.Path)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.isGenerated() {
			report(t, oversize(f))
		}
	}
}

// oversize complains about long files and functions. A function may be longer if a line "// long:
// reason" in its comment says why: a table, for example, or a switch over the states of a standard.
func oversize(f *goFile) (complaints []string) {
	if n := bytes.Count(f.Text, []byte("\n")); n > maxFile {
		complaints = append(complaints, fmt.Sprintf("%s has %d lines, more than %d: split it by concern", f.Path, n, maxFile))
	}
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first := f.Line(fn.Pos())
		n := f.Line(fn.End()) - first + 1
		if n > maxFunction && !longReason.MatchString(commentText(fn.Doc)) {
			complaints = append(complaints, fmt.Sprintf(
				"%s:%d: %s has %d lines, more than %d: split it, or say why in a comment above it, // long: reason",
				f.Path, first, fn.Name.Name, n, maxFunction))
		}
	}
	return complaints
}

var longReason = regexp.MustCompile(`(?m)^//\s*long: \S`)

// commentText returns a comment as written, directives included.
func commentText(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	var lines []string
	for _, c := range g.List {
		lines = append(lines, c.Text)
	}
	return strings.Join(lines, "\n")
}

func TestOversizeIsFound(t *testing.T) {
	body := " func f() {" + strings.Repeat("\n", maxFunction) + "}\n"
	for text, want := range map[string]int{
		"package p\n": 0,
		"package p\n" + strings.Repeat("\n", maxFile):             1,
		"package p\n" + body:                                      1,
		"package p\n// f is a list.\n// long: a table\n" + body:   0,
		"package p\n// f is a list that is long: oh yes\n" + body: 1,
	} {
		if got := oversize(parse(t, "p/p.go", []byte(text))); len(got) != want {
			t.Errorf("%d lines: got %q, want %d complaints", strings.Count(text, "\n"), got, want)
		}
	}
}

// TestPackageComments checks that the comment of every package begins with "Package NAME". Commands may
// use other words.
func TestPackageComments(t *testing.T) {
	docs := map[string]string{}
	name := map[string]string{}
	for _, f := range goFiles(t) {
		if strings.Contains(f.Path, "/_") || f.IsTest() && !strings.HasSuffix(f.AST.Name.Name, "_test") {
			continue // the files are part of a package whose comment is elsewhere
		}
		if docs[f.Dir()] += f.AST.Doc.Text(); !f.IsTest() {
			name[f.Dir()] = f.AST.Name.Name
		}
	}
	for dir, n := range name {
		report(t, packageComment(dir, n, docs[dir]))
	}
}

func packageComment(dir, name, doc string) []string {
	switch {
	case doc == "":
		return []string{fmt.Sprintf("%s: package %s has no comment that says what it is", dir, name)}
	case name != "main" && !strings.HasPrefix(doc, "Package "+name+" "):
		return []string{fmt.Sprintf("%s: the comment does not begin with %q", dir, "Package "+name+" ")}
	}
	return nil
}

func TestPackageCommentsAreMissed(t *testing.T) {
	for _, test := range []struct {
		name, doc string
		complains bool
	}{
		{"wire", "Package wire turns bytes into headers.\n", false},
		{"wire", "Turns bytes into headers.\n", true},
		{"wire", "Package wires is misnamed.\n", true},
		{"wire", "", true},
		{"main", "Command loam runs programs.\n", false},
		{"main", "", true},
	} {
		if got := packageComment("d", test.name, test.doc); (got != nil) != test.complains {
			t.Errorf("%s, %q: got %q", test.name, test.doc, got)
		}
	}
}

// reminder matches marks for work that is left for later. Missing features are listed in CAVEATS.md,
// where users see them too.
var reminder = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

func TestNoReminders(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, group := range f.AST.Comments {
			if m := reminder.FindString(commentText(group)); m != "" {
				t.Errorf("%s:%d: %s: do it, or write it into CAVEATS.md", f.Path, f.Line(group.Pos()), m)
			}
		}
	}
	files(t, func(p string) {
		if isScript(p) && reminder.Match(read(t, p)) {
			t.Errorf("%s: %s: do it, or write it into CAVEATS.md", p, reminder.Find(read(t, p)))
		}
	})
}

// isScript reports whether p is source code other than Go.
func isScript(p string) bool {
	return strings.HasSuffix(p, ".s") || strings.HasSuffix(p, ".sh") || strings.HasSuffix(p, "Makefile")
}
