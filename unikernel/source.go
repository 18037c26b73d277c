package unikernel

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"loam/unikernel/overlay"
)

// Loam's own packages join a program as packages of the standard library: the
// overlay puts them below GOROOT/src/loam. So they need no entry in anybody's
// go.mod, no vendor folder, no network, and cannot disagree with what the
// program requires. They have a name of their own there (guestModule): a program may
// require a module loam, of any version, for its stack, say, and has that beside what
// it runs on.
//
// Rejected: a copy of go.mod with a require and a replace (-modfile). It fails
// in workspaces and vendored modules, and has nothing to stand on where a single
// file is run outside a module.

// module is the path of this module, and the prefix of its packages.
const module = "loam"

// guestModule takes the place of module in the standard library. It has no dot, as paths
// there have none.
const guestModule = "loamguest"

// What a guest imports, below module or guestModule: as a process, and in a virtual
// machine.
const (
	processPackage = "/unikernel/rt/process"
	machinePackage = "/unikernel/rt/machine"
)

// root is the package that joins Loam to a program, below module or guestModule.
func (p Platform) root() string {
	if p == Machine {
		return machinePackage
	}
	return processPackage
}

// rename gives Loam's packages the names that they have in the standard library: where
// they are imported, in go:linkname, and in assembly, which writes paths with another
// slash.
var rename = strings.NewReplacer(
	`"`+module+"/", `"`+guestModule+"/",
	" "+module+"/", " "+guestModule+"/",
	module+"∕", guestModule+"∕",
)

// inStd are files with these names.
func inStd(files overlay.Files) overlay.Files {
	renamed := make(overlay.Files, len(files))
	for name, src := range files {
		if rest, ok := strings.CutPrefix(name, module+"/"); ok {
			name = guestModule + "/" + rest
		}
		renamed[name] = []byte(rename.Replace(string(src)))
	}
	return renamed
}

// guestSource returns the files of the packages that a guest takes: its root, and
// those that it imports. Names are import path and file.
func guestSource(source fs.FS, platform Platform) (overlay.Files, error) {
	files := overlay.Files{}
	seen := map[string]bool{}
	todo := []string{module + platform.root()}
	for len(todo) > 0 {
		pkg := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pkg] {
			continue
		}
		seen[pkg] = true
		imports, err := addPackage(files, source, pkg)
		if err != nil {
			return nil, err
		}
		todo = append(todo, imports...)
	}
	return files, nil
}

// addPackage adds the files of one package and returns which of Loam's packages
// it imports.
func addPackage(files overlay.Files, source fs.FS, pkg string) ([]string, error) {
	dir := strings.TrimPrefix(pkg, module+"/")
	entries, err := fs.ReadDir(source, dir)
	if err != nil {
		return nil, fmt.Errorf("package %s is not among the source of guests (embed.go): %w", pkg, err)
	}
	var imports []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(source, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[path.Join(pkg, name)] = src
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err == nil && strings.HasPrefix(p, module+"/") {
				imports = append(imports, p)
			}
		}
	}
	return imports, nil
}
