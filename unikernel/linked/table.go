package linked

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// funcTable is the runtime's table of functions and lines, the section .gopclntab (runtime/symtab.go, internal/abi/symtab.go).
// Package debug/gosym reads it too, but allocates memory for each function: this took longer than the rest of a start.
type funcTable struct {
	names     []byte // names of functions
	units     []byte // for each compilation unit, offsets in files
	files     []byte // names of source files
	positions []byte // tables that map addresses to the number of a file in its unit
	functions []byte // nfunc entries, a final address, and then a record for each function
	count     int
}

// Layout of the table since Go 1.20. The numbers of the header are words of 8 bytes.
const (
	tableMagic  = 0xfffffff1
	tableHeader = 8 + 8*8
	entryBytes  = 8  // bytes of an entry: address of the function and offset of its record
	recordBytes = 36 // bytes of a record that are read here
	noFile      = 1<<32 - 1
)

// readTable reads the table of a program.
func readTable(f *elf.File) (*funcTable, error) {
	section := f.Section(".gopclntab")
	if section == nil {
		return nil, fmt.Errorf("%w: it has no table of functions", ErrProgram)
	}
	data, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	if len(data) < tableHeader || binary.LittleEndian.Uint32(data) != tableMagic || data[7] != 8 {
		return nil, errTable
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8+8*i:]) }
	var parts [5][]byte
	for i := range parts {
		at := word(3 + i)
		if at > uint64(len(data)) {
			return nil, errTable
		}
		parts[i] = data[at:]
	}
	t := &funcTable{parts[0], parts[1], parts[2], parts[3], parts[4], int(word(0))}
	if n := word(0); n > uint64(len(t.functions))/entryBytes || uint64(len(t.functions)) < n*entryBytes+4 {
		return nil, errTable
	}
	return t, nil
}

var errTable = fmt.Errorf("%w: its table of functions is damaged, or of an unknown release of Go", ErrProgram)

// function is an entry of the table. start and end are offsets in the section .text.
type function struct {
	name       []byte
	start, end uint64
	record     []byte
}

// at returns function i.
func (t *funcTable) at(i int) (function, error) {
	entry := t.functions[i*entryBytes:]
	start, record, end := binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:]), binary.LittleEndian.Uint32(entry[entryBytes:])
	if int(record) > len(t.functions)-recordBytes {
		return function{}, errTable
	}
	r := t.functions[record:][:recordBytes]
	return function{text(t.names, uint64(binary.LittleEndian.Uint32(r[4:]))), uint64(start), uint64(end), r}, nil
}

// fileOf returns the offset in files of the source file that contains the first instruction of a function. It is noFile if
// the compiler or the linker has generated the function.
func (t *funcTable) fileOf(f function) (uint32, error) {
	position, unit := binary.LittleEndian.Uint32(f.record[20:]), binary.LittleEndian.Uint32(f.record[32:])
	if position == 0 {
		return noFile, nil
	}
	if int(position) >= len(t.positions) {
		return 0, errTable
	}
	// The table of positions begins with the difference of the first number to -1, in zigzag encoding.
	number, n := binary.Varint(t.positions[position:])
	if n <= 0 {
		return 0, errTable
	}
	if number--; number < 0 {
		return noFile, nil
	}
	at := 4 * (uint64(unit) + uint64(number))
	if number > 1<<32 || at+4 > uint64(len(t.units)) {
		return 0, errTable
	}
	return binary.LittleEndian.Uint32(t.units[at:]), nil
}
