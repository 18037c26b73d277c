// Package linked examines programs that the Go linker has produced: their functions, and signs of code that is not
// Go's. It never modifies a file, and it accepts any content without panicking.
//
// File functions.go lists functions, places.go finds the SYSCALL instructions of given functions, and check.go rejects
// programs that Loam does not start.
package linked

import (
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
)

// ErrProgram is returned for a file that is not a Go program for Linux on x86-64.
var ErrProgram = errors.New("not a program of Go for linux/amd64")

// Function is the name of a function and its range in the section .text.
type Function struct {
	Name       string
	Start, End uint64 // offsets in the section .text, in bytes
}

// Functions lists the functions of a program. It uses the symbol table or, if the program was linked without one
// (-ldflags=-s), the runtime's function table. text is the virtual address of .text.
func Functions(f *elf.File, text uint64) ([]Function, error) {
	var functions []Function
	if symbols, err := f.Symbols(); err == nil {
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value >= text && s.Size > 0 {
				functions = append(functions, Function{s.Name, s.Value - text, s.Value + s.Size - text})
			}
		}
		return functions, nil
	}
	table, err := lineTable(f, text)
	if err != nil {
		return nil, err
	}
	for _, fn := range table.Funcs {
		functions = append(functions, Function{fn.Name, fn.Entry - text, fn.End - text})
	}
	return functions, nil
}

// lineTable returns the runtime's table of functions and lines (.gopclntab).
func lineTable(f *elf.File, text uint64) (*gosym.Table, error) {
	section := f.Section(".gopclntab")
	if section == nil {
		return nil, fmt.Errorf("%w: it has no table of functions", ErrProgram)
	}
	lines, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	return table, nil
}
