// Package efi writes a bootable program as an application of UEFI firmware: a PE file, which firmware loads from a disk or
// a CD. The application has two sections. One is the loader, code that loader.go assembles. The other has the segments of
// the program.
//
// The loader runs in these steps:
//
//  1. It allocates memory below 4 GiB. The program does not run at the address for which it was linked, because firmware
//     uses memory there: on QEMU, memory at 8 MiB that the program must not overwrite.
//  2. It copies the segments, and fills the page tables of package boot.
//  3. It copies the configuration table, in which the kernel finds the ACPI tables.
//  4. It reads the memory map and ends the boot services.
//  5. It switches to the new page tables, without paging in between, because firmware may use five levels. Then it enters
//     the program (boot.ParseEFI).
//
// If a step before the end of the boot services fails, the loader writes a line to the console of the firmware, and returns
// to it.
//
// Sources: UEFI Specification 2.10; Microsoft, PE Format; Intel SDM volume 3, chapters 4 and 10.
package efi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"loam/boot"
)

// ErrNotBootable is returned for a file that package image has not prepared.
var ErrNotBootable = errors.New("efi: not a program that a virtual machine boots")

const pageSize = 4096

// most is an upper bound of the physical addresses of a program: package image has the same limit. So all displacements in the
// loader have 31 bits.
const most = 1 << 30

// program is a program, as the loader needs it. Addresses are relative to the program's first byte in memory.
type program struct {
	entry    uint64 // virtual address of the entry point in 64-bit mode
	size     uint64 // bytes of memory
	tables   uint64 // address of the page tables
	segments []segment
	data     []byte // contents of all segments
}

// segment is a part of the program that is copied to memory.
type segment struct {
	at   uint64 // address of the copy
	from uint64 // offset in data
	size uint64
}

// Application returns the application for a program: an ELF file that package image has prepared. The error wraps
// ErrNotBootable.
func Application(file []byte) ([]byte, error) {
	p, err := parse(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBootable, err)
	}
	return p.pe(), nil
}

// parse reads the segments of an ELF file.
func parse(file []byte) (*program, error) {
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &program{entry: f.Entry}
	for _, s := range f.Progs {
		if s.Type != elf.PT_LOAD {
			continue
		}
		if s.Filesz > uint64(len(file)) || s.Filesz > s.Memsz || s.Paddr < boot.Load || s.Paddr > most || s.Memsz > most-s.Paddr {
			return nil, fmt.Errorf("a segment of %d bytes at %#x", s.Memsz, s.Paddr)
		}
		at := s.Paddr - boot.Load
		if s.Vaddr >= boot.Image {
			p.tables = max(p.tables, at+s.Memsz)
		}
		p.size = max(p.size, at+s.Memsz)
		p.segments = append(p.segments, segment{at, uint64(len(p.data)), s.Filesz})
		b := make([]byte, s.Filesz)
		if _, err := io.ReadFull(s.Open(), b); err != nil {
			return nil, err
		}
		p.data = append(p.data, b...)
	}
	if p.tables%pageSize != 0 || p.tables < (boot.TablePages+1)*pageSize || p.entry < boot.Text {
		return nil, errors.New("it has no page tables")
	}
	p.tables -= boot.TablePages * pageSize
	p.size = (p.size + pageSize - 1) &^ (pageSize - 1)
	return p, nil
}

// The file: a header, and two sections. Sections are aligned to pages in memory and to sectors in the file.
const (
	headerSize = sector
	sector     = 512
	codeAt     = pageSize // address of the loader, relative to the start of the application in memory
)

// pe returns the PE file.
func (p *program) pe() []byte {
	code := p.loader()
	dataAt := codeAt + align(len(code), pageSize)
	const section, sections = 40, 2
	le := binary.LittleEndian

	b := make([]byte, headerSize, headerSize+align(len(code), sector)+align(len(p.data), sector))
	copy(b, "MZ")
	const pe = 64 // offset of the PE header
	le.PutUint32(b[60:], pe)
	copy(b[pe:], "PE\x00\x00")
	const optionalSize = 240
	coff := b[pe+4:]
	le.PutUint16(coff, 0x8664) // x86-64
	le.PutUint16(coff[2:], sections)
	le.PutUint16(coff[16:], optionalSize)
	le.PutUint16(coff[18:], 0x22) // executable; addresses above 2 GiB are allowed

	optional := coff[20:]
	le.PutUint16(optional, 0x20b) // PE32+
	le.PutUint32(optional[4:], uint32(align(len(code), sector)))
	le.PutUint32(optional[8:], uint32(align(len(p.data), sector)))
	le.PutUint32(optional[16:], codeAt) // entry point
	le.PutUint32(optional[20:], codeAt)
	le.PutUint32(optional[32:], pageSize)
	le.PutUint32(optional[36:], sector)
	le.PutUint32(optional[56:], uint32(dataAt+align(len(p.data), pageSize)))
	le.PutUint32(optional[60:], headerSize)
	le.PutUint16(optional[68:], 10)  // subsystem: an application of UEFI
	le.PutUint32(optional[108:], 16) // number of data directories: all are empty

	const readable, executable, hasCode, hasData = 0x4000_0000, 0x2000_0000, 0x20, 0x40
	header := optional[optionalSize:]
	for _, s := range []struct {
		name  string
		at    int
		data  []byte
		flags uint32
	}{
		{".text", codeAt, code, readable | executable | hasCode},
		{".data", dataAt, p.data, readable | hasData},
	} {
		copy(header, s.name)
		le.PutUint32(header[8:], uint32(len(s.data)))
		le.PutUint32(header[12:], uint32(s.at))
		le.PutUint32(header[16:], uint32(align(len(s.data), sector)))
		le.PutUint32(header[20:], uint32(len(b)))
		le.PutUint32(header[36:], s.flags)
		header = header[section:]
		b = append(b, s.data...)
		b = append(b, make([]byte, align(len(s.data), sector)-len(s.data))...)
	}
	return b
}

// align rounds up to a multiple of a unit.
func align(n, unit int) int { return (n + unit - 1) / unit * unit }
