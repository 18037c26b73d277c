package unikernel

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// Packages that need cgo are built without it: of their files those that import "C"
// are left out. What the go command then complains about is what is missing, and not why.

// lacksCgo reports whether a build, of a main package in a folder, failed for want of
// cgo: output is what the go command said.
func lacksCgo(output, folder string) bool {
	for line := range strings.Lines(output) {
		if _, excluded, ok := strings.Cut(line, "build constraints exclude all Go files in "); ok && usesCgo(strings.TrimSpace(excluded)) {
			return true
		}
	}
	missing := strings.Contains(output, "function main is undeclared") || strings.Contains(output, "undefined: ")
	return missing && usesCgo(folder)
}

// usesCgo reports whether there is a Go file in a folder that imports "C".
func usesCgo(folder string) bool {
	names, _ := filepath.Glob(filepath.Join(folder, "*.go")) // the pattern is right
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			continue
		}
		for _, spec := range file.Imports {
			if spec.Path.Value == `"C"` {
				return true
			}
		}
	}
	return false
}
