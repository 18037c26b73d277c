package house

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// The function with which a goroutine begins must belong to this module. From that function, the Go runtime of a
// program on Loam knows whether a goroutine belongs to Loam or to the program. A goroutine started by sync.WaitGroup.Go
// begins with a function of package sync, and would count as one of the program's.
func TestGoroutinesAreOurs(t *testing.T) {
	linked := linkedIntoGuests(t)
	if !linked["stack"] || !linked["driver/console"] {
		t.Fatalf("linked into guests: %v", linked)
	}
	for _, f := range goFiles(t) {
		if linked[f.Dir()] && !f.IsTest() {
			report(t, borrowedGoroutines(f))
		}
	}
}

// linkedIntoGuests returns the packages that are linked into a program on Loam, in a process or in a
// virtual machine.
func linkedIntoGuests(t *testing.T) map[string]bool {
	t.Helper()
	imports := map[string][]string{}
	for _, p := range packages(t) {
		imports[p.Path] = p.Imports
	}
	linked := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		linked[path] = true
		for _, imp := range imports[path] {
			if imp, ours := strings.CutPrefix(imp, "./"); ours && !linked[imp] {
				add(imp)
			}
		}
	}
	add("unikernel/rt/process")
	add("unikernel/rt/machine")
	return linked
}

func borrowedGoroutines(f *goFile) (complaints []string) {
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Go" && len(call.Args) == 1 {
				complaints = append(complaints, fmt.Sprintf("%s:%d: a goroutine that begins with a function of another package", f.Path, f.Line(s.Sel.Pos())))
			}
		}
		return true
	})
	return complaints
}

func TestBorrowedGoroutinesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`import "sync"; func f(w *sync.WaitGroup) { w.Go(func() {}) }`: 1,
		`func f() { go f() }`: 0,
	} {
		if got := borrowedGoroutines(parse(t, "m/m.go", []byte("package m\n"+text))); len(got) != want {
			t.Errorf("%s: complains %q", text, got)
		}
	}
}
