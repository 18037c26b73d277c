// Package overlay makes the files that `go build -overlay` substitutes for files of the standard library. A
// program built with the stock toolchain then calls Loam instead of Linux.
//
// Loam's tree contains no source of Go. Edited files are made from the installed GOROOT by the rules in
// rules.go; each rule is checked against the source that it edits (edit.go). Files of our own are added:
// those in _std to every program, those in _process to programs that run as a process, and those in _vm to
// programs in a virtual machine. A release of Go that is not in rules.go, or whose source differs from what
// the rules expect, is rejected.
//
// The files in _std refer to functions of loam/unikernel/rt by go:linkname. Those functions are documented
// in package rt.
package overlay

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:_std all:_process all:_vm
var added embed.FS

// ErrUnknownGo is returned by Generate for a release of Go without rules, and for one whose source does not
// match the rules.
var ErrUnknownGo = errors.New("this release of Go is not one that Loam knows")

// Files maps a slash-separated path below GOROOT/src to the content of the file.
type Files map[string][]byte

// Part is a set of parts of the overlay, which is the set of replaced and added files.
type Part int

// Values of Part: what the overlay changes in the standard library.
const (
	Personality Part = 1 << iota // system calls are served by Loam
	Ring0                        // the program is a kernel: remaining SYSCALL instructions become function calls
)

// Generate returns the overlay (replaced and added files) for the standard library below goroot. version
// is the toolchain's version, as `go env GOVERSION` prints it. The error wraps ErrUnknownGo if the release
// is not known or does not match the rules.
func Generate(goroot, version string, parts Part) (Files, error) {
	rel, ok := findRelease(version)
	if !ok {
		return nil, fmt.Errorf("%w: %s (known: %s)", ErrUnknownGo, version, Known())
	}
	files := Files{}
	var renames []rename
	if parts&Personality != 0 {
		renames = append(renames, rel.renames...)
		if err := files.addOurs("_std"); err != nil {
			return nil, err
		}
		if err := checkShapes(goroot); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrUnknownGo, version, err)
		}
	}
	if parts == Personality {
		renames = append(renames, processRenames...)
		if err := files.addOurs("_process"); err != nil {
			return nil, err
		}
	}
	if parts&Ring0 != 0 {
		renames = append(renames, machineRenames...)
		if err := files.addOurs("_vm"); err != nil {
			return nil, err
		}
		if err := files.addAssembly(goroot); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrUnknownGo, version, err)
		}
	}
	fields := rel.fields
	if parts&Personality == 0 {
		fields = nil
	}
	for name, group := range byFile(renames, fields) {
		src, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrUnknownGo, version, err)
		}
		if files[name], err = apply(name, group, fields, src); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrUnknownGo, version, err)
		}
	}
	return files, nil
}

// Read returns the files below GOROOT/src that Generate reads in addition to those that it edits.
func Read() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.file)
	}
	return names
}

// checkShapes returns an error if a file lacks text that Loam's code relies on.
func checkShapes(goroot string) error {
	for _, s := range shapes {
		src, err := os.ReadFile(filepath.Join(goroot, "src", filepath.FromSlash(s.file)))
		if err != nil {
			return err
		}
		if !bytes.Contains(src, []byte(s.text)) {
			return fmt.Errorf("%s: the text is not there on which Loam relies", s.file)
		}
	}
	return nil
}

// addOurs adds Loam's own files in an embedded folder, such as _std, to files.
func (files Files) addOurs(folder string) error {
	return fs.WalkDir(added, folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, folder+"/")], err = added.ReadFile(path)
		return err
	})
}

// byFile groups rules by the file that they edit. A file with added fields only has an empty group.
func byFile(rules []rename, fields []field) map[string][]rename {
	groups := map[string][]rename{}
	for _, f := range fields {
		groups[f.file] = nil
	}
	for _, r := range rules {
		groups[r.file] = append(groups[r.file], r)
	}
	return groups
}

// InitOrderFile is the path of InitOrder's file below GOROOT/src.
const InitOrderFile = "runtime/loam_initorder.go"

// InitOrder returns the file with the list of packages that the runtime initialises before all others.
// packages must be closed under imports.
func InitOrder(packages []string) []byte {
	sorted := slices.Clone(packages)
	slices.Sort(sorted)
	var b bytes.Buffer
	b.WriteString("package runtime\n\n")
	b.WriteString("// loamInitFirst is sorted. It holds Loam's packages and all that they import.\n")
	b.WriteString("var loamInitFirst = [...]string{\n")
	for _, p := range sorted {
		fmt.Fprintf(&b, "\t%q,\n", p)
	}
	b.WriteString("}\n")
	return b.Bytes()
}
