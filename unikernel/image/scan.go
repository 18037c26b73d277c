package image

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"slices"
)

// In ring 0 there is nobody whom a SYSCALL instruction could call but the kernel
// itself, which serves it by a trap (kernel/trapped.go). The standard library's are
// replaced when it is compiled; here is looked for what assembly of others has left.

// syscallCode is the instruction.
var syscallCode = []byte{0x0f, 0x05}

// Syscalls names the functions of a program that have a SYSCALL instruction. The
// bytes of one may also stand within another instruction: so functions that have
// them are taken apart from their beginning.
func Syscalls(program []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	section := f.Section(".text")
	if section == nil {
		return nil, fmt.Errorf("%w: it has no text", ErrNotProgram)
	}
	text, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	if !bytes.Contains(text, syscallCode) {
		return nil, nil
	}
	functions, err := readFunctions(f, section.Addr)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, fn := range functions {
		if fn.end > uint64(len(text)) || fn.start > fn.end {
			return nil, fmt.Errorf("%w: %s is not in its text", ErrNotProgram, fn.name)
		}
		if hasSyscall(text[fn.start:fn.end]) && !slices.Contains(names, fn.name) {
			names = append(names, fn.name)
		}
	}
	return names, nil
}

// hasSyscall reports whether a function has the instruction. Behind what cannot be
// taken apart its bytes are enough.
func hasSyscall(code []byte) bool {
	for bytes.Contains(code, syscallCode) {
		n := instructionLength(code)
		if n == 0 || bytes.HasSuffix(code[:n], syscallCode) && isSyscall(code[:n]) {
			return true
		}
		code = code[n:]
	}
	return false
}

// isSyscall reports whether an instruction that ends with the bytes of SYSCALL is
// one: nothing but prefixes stands in front.
func isSyscall(instruction []byte) bool {
	d := decoder{code: instruction}
	d.prefixes()
	return d.at == len(instruction)-len(syscallCode)
}

// function is where one is in the text.
type function struct {
	name       string
	start, end uint64
}

// readFunctions lists them, by the linker's table of symbols or, where a program was
// linked without (-ldflags=-s), by the runtime's.
func readFunctions(f *elf.File, text uint64) ([]function, error) {
	var functions []function
	if symbols, err := f.Symbols(); err == nil {
		for _, s := range symbols {
			if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value >= text && s.Size > 0 {
				functions = append(functions, function{s.Name, s.Value - text, s.Value + s.Size - text})
			}
		}
		return functions, nil
	}
	section := f.Section(".gopclntab")
	if section == nil {
		return nil, fmt.Errorf("%w: it has no table of functions", ErrNotProgram)
	}
	lines, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, text))
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	for _, fn := range table.Funcs {
		functions = append(functions, function{fn.Name, fn.Entry - text, fn.End - text})
	}
	return functions, nil
}
