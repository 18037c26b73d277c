package house

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Code without the compiler's protection is allowed only where readers expect it.

// rawPackages are the folders that deal with memory, registers and the internals of the runtime. _std,
// _process and _vm hold files that are compiled into the standard library.
var rawPackages = []string{"arch/", "unikernel/rt/", "unikernel/overlay/_std/", "unikernel/overlay/_process/", "unikernel/overlay/_vm/"}

// mayBeUnsafe reports whether a file may import unsafe. The rule includes tests.
func mayBeUnsafe(p string) bool {
	for _, dir := range rawPackages {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	name := strings.TrimSuffix(path.Base(p), ".go")
	return strings.HasSuffix(name, "_unsafe") || strings.HasSuffix(name, "_unsafe_test")
}

func TestUnsafe(t *testing.T) {
	for _, f := range goFiles(t) {
		report(t, misplacedUnsafe(f))
		report(t, bareNosplit(f))
	}
}

func misplacedUnsafe(f *goFile) []string {
	for _, spec := range f.AST.Imports {
		if spec.Path.Value == `"unsafe"` && !mayBeUnsafe(f.Path) {
			return []string{fmt.Sprintf("%s:%d: unsafe belongs in a file named *_unsafe.go or below %s",
				f.Path, f.Line(spec.Pos()), strings.Join(rawPackages, " or "))}
		}
	}
	return nil
}

// nosplitReason matches a reason for go:nosplit: it must mention the stack that must not grow.
var nosplitReason = regexp.MustCompile(`(?i)split|stack`)

// bareNosplit complains about functions whose stack must not grow (go:nosplit) and whose comment does
// not say why. A comment at the head of the file may give the reason for all functions.
func bareNosplit(f *goFile) (complaints []string) {
	for _, g := range f.AST.Comments {
		if len(f.AST.Decls) > 0 && g.Pos() < f.AST.Decls[0].Pos() && strings.Contains(g.Text(), "nosplit") {
			return nil
		}
	}
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !strings.Contains(commentText(fn.Doc), "//go:nosplit") {
			continue
		}
		// Text omits directives, so go:nosplit itself does not match.
		if !nosplitReason.MatchString(fn.Doc.Text()) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: the comment of %s does not say why its stack must not grow (go:nosplit)",
				f.Path, f.Line(fn.Pos()), fn.Name.Name))
		}
	}
	return complaints
}

func TestUnsafeIsFound(t *testing.T) {
	const imports = "package p\nimport _ \"unsafe\"\n"
	for _, test := range []struct {
		path, text string
		complaints int
	}{
		{"stack/x.go", imports, 1},
		{"stack/x_test.go", imports, 1},
		{"stack/x_unsafe.go", imports, 0},
		{"stack/x_unsafe_test.go", imports, 0},
		{"arch/amd64/x.go", imports, 0},
		{"unikernel/rt/x.go", imports, 0},
		{"unikernel/rtx/x.go", imports, 1},
		{"a/x.go", "package p\n//go:nosplit\nfunc f() {}", 1},
		{"a/x.go", "package p\n// f adds.\n//\n//go:nosplit\nfunc f() {}", 1},
		{"a/x.go", "package p\n// All of this is nosplit: there is no g yet.\n\nimport \"time\"\n//go:nosplit\nfunc f() {}", 0},
		{"a/x.go", "package p\n// f runs on the signal stack.\n//\n//go:nosplit\nfunc f() {}", 0},
	} {
		f := parse(t, test.path, []byte(test.text))
		got := append(misplacedUnsafe(f), bareNosplit(f)...)
		if len(got) != test.complaints {
			t.Errorf("%s: %q: got %q, want %d complaints", test.path, test.text, got, test.complaints)
		}
	}
}
