// Package image converts a program, as the Go linker writes it, into a file that a virtual machine monitor
// boots. The result is still the same ELF file, and nothing in it moves. Everything added lies in the first
// page. The linker leaves most of that page free, and it is loaded because a segment starts there. The
// additions are:
//
//	entry code   from 32-bit mode, in which monitors start a kernel, to the
//	             program's own entry point in 64-bit mode (entry.go)
//	a note       by which monitors find the entry code (PVH)
//	a header     by which boot loaders find it (Multiboot 2)
//
// The program is linked for the upper half of the address space but loaded low, so every segment gets its
// physical address.
//
// The last segment ends with zero-initialised variables, many MiB with crypto/rand. Variables that the
// kernel does not need before it can serve page faults are cut off from the segment. A program header of
// type boot.ZeroSegment describes them instead; it replaces PT_GNU_STACK, which has no meaning here. The
// entry code's page tables take their place.
package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"loam/boot"
)

// LinkFlags returns the flags for the Go linker: text in the upper half, and the entry point.
func LinkFlags() string {
	const text = boot.Text - 1<<64 // the flag -T expects a signed number
	return fmt.Sprintf("-T %d -R %d -E %s", int64(text), pageSize, entrySymbol)
}

// entrySymbol is the name of the entry point in 64-bit mode.
const entrySymbol = "runtime.loamStart"

// ErrNotProgram is returned for a file that the linker did not write with LinkFlags.
var ErrNotProgram = errors.New("image: not a program that was linked for a virtual machine")

const (
	pageSize = 1 << 12

	headerSize  = 64 // size of the header of a 64-bit ELF file, in bytes
	segmentSize = 56 // size of a program header
	sectionSize = 64 // size of a section header
)

// Offsets in an ELF program header.
const (
	segmentOffset   = 8
	segmentVirtual  = 16
	segmentPhysical = 24
	segmentInFile   = 32
	segmentInMemory = 40
)

// file is an ELF file that Prepare changes in place.
type file struct {
	data     []byte
	entry    uint64
	segments []segment
	free     uint64 // file offset where the free part of the first page starts
	note     uint64 // file offset where the free part ends and the linker's notes begin
}

// segment is a program header.
type segment struct {
	elf.ProgHeader
	raw []byte // the bytes of the header in the file
}

// Prepare changes data, a program, in place as the package comment describes. The error wraps ErrNotProgram
// if data is not suitable.
func Prepare(data []byte) error {
	f, err := parse(data)
	if err != nil {
		return err
	}
	tables, err := f.cutZeros()
	if err != nil {
		return err
	}
	for _, s := range f.segments {
		if s.Vaddr >= boot.Image {
			binary.LittleEndian.PutUint64(s.raw[segmentPhysical:], s.Vaddr-boot.Image)
		}
	}
	f.free = (f.free + 15) &^ 15
	at := boot.Load + f.free
	code := entryCode(uint32(at), uint32(tables-boot.Image), f.entry)
	header := (f.free + uint64(len(code)) + 7) &^ 7
	if header+boot.Multiboot2HeaderSize > f.note-pvhNoteSize {
		return fmt.Errorf("%w: its first page has no room", ErrNotProgram)
	}
	copy(f.data[f.free:], code)
	copy(f.data[header:], boot.Multiboot2Header(uint32(at+entryOffset)))
	f.addNote(uint32(at + entryOffset))
	return nil
}

// parse parses data and checks that Prepare can change it.
func parse(data []byte) (*file, error) {
	fail := func(why string, args ...any) (*file, error) {
		return nil, fmt.Errorf("%w: %s", ErrNotProgram, fmt.Sprintf(why, args...))
	}
	le := binary.LittleEndian
	if len(data) < pageSize || string(data[:7]) != "\x7fELF\x02\x01\x01" {
		return fail("no 64-bit ELF file")
	}
	if kind := elf.Type(le.Uint16(data[16:])); kind != elf.ET_EXEC || elf.Machine(le.Uint16(data[18:])) != elf.EM_X86_64 {
		return fail("%v for %v", kind, elf.Machine(le.Uint16(data[18:])))
	}
	f := &file{data: data, entry: le.Uint64(data[24:])}
	if f.entry < boot.Text {
		return fail("its entry is at %#x", f.entry)
	}
	programs, count := le.Uint64(data[32:]), uint64(le.Uint16(data[56:]))
	if programs > pageSize || programs+count*segmentSize > pageSize {
		return fail("its program headers are not in the first page")
	}
	for i := range count {
		raw := data[programs+i*segmentSize:][:segmentSize]
		f.segments = append(f.segments, segment{elf.ProgHeader{
			Type: elf.ProgType(le.Uint32(raw)), Flags: elf.ProgFlag(le.Uint32(raw[4:])),
			Off: le.Uint64(raw[segmentOffset:]), Vaddr: le.Uint64(raw[segmentVirtual:]),
			Paddr:  le.Uint64(raw[segmentPhysical:]),
			Filesz: le.Uint64(raw[segmentInFile:]), Memsz: le.Uint64(raw[segmentInMemory:]),
		}, raw})
	}
	f.free = programs + count*segmentSize
	for _, s := range f.segments {
		if s.Paddr != s.Vaddr {
			return fail("it has been prepared before")
		}
	}
	if sections := le.Uint64(data[40:]); sections < pageSize {
		f.free = max(f.free, sections+uint64(le.Uint16(data[60:]))*sectionSize)
	}
	note := f.find(elf.PT_NOTE)
	if note == nil || note.Off > pageSize || note.Off < f.free+pvhNoteSize {
		return fail("its notes are not at the end of the first page")
	}
	f.note = note.Off
	return f, nil
}

