package unikernel

import (
	"context"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// Packages that need cgo are built without it: of their files those that import "C"
// are left out. What the go command then complains about is what is missing, and not why.

// excludesAll is what the go command says, in front of its folder, of a package whose files are
// all left out.
const excludesAll = "build constraints exclude all Go files in "

// lacksCgo reports whether a build, of a main package in a folder, failed for want of
// cgo: output is what the go command said.
func lacksCgo(output, folder string) bool {
	for line := range strings.Lines(output) {
		if _, excluded, ok := strings.Cut(line, excludesAll); ok && usesCgo(strings.TrimSpace(excluded)) {
			return true
		}
	}
	missing := strings.Contains(output, "function main is undeclared") || strings.Contains(output, "undefined: ")
	return missing && usesCgo(folder)
}

// undefinedName is what the compiler says where a package lacks a name.
var undefinedName = regexp.MustCompile(`undefined: (\w+)\.\w+`)

// needsCgo reports whether a build failed for want of cgo, in the main package or in one that
// it imports: what a file that was left out defines is missing where that is imported.
func (l *located) needsCgo(ctx context.Context, output string, flags []string) bool {
	if lacksCgo(output, l.pkg) {
		return true
	}
	lacking := map[string]bool{}
	for _, m := range undefinedName.FindAllStringSubmatch(output, -1) {
		lacking[m[1]] = true
	}
	if len(lacking) == 0 {
		return false
	}
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.Name}} {{.Dir}}{{end}}"}, l.flags...)
	out, err := l.tools.run(ctx, l.dir, append(append(args, flags...), l.args...)...)
	for line := range strings.Lines(string(out)) {
		name, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err == nil && lacking[name] && usesCgo(folder) {
			return true
		}
	}
	return false
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
