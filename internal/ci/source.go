package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Some steps need only the packages that have fuzz targets, benchmarks or goroutines. The steps find these packages in the
// source. The flag -list of go test would find them too, but it links the test program of every package.

// goPackage is a package of this module, as go list prints it.
type goPackage struct {
	ImportPath, Dir                    string
	GoFiles, CgoFiles                  []string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
}

// listPackages returns all packages of this module. The flags are passed to go list; they may select build tags.
func listPackages(ctx context.Context, flags ...string) (all []goPackage, err error) {
	const fields = "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports"
	cmd := program(ctx, "go", slices.Concat([]string{"list", fields}, flags, []string{everything})...)
	cmd.Stderr = os.Stdout
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// sources returns the files of the package itself, and tests returns the files of its tests.
func (p *goPackage) sources() []string { return slices.Concat(p.GoFiles, p.CgoFiles) }
func (p *goPackage) tests() []string   { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// parse parses files of the package.
func (p *goPackage) parse(names []string) (files []*ast.File, err error) {
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// testsNamed returns the functions in the package's tests whose names begin with prefix, such as Fuzz or Benchmark.
func (p *goPackage) testsNamed(prefix string) (names []string, err error) {
	files, err := p.parse(p.tests())
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, prefix) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names, err
}
