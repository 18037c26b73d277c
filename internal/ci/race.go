package main

import (
	"context"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
)

// The race detector finds accesses of several goroutines to the same memory, and it enables checks of unsafe pointers. It can
// find nothing in a package if the package, its tests, and the packages of this module that they import start no goroutine
// and do not import unsafe. Many protocol machines are such packages. The step "test" has run their tests already.

// starters are the names of functions and methods that may run code of the caller in another goroutine, or access memory of
// the caller there. The method Start of exec.Cmd is one: a goroutine then writes the command's output.
var starters = []string{
	"AddCleanup", "AfterFunc", "Go", "ListenAndServe", "NewServer", "NewTLSServer", "NewUnstartedServer", "Parallel", "RunParallel",
	"Serve", "SetFinalizer", "Start",
}

// raceTests is the step that runs tests under the race detector.
func raceTests(ctx context.Context) error {
	all, err := listPackages(ctx, "-race")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(p goPackage) bool { return len(p.tests()) == 0 && len(p.sources()) == 0 })
	paths, tested, err := raced(all)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d packages; the others start no goroutines\n", len(paths), tested)
	return goTest(append([]string{"-race", vetted}, longestFirst(paths)...)...)(ctx)
}

// raced returns the packages in which the race detector may find something, and the number of packages with tests.
func raced(all []goPackage) (paths []string, tested int, err error) {
	byPath, starts := map[string]*goPackage{}, map[string]bool{}
	for i := range all {
		p := &all[i]
		byPath[p.ImportPath] = p
		if starts[p.ImportPath], err = p.startsGoroutines(p.sources()); err != nil {
			return nil, 0, err
		}
	}
	known := map[string]bool{}
	var reaches func(path string) bool // whether the package or a package that it imports starts goroutines
	reaches = func(path string) bool {
		p := byPath[path]
		if p == nil { // a package of another module
			return false
		}
		if _, ok := known[path]; !ok {
			known[path] = starts[path] || slices.ContainsFunc(p.Imports, reaches)
		}
		return known[path]
	}
	for _, p := range all {
		if len(p.tests()) == 0 {
			continue
		}
		tested++
		starts, err := p.startsGoroutines(p.tests())
		if err != nil {
			return nil, 0, err
		}
		if starts || reaches(p.ImportPath) || slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), reaches) {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths, tested, nil
}

// startsGoroutines reports whether one of the package's files may start a goroutine, or imports unsafe or C.
func (p *goPackage) startsGoroutines(names []string) (bool, error) {
	files, err := p.parse(names)
	return slices.ContainsFunc(files, startsGoroutines), err
}

func startsGoroutines(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			method, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && slices.Contains(starters, method.Sel.Name)
		case *ast.ImportSpec:
			path, _ := strconv.Unquote(n.Path.Value)
			found = found || path == "unsafe" || path == "C"
		}
		return !found
	})
	return found
}
