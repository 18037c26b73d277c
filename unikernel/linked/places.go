package linked

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// Place is a SYSCALL instruction in a function, given by the address of the instruction after it. The kernel reports
// that address for a system call.
type Place struct {
	Name  string // name of the function, without the suffix of its calling convention
	After uint64
}

// syscallCode is the instruction SYSCALL.
var syscallCode = []byte{0x0f, 0x05}

// Places returns a Place for each occurrence of the two bytes of SYSCALL in the functions with the given names. It is
// an error if a name has none. Occurrences inside another instruction are included. That is harmless, since no system
// call can come from there.
func Places(f *elf.File, names []string) ([]Place, error) {
	section := f.Section(".text")
	if section == nil {
		return nil, fmt.Errorf("%w: it has no text", ErrProgram)
	}
	text, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	functions, err := Functions(f, section.Addr)
	if err != nil {
		return nil, err
	}
	found := make(map[string]int, len(names))
	for _, name := range names {
		found[name] = 0
	}
	var places []Place
	for _, fn := range functions {
		name := strings.TrimSuffix(fn.Name, ".abi0")
		if _, wanted := found[name]; !wanted || fn.Start > fn.End || fn.End > uint64(len(text)) {
			continue
		}
		for at, code := fn.Start, text[fn.Start:fn.End]; ; {
			i := bytes.Index(code, syscallCode)
			if i < 0 {
				break
			}
			found[name]++
			at, code = at+uint64(i)+2, code[i+2:]
			places = append(places, Place{name, section.Addr + at})
		}
	}
	for name, n := range found {
		if n > 0 {
			continue
		}
		return nil, fmt.Errorf("%w: it makes no system call in %s", ErrProgram, name)
	}
	return places, nil
}
