package linked

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
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
	found := make(map[string]int, len(names))
	for _, name := range names {
		found[name] = 0
	}
	var places []Place
	var failed error
	err := eachFunction(f, section.Addr, func(function []byte, start, end uint64) {
		name := bytes.TrimSuffix(function, []byte(".abi0"))
		if _, wanted := found[string(name)]; !wanted || failed != nil {
			return
		}
		var after []uint64
		after, failed = syscallsIn(section, start, end)
		for _, at := range after {
			found[string(name)]++
			places = append(places, Place{string(name), section.Addr + at})
		}
	})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	for name, n := range found {
		if n > 0 {
			continue
		}
		return nil, fmt.Errorf("%w: it makes no system call in %s", ErrProgram, name)
	}
	return places, nil
}

// mostCode is more than the size of any function that makes system calls, in bytes.
const mostCode = 1 << 20

// syscallsIn returns the offsets behind the SYSCALL instructions in a range of a section.
func syscallsIn(section *elf.Section, start, end uint64) (after []uint64, err error) {
	if start > end || end-start > mostCode || section.ReaderAt == nil {
		return nil, fmt.Errorf("%w: a function at %#x has no code", ErrProgram, start)
	}
	code := make([]byte, end-start)
	if _, err := section.ReadAt(code, int64(start)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	for at := 0; ; {
		i := bytes.Index(code[at:], syscallCode)
		if i < 0 {
			return after, nil
		}
		at += i + len(syscallCode)
		after = append(after, start+uint64(at))
	}
}
