package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"

	"loam/unikernel/linked"
)

// In ring 0 a SYSCALL instruction can only reach the kernel itself, which serves it as a trap (kernel/trapped.go). That
// is slow, so SYSCALL instructions of the standard library are replaced when it is compiled. This file finds the
// remaining ones, in assembly of other packages.

// syscallCode is the encoding of SYSCALL.
var syscallCode = []byte{0x0f, 0x05}

// Syscalls returns the names of a program's functions that contain a SYSCALL instruction. Its two bytes may
// also occur inside another instruction, so functions that contain them are disassembled from their start.
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
	functions, err := linked.Functions(f, section.Addr)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, fn := range functions {
		if fn.End > uint64(len(text)) || fn.Start > fn.End {
			return nil, fmt.Errorf("%w: %s is not in its text", ErrNotProgram, fn.Name)
		}
		if hasSyscall(text[fn.Start:fn.End]) && !slices.Contains(names, fn.Name) {
			names = append(names, fn.Name)
		}
	}
	return names, nil
}

// hasSyscall reports whether a function contains the instruction. After an instruction that cannot be
// decoded, any occurrence of the two bytes counts.
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

// isSyscall reports whether an instruction that ends with the bytes of SYSCALL is a SYSCALL: only prefixes
// precede them.
func isSyscall(instruction []byte) bool {
	d := decoder{code: instruction}
	d.prefixes()
	return d.at == len(instruction)-len(syscallCode)
}
