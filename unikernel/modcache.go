package unikernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Programs whose source lies in the module cache. The go command does not overlay files there, so the module is copied and a
// replace line substitutes the copy. The build is the same, except for the file added to the main package.

// listed is the output of go list for a package.
type listed struct {
	Dir, ImportPath, Name string
	Module                *struct{ Path, Version, Dir, Sum string }
}

// listPackage returns the package that arg names. flags are the build flags that select its files.
func listPackage(ctx context.Context, t *toolchain, dir, arg string, flags []string) (listed, error) {
	var p listed
	args := append([]string{"list", "-find", "-json=Dir,ImportPath,Name,Module"}, flags...)
	out, err := t.run(ctx, dir, append(args, arg)...)
	if err != nil {
		return p, err
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	if err := d.Decode(&p); err != nil {
		return p, err
	}
	if d.More() {
		return p, errorf("name one", "%s is several packages", arg)
	}
	return p, nil
}

// locateVersion resolves path@version in a module created for it, as `go install path@version` does, but
// with replace lines: see replacement.go.
func locateVersion(ctx context.Context, c cache, arg string, flags []string) (*located, error) {
	dir := c.path("module", digest(arg, "with replacements"))
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	tools, err := findToolchain(ctx, c, dir)
	if err != nil {
		return nil, err
	}
	pkg, version, _ := strings.Cut(arg, "@")
	gomod := filepath.Join(dir, "go.mod")
	if _, err := os.Stat(gomod); err != nil || !isExact(version) {
		if err := getModule(ctx, tools, dir, arg); err != nil {
			os.RemoveAll(dir)
			var e *Error
			if !errors.As(err, &e) {
				return nil, err
			}
			return nil, errorf(cmp.Or(e.Next, nextFor(e.What, pkg)), "%s", e.What)
		}
		if tools, err = findToolchain(ctx, c, dir); err != nil { // the module's go.mod may require another toolchain
			return nil, err
		}
	}
	p, err := listPackage(ctx, tools, dir, pkg, flags)
	if err != nil {
		return nil, err
	}
	l := &located{dir: dir, args: []string{pkg}, pkg: p.Dir, name: programName(pkg), tools: tools}
	if !tools.inModuleCache(p.Dir) { // the copy has already replaced the module
		return l, nil
	}
	return l, l.borrow(ctx, c, p)
}

// nextFor returns the user's next step for an error of the go command about pkg, or about a module that pkg's module
// requires.
func nextFor(complaint, pkg string) string {
	for p := pkg; strings.Contains(p, "/"); p = path.Dir(p) {
		if strings.Contains(complaint, p) {
			return "check the path and the version"
		}
	}
	return "its module requires that, and cannot be built without: try another version of it"
}

// isExact reports whether a version is complete, such as v1.2.3, and so always denotes the same commit.
func isExact(version string) bool {
	return strings.HasPrefix(version, "v") && strings.Count(version, ".") == 2
}

// getModule creates a module in dir that requires arg. Other processes may be building in dir, so existing
// files are replaced only when the new ones are complete.
func getModule(ctx context.Context, t *toolchain, dir, arg string) error {
	fresh, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := writeFile(filepath.Join(fresh, "go.mod"), []byte("module guest.invalid\n")); err != nil {
		return err
	}
	pkg, version, _ := strings.Cut(arg, "@")
	if err := takeReplacements(ctx, t, fresh, pkg, version); err != nil {
		return err
	}
	if _, err := t.run(ctx, fresh, "get", arg); err != nil {
		return err
	}
	for _, name := range moduleFiles {
		if err := copyFile(filepath.Join(fresh, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// moduleFiles are the files that describe a module.
var moduleFiles = []string{"go.mod", "go.sum"}

// copyFile copies a file atomically, as writeFile does. A missing file is not an error.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return writeFile(to, data)
}

// borrow changes l so that the program is built from a copy of the module that contains the package p. The
// build also uses a changed copy of the go.mod in effect, and the original stays unchanged.
func (l *located) borrow(ctx context.Context, c cache, p listed) error {
	if p.Module == nil || p.Module.Dir == "" {
		return errorf("give it as path@version", "%s is in no module", p.ImportPath)
	}
	if w := l.tools.GOWORK; w != "" && w != "off" {
		return errorf("give it as path@version", "%s is outside the workspace %s", p.ImportPath, w)
	}
	copied := c.path("module", digest(p.Module.Path, p.Module.Version, "source"))
	err := c.fill(copied, func(dir string) error { return copyModule(p.Module.Dir, dir, p.Module.Path) })
	if err != nil {
		return err
	}
	modfile, err := l.replaceModule(ctx, c, p.Module.Path, copied)
	if err != nil {
		return err
	}
	l.borrowed, l.copied = p.Module.Path+" "+p.Module.Sum, copied
	l.flags = append(l.flags, "-modfile="+modfile, "-mod=mod")
	rel, err := filepath.Rel(p.Module.Dir, p.Dir)
	l.pkg = filepath.Join(copied, rel)
	return err
}

// replaceModule creates a copy of the go.mod in effect with a replace line from a module to a folder, and returns its path.
// There is one copy for each content of that go.mod. It appears atomically, since others may be building with it.
func (l *located) replaceModule(ctx context.Context, c cache, path, folder string) (string, error) {
	from := filepath.Dir(l.tools.GOMOD)
	key := []string{l.tools.GOMOD, path, folder}
	for _, name := range moduleFiles {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		key = append(key, string(data))
	}
	dir := c.path("module", digest(key...))
	return filepath.Join(dir, moduleFiles[0]), c.fill(dir, func(dir string) error {
		for _, name := range moduleFiles {
			if err := copyFile(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		_, err := l.tools.run(ctx, l.dir, "mod", "edit", "-replace", path+"="+folder, filepath.Join(dir, moduleFiles[0]))
		return err
	})
}

// leavesOutReplacements reports whether l is built from a copy of a module with replace lines that name a folder.
func (l *located) leavesOutReplacements(ctx context.Context) bool {
	if l.copied == "" {
		return false
	}
	_, folders, err := replacements(ctx, l.tools, l.copied, "go.mod")
	return err == nil && folders > 0
}

// copyModule copies a module's source, which is read-only in the cache. It adds a go.mod to modules that have none.
func copyModule(from, to, path string) error {
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(to, "go.mod")); err != nil {
		return os.WriteFile(filepath.Join(to, "go.mod"), []byte("module "+path+"\n"), 0o644)
	}
	return nil
}
