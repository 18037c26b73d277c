package unikernel

import (
	"debug/elf"
	"strings"
)

// A package may have the linker join libraries of C to a program without cgo (the directive
// cgo_import_dynamic, of which github.com/ebitengine/purego is made). What is in them would
// start threads that Loam does not know and make system calls that it has shut: a
// process would end by SIGSYS without a word. A virtual machine has nobody to load them.

// withoutLibraries returns an error about a linked program that wants libraries of C; what
// names it for people.
func withoutLibraries(program, what string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil || len(names) == 0 {
		return err
	}
	return errorf("a package that it imports calls C without cgo, as github.com/ebitengine/purego does, and programs on Loam have no C",
		"%s is linked with %s", what, strings.Join(names, ", "))
}
