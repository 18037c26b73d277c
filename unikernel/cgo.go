package unikernel

import (
	"context"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// If cgo is disabled, the go command excludes files that import "C". Its error message then names a missing package or name,
// but not the cause. This file determines whether the cause is cgo.

// excludesAll is the go command's message, without the folder, for a package whose files are all excluded.
const excludesAll = "build constraints exclude all Go files in "

// lacksCgo reports whether the build of the main package in folder failed because it needs cgo.
// output is the output of the go command.
func lacksCgo(output, folder string) bool {
	for line := range strings.Lines(output) {
		if _, excluded, ok := strings.Cut(line, excludesAll); ok && usesCgo(strings.TrimSpace(excluded)) {
			return true
		}
	}
	missing := strings.Contains(output, "function main is undeclared") || strings.Contains(output, "undefined: ")
	return missing && usesCgo(folder)
}

// undefinedName matches the compiler's message for a name that a package does not define.
var undefinedName = regexp.MustCompile(`undefined: (\w+)\.\w+`)

// needsCgo reports whether a build failed because the main package, or a package that it imports, needs cgo. If a file with
// cgo is excluded, the compiler reports its names as undefined where they are used.
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

// usesCgo reports whether a Go file in a folder imports "C".
func usesCgo(folder string) bool {
	names, _ := filepath.Glob(filepath.Join(folder, "*.go")) // Glob fails only for a malformed pattern
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
