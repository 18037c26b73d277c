package unikernel

import (
	"bufio"
	"context"
	"fmt"
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
	flags   []string          // for Loam's own packages
}

// mainFile is the file that is added to the main package.
const mainFile = "loam_guest_main.go"

// importRoot is all that a file that is added to a package does. checkout is as for
// prepareStd.
func importRoot(pkg string, platform Platform, checkout string) []byte {
	from := guestModule
	if checkout != "" {
		from = module
	}
	return []byte("package " + pkg + "\n\nimport _ \"" + from + platform.root() + "\"\n")
}

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
	checkout := checkoutOf(at.tools, at.dir)
	s, err := prepareStd(ctx, c, at.tools, checkout, t.Platform)
	if err != nil {
		return nil, err
	}
	key := []string{t.Platform.String(), s.hash, at.dir, at.pkg, at.tools.GOFLAGS, os.Getenv("GOEXPERIMENT")}
	key = append(append(append(key, at.args...), at.flags...), t.Flags...)
	p := &Plan{target: t, at: at, dir: c.path("build", digest(key...)), replace: s.replace, flags: s.flags}
	p.Program = filepath.Join(p.dir, at.name)
	added := filepath.Join(p.dir, mainFile)
	p.replace[filepath.Join(at.pkg, mainFile)] = added
	return p, writeFile(added, append(importRoot("main", t.Platform, checkout), nameBorrowed(at.borrowed)...))
}

// nameBorrowed tells the runtime package of the guest of what the main package is a
// copy: see rt/buildinfo.go.
func nameBorrowed(borrowed string) string {
	if borrowed == "" {
		return ""
	}
	return fmt.Sprintf("\nimport _ \"unsafe\"\n\n//go:linkname loamBorrowed runtime.loamBorrowed\nvar loamBorrowed = %q\n", borrowed)
}

// checkoutOf returns dir if it is of Loam's own module, and else nothing. In a checkout
// Loam's packages are those of that module, and not added to the standard library. Others
// may have given their module the same name: it has not got these packages.
func checkoutOf(t *toolchain, dir string) string {
	if moduleOf(t.GOMOD) != module {
		return ""
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(t.GOMOD), filepath.FromSlash(processPackage))); err != nil {
		return ""
	}
	return dir
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
