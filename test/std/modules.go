package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// The tests of well-known modules run like the standard library's, in a copy of each module,
// because some tests write files beside their source. The versions are fixed in modules.txt and do not
// appear in go.mod.

//go:embed modules.txt
var modulesText string

//go:embed modules-reasons.txt
var modulesReasonsText string

const modulesReport = "docs/modules.md"

// suite is the set of tests of a module that are run.
type suite struct {
	module, version string
	flags           []string // flags of go test
	patterns        []string // package patterns relative to the module's root
}

func (s suite) String() string { return s.module + "@" + s.version }

// readSuites reads lines of "module@version [-flag...] packages".
func readSuites(text string) ([]suite, error) {
	var list []suite
	for line := range entries(text) {
		f := strings.Fields(line)
		module, version, ok := strings.Cut(f[0], "@")
		s := suite{module: module, version: version}
		for _, word := range f[1:] {
			if word[0] == '-' {
				s.flags = append(s.flags, word)
			} else {
				s.patterns = append(s.patterns, word)
			}
		}
		if !ok || s.patterns == nil {
			return nil, fmt.Errorf("modules.txt: %q is no line of: module@version [-flag...] packages", line)
		}
		list = append(list, s)
	}
	return list, nil
}

// chosen returns the suites of the named modules, or all suites if none is named.
func chosen(suites []suite, modules []string) ([]suite, error) {
	if len(modules) == 0 {
		return suites, nil
	}
	var list []suite
	for _, m := range modules {
		n := len(list)
		for _, s := range suites {
			if s.module == m {
				list = append(list, s)
			}
		}
		if len(list) == n {
			return nil, fmt.Errorf("modules.txt has no module %q", m)
		}
	}
	return list, nil
}

// folder returns the path of the module's copy below dir.
func (s suite) folder(dir string) string {
	return filepath.Join(dir, "src", filepath.FromSlash(s.String()))
}

// fetch downloads the module and makes the copy, unless the copy exists.
func (s suite) fetch(ctx context.Context, dir string) error {
	to := s.folder(dir)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", s.String())
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Error != "" {
		return fmt.Errorf("%s: %w: %s", s, errors.Join(err, jsonErr), got.Error)
	}
	begun := to + ".begun"
	if err := os.RemoveAll(begun); err != nil {
		return err
	}
	if err := copyFolder(begun, got.Dir); err != nil {
		return err
	}
	if err := s.beModule(begun); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(begun, to)
}

// beModule adds a go.mod to a copy that has none because the module is older than Go modules.
func (s suite) beModule(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, "go.mod"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "module %s\n", s.module)
	return errors.Join(err, file.Close())
}

// copyFolder copies a folder of the module cache, and makes the copy writable.
func copyFolder(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name = filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(name, 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(name, data, info.Mode().Perm()|0o200)
	})
}

// environment returns the environment for building the tests of modules. -mod=mod is needed because
// some modules lack the checksums of dependencies of their tests.
func environment() []string { return append(withoutCgo(), "GOWORK=off", "GOFLAGS=-mod=mod") }

// packages returns the packages of the suite that have tests.
func (s suite) packages(ctx context.Context, dir string) ([]string, error) {
	args := []string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}
	cmd := exec.CommandContext(ctx, "go", append(args, s.patterns...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.folder(dir), environment(), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	return strings.Fields(string(out)), nil
}

// runModules runs the tests of the named modules, or of all, on both sides, and writes the report.
func (o *options) runModules(ctx context.Context) error {
	on, err := findPlatform(o.platform)
	if err != nil {
		return err
	}
	suites, err := readSuites(modulesText)
	if err != nil {
		return err
	}
	reasons, err := readReasons(modulesReasonsText, on.name)
	if err != nil {
		return err
	}
	suites, err = chosen(suites, o.patterns)
	if err != nil {
		return err
	}
	dir := o.from
	if dir == "" {
		if dir, err = o.folder(); err != nil {
			return err
		}
	}
	packages, err := o.runSuites(ctx, dir, on, suites, reasons)
	if err != nil {
		return fmt.Errorf("%w; -keep=%s goes on", err, dir)
	}
	return o.report(dir, on, packages, reasons, paper{modulesReport, modulesHead(on, suites, piecesOf(dir))})
}

// runSuites runs each suite on Loam and on Linux, except for those whose results are in dir already. It returns the
// packages of the suites.
func (o *options) runSuites(ctx context.Context, dir string, on platform, suites []suite, reasons []*reason) ([]string, error) {
	var command string
	if o.from == "" {
		made, remove, err := o.command(ctx, dir)
		if err != nil {
			return nil, err
		}
		defer remove()
		command = made
	}
	var all []string
	for _, s := range suites {
		if err := s.fetch(ctx, dir); err != nil {
			return nil, err
		}
		packages, err := s.packages(ctx, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, packages...)
		if o.from != "" {
			continue
		}
		for _, r := range bothSides(command, on, reasons) {
			r.dir, r.env, r.flags = s.folder(dir), environment(), s.flags
			if err := o.runSide(ctx, dir, r, packages); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// modulesHead returns the beginning of a report on modules.
func modulesHead(on platform, suites []suite, pieces int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tests of well-known modules on Loam, %s\n\nThis page is made by `go run ./test/std -modules%s with %s. It runs the tests of the modules below, without cgo,\non Loam %s and then on Linux, on one machine. Subtests are not counted. A test that this machine does not allow,\nfor example because it has no Internet access, fails or is skipped on both systems.\n\n| module | version | flags of go test | packages |\n|---|---|---|---|\n",
		on.title, inPieces(pieces), runtime.Version(), on.title)
	for _, s := range suites {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.module, s.version, strings.ReplaceAll(strings.Join(s.flags, " "), "|", "\\|"), strings.Join(s.patterns, " "))
	}
	return b.String() + "\n"
}