// find returns the first segment of a type, or nil.
func (f *file) find(t elf.ProgType) *segment {
	for i := range f.segments {
		if f.segments[i].Type == t {
			return &f.segments[i]
		}
	}
	return nil
}

// most is the size of the region that the entry code's page tables map at boot.Image, in bytes.
const most = 1 << 30

// cutZeros shortens the last segment, so that it ends after the variables that must exist at boot. The page tables of the
// entry code follow these variables, and cutZeros returns their virtual address.
func (f *file) cutZeros() (uint64, error) {
	var last *segment
	for i := range f.segments {
		s := &f.segments[i]
		if s.Type == elf.PT_LOAD && (last == nil || s.Vaddr > last.Vaddr) {
			last = s
		}
	}
	if last == nil || last.Flags&elf.PF_W == 0 || last.Vaddr < boot.Text || last.Vaddr+last.Memsz < last.Vaddr || last.Filesz > last.Memsz {
		return 0, fmt.Errorf("%w: its last segment holds no data", ErrNotProgram)
	}
	end := last.Vaddr + last.Memsz
	tables := pageEnd(end)
	spare := f.find(elf.PT_GNU_STACK)
	if spare != nil {
		tables = min(tables, pageEnd(f.needed(last)))
	}
	if max(end, tables+boot.TablePages*pageSize)-boot.Image > most || tables < last.Vaddr {
		return 0, fmt.Errorf("%w: it is larger than 1 GiB", ErrNotProgram)
	}
	if tables < end {
		le := binary.LittleEndian
		le.PutUint32(spare.raw, boot.ZeroSegment)
		le.PutUint64(spare.raw[segmentVirtual:], tables)
		le.PutUint64(spare.raw[segmentInMemory:], end-tables)
	}
	binary.LittleEndian.PutUint64(last.raw[segmentInMemory:], tables+boot.TablePages*pageSize-last.Vaddr)
	return tables, nil
}

// needed returns the virtual address after the variables that the kernel itself uses: its own variables, variables of the
// entry code, and variables of package runtime, which the kernel uses to print function names. Without a symbol table (-ldflags=-s) their
// addresses are unknown, and needed returns the end of the segment.
func (f *file) needed(last *segment) uint64 {
	end := last.Vaddr + last.Memsz
	program, err := elf.NewFile(bytes.NewReader(f.data))
	if err != nil {
		return end
	}
	symbols, err := program.Symbols()
	if err != nil || len(symbols) == 0 {
		return end
	}
	needed := last.Vaddr + last.Filesz
	for _, s := range symbols {
		ours := strings.HasPrefix(s.Name, "loam") || strings.HasPrefix(s.Name, "runtime.")
		if ours && s.Value >= last.Vaddr && s.Value < end {
			needed = max(needed, s.Value+min(s.Size, end-s.Value))
		}
	}
	return needed
}

// pageEnd rounds up to whole pages.
func pageEnd(addr uint64) uint64 { return (addr + pageSize - 1) &^ (pageSize - 1) }

// An ELF note of type 18 contains the 32-bit entry point (Xen, xen/include/public/elfnote.h,
// XEN_ELFNOTE_PHYS32_ENTRY).
const (
	pvhNoteSize = 20
	pvhNoteType = 18
)

// addNote inserts the PVH note before the linker's notes.
func (f *file) addNote(entry uint32) {
	le := binary.LittleEndian
	at := f.note - pvhNoteSize
	note := f.data[at:]
	le.PutUint32(note, 4) // size of the note's name in bytes
	le.PutUint32(note[4:], 4)
	le.PutUint32(note[8:], pvhNoteType)
	copy(note[12:], "Xen\x00")
	le.PutUint32(note[16:], entry)

	s := f.find(elf.PT_NOTE)
	le.PutUint64(s.raw[segmentOffset:], at)
	le.PutUint64(s.raw[segmentVirtual:], s.Vaddr-pvhNoteSize)
	le.PutUint64(s.raw[segmentPhysical:], s.Vaddr-pvhNoteSize-boot.Image)
	le.PutUint64(s.raw[segmentInFile:], s.Filesz+pvhNoteSize)
	le.PutUint64(s.raw[segmentInMemory:], s.Memsz+pvhNoteSize)
}
