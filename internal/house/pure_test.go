package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"testing"
)

// Packages that implement a protocol as a state machine, such as stack/tcp, are pure: time, input and randomness are
// arguments, and actions are return values. Therefore the same code runs in a process, in a virtual machine, in fake
// time and under a fuzzer. These tests check it.

// pureImports are the packages of the standard library that pure code may import. They compute, without
// a clock, a lock, a goroutine, the operating system, or hidden shared state. Add a package only if all
// of that holds for it.
var pureImports = set(
	"bytes", "cmp", "container/heap", "crypto/hmac", "crypto/sha256",
	"encoding/binary", "encoding/hex", "errors", "fmt", "hash", "iter", "maps", "math",
	"math/bits", "math/rand/v2", "net/netip", "slices", "sort", "strconv", "strings", "time",
)

// clockReaders are the functions of package time that read the clock or wait. The types and constants
// of the package are only values.
var clockReaders = set(
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
)

// ownRandom are the names of package rand that use a source supplied by the caller. The others use a
// shared source that cannot be repeated.
var ownRandom = set("ChaCha8", "New", "NewChaCha8", "NewPCG", "NewZipf", "PCG", "Rand", "Source", "Zipf")

func set(names ...string) map[string]bool {
	s := map[string]bool{}
	for _, n := range names {
		s[n] = true
	}
	return s
}

// purePackages returns package wire, the packages with protocol state machines (such as stack/tcp), and the packages of
// this module that they import.
func purePackages(t *testing.T) map[string]bool {
	t.Helper()
	m, err := parseLayers(layers)
	if err != nil {
		t.Fatal(err)
	}
	return m.mayImport("MACHINES")
}

func TestMachinesArePure(t *testing.T) {
	pure := purePackages(t)
	for _, f := range goFiles(t) {
		if pure[f.Dir()] && !f.IsTest() {
			report(t, impurities(f))
		}
	}
}

func impurities(f *goFile) (complaints []string) {
	complain := func(pos token.Pos, what string) {
		complaints = append(complaints, fmt.Sprintf("%s:%d: %s has no place in a pure package", f.Path, f.Line(pos), what))
	}
	for _, spec := range f.AST.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if !isOurs(imp) && !pureImports[imp] {
			complain(spec.Pos(), "package "+imp)
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			complain(n.Pos(), "a goroutine")
		case *ast.ChanType:
			complain(n.Pos(), "a channel")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && (x.Name == "time" && clockReaders[n.Sel.Name] || x.Name == "rand" && !ownRandom[n.Sel.Name]) {
				complain(n.Pos(), x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return complaints
}

func TestImpuritiesAreFound(t *testing.T) {
	for text, want := range map[string]string{
		`import "sync"`:                                "package sync",
		`import "os"`:                                  "package os",
		`import "net"`:                                 "package net",
		`import "time"; var x = time.Now()`:            "time.Now",
		`import "time"; func f() { time.Sleep(1) }`:    "time.Sleep",
		`import "math/rand/v2"; var x = rand.Uint32()`: "rand.Uint32",
		`import "math/rand/v2"; var r *rand.Rand`:      "",
		`func f() { go f() }`:                          "a goroutine",
		`var c chan int`:                               "a channel",
		`import "time"; const second = 1e9`:            "",
		`import "net/netip"; var a netip.Addr`:         "",
		`import "loam/wire"; var h wire.TCP`:           "",
		`import "time"; var never = time.Duration(-1)`: "",
	} {
		f := parse(t, "m/m.go", []byte("package m\n"+text))
		got := impurities(f)
		if want == "" && len(got) != 0 {
			t.Errorf("%s: complains %q", text, got)
		}
		if want != "" && (len(got) != 1 || got[0] != "m/m.go:2: "+want+" has no place in a pure package") {
			t.Errorf("%s: got %q, want a complaint about %s", text, got, want)
		}
	}
}
