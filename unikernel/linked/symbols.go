package linked

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// symbol is an entry of the symbol table. name is a part of the string table, so that reading a table of 10,000 symbols
// allocates no memory for each.
type symbol struct {
	name    []byte
	kind    elf.SymType
	section elf.SectionIndex
	value   uint64
	size    uint64
}

// eachSymbol calls yield for each symbol of a 64-bit little-endian file. ok is false if the file has no symbol table.
func eachSymbol(f *elf.File, yield func(symbol)) (ok bool, err error) {
	section := f.SectionByType(elf.SHT_SYMTAB)
	if section == nil {
		return false, nil
	}
	table, err := section.Data()
	if err == nil && (section.Link == 0 || int(section.Link) >= len(f.Sections) || len(table)%elf.Sym64Size != 0) {
		err = ErrProgram
	}
	var names []byte
	if err == nil {
		names, err = f.Sections[section.Link].Data()
	}
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	const first = elf.Sym64Size // the first symbol is empty (gABI, Symbol Table)
	for at := first; at < len(table); at += elf.Sym64Size {
		b := table[at:][:elf.Sym64Size]
		yield(symbol{
			name: text(names, uint64(binary.LittleEndian.Uint32(b))), kind: elf.ST_TYPE(b[4]),
			section: elf.SectionIndex(binary.LittleEndian.Uint16(b[6:])),
			value:   binary.LittleEndian.Uint64(b[8:]), size: binary.LittleEndian.Uint64(b[16:]),
		})
	}
	return len(table) > 0, nil
}

// text returns the text that begins at an offset of a table. A zero byte ends each text of the table. If the offset is not in
// the table, the text is empty.
func text(table []byte, at uint64) []byte {
	if at >= uint64(len(table)) {
		return nil
	}
	before, _, _ := bytes.Cut(table[at:], []byte{0})
	return before
}
