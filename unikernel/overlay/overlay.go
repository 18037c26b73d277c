// Package overlay makes the files that `go build -overlay` puts in the place of
// files of the standard library, so that a program built with the stock
// toolchain calls Loam instead of Linux.
//
// Nothing of Go's source is kept in Loam's tree. Files are made from the
// installed GOROOT by the edit rules in rules.go, each of which is checked
// against what it finds (edit.go); files of our own, in _std, are added, and those in
// _process for programs that run as a process, in _vm for those in a virtual machine. A
// release of Go that is not in rules.go, or one that does not look as expected, is
// refused.
//
// The files in _std refer to functions of loam/unikernel/rt by go:linkname.
// Their pairs there say what each must do.
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

// ErrUnknownGo is what Generate returns for a release of Go that it has no
// rules for, or whose source does not look as its rules say.
var ErrUnknownGo = errors.New("this release of Go is not one that Loam knows")

// Files maps a path below GOROOT/src, with slashes, to what is to be found there.
type Files map[string][]byte

// Part is a part of the overlay.
type Part int

// Parts.
const (
	Personality Part = 1 << iota // system calls are Loam's
	Ring0                        // the program is a kernel: what is left of them are calls of functions
)

// Generate makes the overlay of the standard library below goroot. The version
// is the toolchain's, as `go env GOVERSION` prints it.
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

// checkShapes is an error if a file is not as ours expect it.
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

// addOurs adds the files of a folder here.
func (files Files) addOurs(folder string) error {
	return fs.WalkDir(added, folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[strings.TrimPrefix(path, folder+"/")], err = added.ReadFile(path)
		return err
	})
}

// byFile groups rules by the file that they edit. Of a file to which only fields are added
// there are none.
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

// InitOrderFile is where InitOrder's file belongs.
const InitOrderFile = "runtime/loam_initorder.go"

// InitOrder is the file that tells the runtime which packages to initialise
// before all others: packages must be closed under imports.
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
