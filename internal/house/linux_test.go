package house

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// Code that is linked into a guest takes Linux's constants from abi/linux and from nowhere else.

// abiFolder is the folder of the package with Linux's constants.
const abiFolder = "abi/linux"

// asksTheHost lists the folders whose code makes system calls of the host, by package syscall or
// golang.org/x/sys/unix, with the reason. They may take constants from these packages.
var asksTheHost = map[string]string{
	"block/file/":         "a file of the host",
	"cmd/":                "the tool runs on the host",
	"examples/":           "programs that know nothing of Loam",
	"fs/ninep/server/":    "serves a folder of the host, in the loam command",
	"gen/":                "the packet engine runs on the host",
	"internal/":           "tools and tests of the host",
	"link/":               "devices of a host; in a guest they report errors of package syscall, as package stack",
	"stack/":              "a library for programs of any system, whose errors are those of package syscall there",
	"test/":               "tests of the host",
	"unikernel/cost/":     "a program that knows nothing of Loam",
	"unikernel/image/":    "makes files on the host; its testdata is a program",
	"unikernel/overlay/_": "compiled into packages runtime and syscall, which import nothing of ours",
	"unikernel/detach/":   "starts the loam command again, on the host",
	"unikernel/registry/": "files and processes of the host, in the loam command",
	"unikernel/sandbox/":  "starts processes on the host",
	"unikernel/testdata/": "programs that know nothing of Loam",
	"usernet/":            "the gateway runs on the host",
}

// onHost reports whether a file may use constants of package syscall.
func onHost(f *goFile) bool {
	if strings.Count(f.Path, "/") == 1 && strings.HasPrefix(f.Path, "unikernel/") {
		return true // package unikernel, but not its subpackages, builds and runs programs on the host
	}
	for prefix := range asksTheHost {
		if strings.HasPrefix(f.Path, prefix) {
			return true
		}
	}
	return false
}

func TestLinuxNumbers(t *testing.T) {
	names := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.Dir() == abiFolder {
			addConstants(names, f)
		}
	}
	if len(names) < 900 {
		t.Fatalf("%s has %d constants only", abiFolder, len(names))
	}
	for _, f := range goFiles(t) {
		if !onHost(f) {
			report(t, foreignNumbers(f, names))
		}
	}
}

// addConstants adds the names of the constants of a file, except for signals: package os needs those of
// package syscall, which are typed.
func addConstants(names map[string]bool, f *goFile) {
	for _, d := range f.AST.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					names[name.Name] = !strings.HasPrefix(name.Name, "SIG")
				}
			}
		}
	}
}

// foreignNumbers complains about Linux constants taken from other packages.
func foreignNumbers(f *goFile, names map[string]bool) (complaints []string) {
	for _, spec := range f.AST.Imports {
		if spec.Path.Value == `"golang.org/x/sys/unix"` {
			complaints = append(complaints, fmt.Sprintf("%s:%d: golang.org/x/sys/unix in what is linked into a guest: take %s", f.Path, f.Line(spec.Pos()), abiFolder))
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "syscall" && (names[s.Sel.Name] || strings.HasPrefix(s.Sel.Name, "SYS_")) {
			complaints = append(complaints, fmt.Sprintf("%s:%d: syscall.%s: Linux's numbers come from %s", f.Path, f.Line(s.Pos()), s.Sel.Name, abiFolder))
		}
		return true
	})
	return complaints
}

func TestForeignNumbersAreFound(t *testing.T) {
	names := map[string]bool{"O_CREAT": true, "SIGTERM": false}
	for text, want := range map[string]int{
		"package p\nimport \"syscall\"\nvar a = syscall.O_CREAT":      1,
		"package p\nimport \"syscall\"\nvar a = syscall.SYS_NEW":      1,
		"package p\nimport \"syscall\"\nvar a = syscall.SIGTERM":      0,
		"package p\nimport \"syscall\"\nvar a = syscall.Getpid()":     0,
		"package p\nimport _ \"golang.org/x/sys/unix\"":               1,
		"package p\nimport \"loam/abi/linux\"\nvar a = linux.O_CREAT": 0,
	} {
		if got := foreignNumbers(parse(t, "p/p.go", []byte(text)), names); len(got) != want {
			t.Errorf("%q: %q, want %d complaints", text, got, want)
		}
	}
}
