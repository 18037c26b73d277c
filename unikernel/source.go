package unikernel

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"loam"
	"loam/unikernel/overlay"
)

// Loam's packages are added to a program as packages of the standard library: the overlay places them below
// GOROOT/src/loamguest (guestModule). So they need no entry in the program's go.mod, no vendor folder and
// no network, and they cannot conflict with the program's requirements. Their import paths differ from
// Loam's own. A program may therefore require module loam at any version, for its stack for example, beside
// the copy that it runs on.
//
// Rejected: a copy of go.mod with a require and a replace line (-modfile). It fails in workspaces and
// vendored modules, and there is no go.mod to copy when a single file outside a module is run.

// module is the path of Loam's module, and the prefix of its packages.
const module = "loam"

// guestModule replaces module in the standard library. It has no dot, like all import paths there.
const guestModule = "loamguest"

// Packages of Loam that a guest imports, below module or guestModule: one for a process, and one for a virtual machine.
const (
	processPackage = "/unikernel/rt/process"
	machinePackage = "/unikernel/rt/machine"
	// ring3Package runs Linux programs in a virtual machine: see linux.go.
	ring3Package = "/unikernel/rt/ring3"
	// childrenPackage lets a program start others: see children.go.
	childrenPackage = "/unikernel/rt/children"
)

// errSource returns the error for a folder that is not a checkout of Loam.
func errSource(dir string) error {
	return errorf("name the root of a checkout of Loam, or leave --source out", "--source: %s is no checkout of Loam", dir)
}

// openSource returns the source of Loam's packages: the embedded source or, if dir is not empty, a
// checkout. Only a checkout that the user names is used. A program's folder may belong to another
// user, so its content must not decide what confines the program.
func openSource(dir string) (fs.FS, error) {
	if dir == "" {
		return loam.Source, nil
	}
	root := filepath.FromSlash(processPackage)
	if _, err := os.Stat(filepath.Join(dir, root)); err != nil || moduleOf(filepath.Join(dir, "go.mod")) != module {
		return nil, errSource(dir)
	}
	return os.DirFS(dir), nil
}

// root returns the package that connects a program to Loam on this platform, below module or guestModule.
func (p Platform) root() string {
	if p == Machine {
		return machinePackage
	}
	return processPackage
}

// rename changes the paths of Loam's packages to their paths in the standard library: in imports, in
// directives of the compiler (linkname), and in assembly, which writes the slash as U+2215.
var rename = strings.NewReplacer(
	`"`+module+"/", `"`+guestModule+"/",
	" "+module+"/", " "+guestModule+"/",
	module+"∕", guestModule+"∕",
)

// inStd returns files with these paths changed, in their names and in their content.
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

// guestSource returns the files of the platform's root package and of the Loam packages that it imports,
// directly or indirectly. Keys are import path and file name.
func guestSource(source fs.FS, platform Platform) (overlay.Files, error) {
	files := overlay.Files{}
	seen := map[string]bool{}
	todo := []string{module + platform.root()}
	if platform == Machine {
		todo = append(todo, module+ring3Package, module+childrenPackage)
	}
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

// addPackage adds the files of one package, and returns the Loam packages that it imports.
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
