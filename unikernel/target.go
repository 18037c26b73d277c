package unikernel

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Target names the program to run.
type Target struct {
	// Args name a main package as `go run` does: an import path, an import path with @version, a folder, or
	// the Go files of one package.
	Args []string
	// Dir is the folder that relative Args refer to; empty: the current folder.
	Dir string
	// Flags are added to go build, each as -name=value.
	Flags []string
	// Platform is the platform to build for.
	Platform Platform
	// Source is a checkout of Loam whose packages are linked into the program; empty: the packages embedded
	// in this command.
	Source string
}

// choosing returns those flags that select a program's files and modules. go list needs them too.
func (t *Target) choosing() []string { return choosing(t.Flags) }

// choosing returns the flags among the given build flags that select the program's files and modules, such as
// -tags and -mod.
func choosing(given []string) (flags []string) {
	for _, f := range given {
		switch name, _, _ := strings.Cut(f, "="); name {
		case "-tags", "-mod", "-modfile":
			flags = append(flags, f)
		}
	}
	return flags
}

// located is a target whose main package has been found.
type located struct {
	dir   string   // folder in which the go command runs
	args  []string // arguments of go build that name the package
	pkg   string   // folder of the main package
	name  string   // name of the program
	flags []string
	tools *toolchain

	// borrowed is "PATH SUM" of the module that is replaced by a copy, or empty. copied is the folder of
	// the copy.
	borrowed, copied string
}

// locate resolves a target.
func locate(ctx context.Context, c cache, t Target) (*located, error) {
	if len(t.Args) == 0 {
		return nil, errorf("name a package, a folder or Go files, such as . or main.go", "nothing to run")
	}
	base, err := filepath.Abs(t.Dir)
	if err != nil {
		return nil, err
	}
	first := t.Args[0]
	if strings.HasSuffix(first, ".go") {
		return locateFiles(ctx, c, base, t.Args)
	}
	if len(t.Args) > 1 {
		return nil, errorf("put -- in front of the program's own arguments", "%q names one package, %q is too much", first, t.Args[1])
	}
	if dir, ok := folder(base, first); ok {
		return locateFolder(ctx, c, dir)
	}
	if strings.Contains(first, "@") {
		return locateVersion(ctx, c, first, t.choosing())
	}
	return locatePackage(ctx, c, base, first, t.choosing())
}

// folder reports whether an argument names a folder: it starts like a path, or a folder of this name
// exists. It also returns the folder's path.
func folder(base, arg string) (string, bool) {
	dir := arg
	if !filepath.IsAbs(arg) {
		dir = filepath.Join(base, arg)
	}
	if arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") || filepath.IsAbs(arg) {
		return dir, true
	}
	st, err := os.Stat(dir)
	return dir, err == nil && st.IsDir()
}

// locateFolder resolves a folder, which must be inside a module.
func locateFolder(ctx context.Context, c cache, dir string) (*located, error) {
	if st, err := os.Stat(dir); err != nil {
		return nil, errorf("name a package, a folder or Go files", "there is no %s", dir)
	} else if !st.IsDir() {
		return nil, errorf("name a package, a folder, Go files, a Linux program or a script", "%s is none of these", dir)
	}
	tools, err := findToolchain(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	if tools.GOMOD == "" || tools.GOMOD == os.DevNull {
		return nil, errorf("run `go mod init` there, or name its Go files", "%s is in no module", dir)
	}
	return &located{dir: dir, args: []string{"."}, pkg: dir, name: filepath.Base(dir), tools: tools}, nil
}

// locateFiles resolves Go files, which must lie in one folder. The package then consists of these files and
// mainFile.
func locateFiles(ctx context.Context, c cache, base string, args []string) (*located, error) {
	l := &located{}
	for _, arg := range args {
		if !strings.HasSuffix(arg, ".go") {
			return nil, errorf("put -- in front of the program's own arguments", "%s is not a Go file", arg)
		}
		path := arg
		if !filepath.IsAbs(arg) {
			path = filepath.Join(base, arg)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, errorf("name Go files that exist", "there is no %s", arg)
		}
		if l.dir != "" && l.dir != filepath.Dir(path) {
			return nil, errorf("name files of one package", "%s lies in another folder than %s", arg, args[0])
		}
		l.dir = filepath.Dir(path)
		l.args = append(l.args, filepath.Base(path))
	}
	l.pkg = l.dir
	l.name = strings.TrimSuffix(l.args[0], ".go")
	l.args = append(l.args, mainFile)
	var err error
	l.tools, err = findToolchain(ctx, c, l.dir)
	return l, err
}

// locatePackage resolves an import path in the module that contains base.
func locatePackage(ctx context.Context, c cache, base, arg string, flags []string) (*located, error) {
	tools, err := findToolchain(ctx, c, base)
	if err != nil {
		return nil, err
	}
	p, err := listPackage(ctx, tools, base, arg, flags)
	if e, ok := withoutFiles(err); ok {
		return nil, e
	}
	if err != nil {
		return nil, errorf("check the import path, or give it as path@version", "%v", err)
	}
	l := &located{dir: base, args: []string{arg}, pkg: p.Dir, name: programName(arg), tools: tools}
	if tools.inModuleCache(p.Dir) {
		err = l.borrow(ctx, c, p)
	}
	return l, err
}

// programName returns the name that go build gives the program: the last element of the import path that is
// not a major version.
func programName(importPath string) string {
	importPath, _, _ = strings.Cut(importPath, "@")
	base := filepath.Base(importPath)
	if rest, ok := strings.CutPrefix(base, "v"); ok && strings.Trim(rest, "0123456789") == "" && rest != "" && base != importPath {
		return filepath.Base(filepath.Dir(importPath))
	}
	return base
}
