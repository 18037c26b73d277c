// Package linked examines programs that the Go linker has produced: their functions, and signs of code that is not
// Go's. It never modifies a file, and it accepts any content without panicking.
//
// File functions.go lists functions, places.go finds the SYSCALL instructions of given functions, and check.go rejects
// programs that Loam does not start.
package linked

import (
	"debug/elf"
	"errors"
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
	var all []Function
	err := eachFunction(f, text, func(name []byte, start, end uint64) {
		all = append(all, Function{string(name), start, end})
	})
	return all, err
}

// eachFunction calls yield for the functions that Functions lists. start and end are offsets in the section .text.
func eachFunction(f *elf.File, text uint64, yield func(name []byte, start, end uint64)) error {
	ok, err := eachSymbol(f, func(s symbol) {
		if s.kind == elf.STT_FUNC && s.value >= text && s.size > 0 {
			yield(s.name, s.value-text, s.value+s.size-text)
		}
	})
	if ok && err == nil {
		return nil
	}
	table, err := readTable(f)
	if err != nil {
		return err
	}
	for i := range table.count {
		fn, err := table.at(i)
		if err != nil {
			return err
		}
		yield(fn.name, fn.start, fn.end)
	}
	return nil
}
