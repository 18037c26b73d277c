package unikernel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"loam"
	"loam/posix"
)

// Every package that a guest is made of is among the embedded source, and no
// test is.
func TestGuestSource(t *testing.T) {
	files, err := guestSource(loam.Source, Machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"loam/unikernel/rt/call.go", "loam/posix/table.go", "loam/stack/stack.go", "loam/wire/ipv4.go", "loam/kernel/start.go"} {
		if files[want] == nil {
			t.Errorf("%s is missing", want)
		}
	}
	for name := range files {
		if strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s is a test", name)
		}
	}
}

// The switch in rt/call.go serves each call of the table that is not refused, and
// no other.
func TestTableIsServed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "rt/call.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				served = append(served, callName(e))
			}
		}
		return true
	})
	for _, c := range posix.Table {
		if c.Support != posix.Refused && !slices.Contains(served, c.Name) {
			t.Errorf("%s is in the table and not served", c.Name)
		}
	}
	for _, name := range served {
		if !slices.ContainsFunc(posix.Table, func(c posix.Call) bool { return c.Name == name }) {
			t.Errorf("%s is served and not in the table", name)
		}
	}
}

// callName makes "epoll_wait" of syscall.SYS_EPOLL_WAIT and of sysEpollWait.
func callName(e ast.Expr) string {
	name := ""
	switch e := e.(type) {
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.Ident:
		name = e.Name
	}
	if rest, ok := strings.CutPrefix(name, "SYS_"); ok {
		return strings.ToLower(rest)
	}
	var b strings.Builder
	for i, c := range strings.TrimPrefix(strings.TrimPrefix(name, "sys"), "Sys") {
		if c >= 'A' && c <= 'Z' && i > 0 {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}

func TestProgramName(t *testing.T) {
	for path, want := range map[string]string{
		"example.com/server": "server", "example.com/server/v2": "server", "example.com/server@v1.2.3": "server",
		"example.com/v2/server": "server", "vet": "vet", "v2": "v2",
	} {
		if got := programName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
