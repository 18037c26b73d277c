package unikernel

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loam/unikernel/linked"
)

// The linked program is checked before it is started. A program does not work on Loam if it uses C libraries or
// replaces parts of the runtime; the message names the package that does. The check does not protect the host:
// package sandbox and QEMU do.

// checkLinked returns an error if Loam does not start a linked program. The error calls the program by the text what.
func checkLinked(program, what string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	err = linked.Check(f)
	var libraries *linked.Libraries
	if errors.As(err, &libraries) {
		return errorf("a package that it imports calls C without cgo, as github.com/ebitengine/purego does, and programs on Loam have no C",
			"%s is linked with %s", what, strings.Join(libraries.Names, ", "))
	}
	return err
}

// refuse turns an error of checkLinked into a message for the user, which names the responsible package.
func (p *Plan) refuse(ctx context.Context, err error) error {
	var c *linked.Complaint
	if !errors.As(err, &c) {
		return err
	}
	const next = "leave that package out: it was made to run outside of Loam"
	pkg := p.definer(ctx, c)
	if pkg == "" {
		pkg = "a package that it imports"
	}
	return errorf(next, "%s is not started: in %s, %v", p.what(), pkg, c)
}

// definer returns the linked package that defines the symbol or file of a complaint. It compares the
// complaint's file, or searches the source for the symbol. The result is empty if no package matches.
func (p *Plan) definer(ctx context.Context, c *linked.Complaint) string {
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, p.at.flags...)
	out, err := p.at.tools.run(ctx, p.at.dir, append(append(args, p.target.choosing()...), withoutMainFile(p.at.args)...)...)
	if err != nil {
		return ""
	}
	word := c.Symbol[strings.LastIndexAny(c.Symbol, "./ ")+1:]
	if strings.HasPrefix(c.Symbol, "a segment") {
		word = "cgo_import_dynamic"
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if path == "" {
			continue
		}
		if c.File != "" && filepath.Dir(c.File) == dir || c.File == "" && mentions(dir, word) {
			return "package " + path
		}
	}
	return ""
}

// withoutMainFile removes mainFile, which exists only in the overlay and is unknown to go list.
func withoutMainFile(args []string) (rest []string) {
	for _, a := range args {
		if a != mainFile {
			rest = append(rest, a)
		}
	}
	return rest
}

// mentions reports whether a source file in a folder contains a word.
func mentions(dir, word string) bool {
	for _, pattern := range []string{"*.go", "*.s"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern)) // fails only for a malformed pattern
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(text), word) {
				return true
			}
		}
	}
	return false
}

// checkedProgram returns the name of the file that records that a program has been checked.
func checkedProgram(program string) string { return program + ".checked" }

// identity returns a text that changes when a program is linked again.
func identity(program string) string {
	st, err := os.Stat(program)
	if err != nil {
		return ""
	}
	return fmt.Sprint(st.Size(), " ", st.ModTime().UnixNano())
}

// check checks the linked program, unless this same executable has been checked already.
func (p *Plan) check(ctx context.Context) error {
	id := identity(p.Program)
	if last, err := os.ReadFile(checkedProgram(p.Program)); err == nil && string(last) == id {
		return nil
	}
	if err := checkLinked(p.Program, p.what()); err != nil {
		return p.refuse(ctx, err)
	}
	return writeFile(checkedProgram(p.Program), []byte(id))
}
