package unikernel

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Plan is how a program is built for Loam: with the stock go command, and an
// overlay that gives the standard library its edits, Loam's packages, and the
// main package one more file.
type Plan struct {
	// Program is where the executable is put.
	Program string

	target  Target
	at      *located
	dir     string            // of the plan, in the cache
	replace map[string]string // the overlay
}

// The names of the files that are added to the package. A test gets it in its
// external test package, which may import what imports the package.
const (
	mainFile = "loam_guest_main.go"
	testFile = "loam_guest_test.go"
)

// NewPlan finds the target and prepares everything but the build itself.
func NewPlan(ctx context.Context, t Target) (*Plan, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	at, err := locate(ctx, c, t)
	if err != nil {
		return nil, err
	}
	checkout, err := inCheckout(ctx, at)
	if err != nil {
		return nil, err
	}
	s, err := prepareStd(ctx, c, at.tools, checkout)
	if err != nil {
		return nil, err
	}
	p := &Plan{target: t, at: at, replace: s.replace}
	pkg, name := "main", mainFile
	var tested listed
	if t.Test {
		if tested, err = listPackage(ctx, at.tools, at.dir, at.args[0]); err != nil {
			return nil, err
		}
		pkg, name = tested.Name+"_test", testFile
	}
	key := []string{s.hash, at.dir, at.pkg, at.tools.GOFLAGS, os.Getenv("GOEXPERIMENT"), name}
	key = append(append(append(key, at.args...), at.flags...), t.Flags...)
	p.dir = c.path("build", digest(key...))
	p.Program = filepath.Join(p.dir, at.name)
	if t.Test {
		if err := s.adjustFirst(ctx, at.tools, p.dir, tested); err != nil {
			return nil, err
		}
	}
	added := filepath.Join(p.dir, name)
	p.replace[filepath.Join(at.pkg, name)] = added
	return p, writeFile(added, []byte("package "+pkg+"\n\nimport _ \""+runtimePackage+"\"\n"))
}

// inCheckout reports whether the program is of Loam's own module: then Loam's
// packages are those of that module, and not added to the standard library,
// where they would be in one another's way.
func inCheckout(ctx context.Context, at *located) (bool, error) {
	if w := at.tools.GOWORK; w != "" && w != "off" {
		out, err := at.tools.run(ctx, at.dir, "list", "-m")
		for _, m := range strings.Fields(string(out)) {
			if m == module {
				return true, nil
			}
		}
		return false, err
	}
	return moduleOf(at.tools.GOMOD) == module, nil
}

// moduleOf reads the module line of a go.mod; empty if there is none.
func moduleOf(gomod string) string {
	f, err := os.Open(gomod)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == "module" {
			return strings.Trim(f[1], "\"`")
		}
	}
	return ""
}
