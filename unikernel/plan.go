package unikernel

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Plan describes how a program is built for Loam: with the stock go command and an overlay. The overlay
// edits the standard library, adds Loam's packages, and adds one file to the main package.
type Plan struct {
	// Program is the path of the executable.
	Program string

	target  Target
	at      *located
	dir     string            // folder of the plan in the cache
	replace map[string]string // content of the overlay: a path, and the file that replaces it
	flags   []string          // flags of the go command for compiling Loam's own packages
	starts  bool              // the program starts other programs: see children.go
}

// mainFile is the file that Loam adds to the main package of a program (by go build -overlay).
const mainFile = "loam_guest_main.go"

// importRoot returns the source of a file of package pkg that imports the platform's root package, and package children
// for a program that starts others.
func importRoot(pkg string, platform Platform, starts bool) []byte {
	text := "package " + pkg + "\n\nimport _ \"" + guestModule + platform.root() + "\"\n"
	if starts {
		text += "import _ \"" + guestModule + childrenPackage + "\"\n"
	}
	return []byte(text)
}

// NewPlan locates the target and prepares everything except the build itself. The error is an *Error if the
// user can act on it. It runs the go command, which may download modules.
func NewPlan(ctx context.Context, t Target) (*Plan, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	at, err := locate(ctx, c, t)
	if err != nil {
		return nil, err
	}
	s, err := prepareStd(ctx, c, at.tools, t.Source, t.Platform)
	if err != nil {
		return nil, err
	}
	key := []string{t.Platform.String(), s.hash, at.dir, at.pkg, at.tools.GOFLAGS, os.Getenv("GOEXPERIMENT")}
	key = append(append(append(key, at.args...), at.flags...), t.Flags...)
	p := &Plan{target: t, at: at, dir: c.path("build", digest(key...)), replace: s.replace, flags: s.flags}
	p.Program = filepath.Join(p.dir, at.name)
	p.starts = t.Platform == Machine && knownToStart(p.Program)
	p.replace[filepath.Join(at.pkg, mainFile)] = filepath.Join(p.dir, mainFile)
	return p, p.writeMain()
}

// writeMain writes the file that is added to the main package.
func (p *Plan) writeMain() error {
	text := append(importRoot("main", p.target.Platform, p.starts), nameBorrowed(p.at.borrowed)...)
	return writeFile(filepath.Join(p.dir, mainFile), text)
}

// nameBorrowed returns source that sets loamBorrowed in the guest's runtime, so that rt/buildinfo.go can
// restore the original module.
func nameBorrowed(borrowed string) string {
	if borrowed == "" {
		return ""
	}
	return fmt.Sprintf("\nimport _ \"unsafe\"\n\n//go:linkname loamBorrowed runtime.loamBorrowed\nvar loamBorrowed = %q\n", borrowed)
}

// moduleOf returns the module path in a go.mod, or an empty string.
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
