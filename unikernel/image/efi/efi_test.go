package efi

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"errors"
	"testing"

	"loam/boot"
)

// Fields of the ELF files of these tests.
const (
	fileHeader    = 64
	segmentHeader = 56
	tableBytes    = boot.TablePages * pageSize
)

// prepared returns a small file, as package image prepares one: a segment with the program and its page tables, and one with
// files after it.
func prepared() []byte {
	b := make([]byte, 3*pageSize)
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[24:], boot.Text)
	le.PutUint64(b[32:], fileHeader)
	le.PutUint16(b[52:], fileHeader)
	le.PutUint16(b[54:], segmentHeader)
	le.PutUint16(b[56:], 2)
	for i, s := range []struct{ off, virtual, physical, inFile, inMemory uint64 }{
		{0, boot.Image + boot.Load, boot.Load, 2 * pageSize, 2*pageSize + tableBytes},
		{2 * pageSize, boot.Window + boot.Load + 2*pageSize + tableBytes, boot.Load + 2*pageSize + tableBytes, 100, 100},
	} {
		p := b[fileHeader+i*segmentHeader:]
		le.PutUint32(p, uint32(elf.PT_LOAD))
		le.PutUint32(p[4:], uint32(elf.PF_R))
		for n, v := range []uint64{s.off, s.virtual, s.physical, s.inFile, s.inMemory} {
			le.PutUint64(p[8+8*n:], v)
		}
	}
	for i := pageSize; i < len(b); i++ {
		b[i] = byte(i * 7)
	}
	return b
}

// The application is a PE file for UEFI, with the loader and all segments.
func TestApplication(t *testing.T) {
	file := prepared()
	b, err := Application(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := pe.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	h, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok || f.Machine != pe.IMAGE_FILE_MACHINE_AMD64 || h.Subsystem != pe.IMAGE_SUBSYSTEM_EFI_APPLICATION || f.TimeDateStamp != 0 {
		t.Errorf("header %+v %+v", f.FileHeader, f.OptionalHeader)
	}
	text, data := f.Section(".text"), f.Section(".data")
	if text == nil || data == nil || h.AddressOfEntryPoint != text.VirtualAddress {
		t.Fatalf("sections %v", f.Sections)
	}
	if end := data.VirtualAddress + data.VirtualSize; h.SizeOfImage < end || h.SizeOfImage%pageSize != 0 || text.VirtualAddress+text.VirtualSize > data.VirtualAddress {
		t.Errorf("the image has %#x bytes, its data ends at %#x", h.SizeOfImage, end)
	}
	got, err := data.Data()
	if err != nil || !bytes.HasPrefix(got, file[:2*pageSize+100]) {
		t.Errorf("%v; the segments are not in the file", err)
	}
	again, err := Application(file)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("%v; another application for the same program", err)
	}
}

// The description fits into its page, before the stack that the loader uses there.
func TestSwitchFits(t *testing.T) {
	const stack = 64
	if switchAt+switchSize > pageSize-stack {
		t.Errorf("the code ends at %d", switchAt+switchSize)
	}
}

// Files that package image has not prepared are refused.
func TestApplicationRefuses(t *testing.T) {
	le := binary.LittleEndian
	for name, spoil := range map[string]func(b []byte){
		"no ELF":                     func(b []byte) { b[1] = 'e' },
		"cut off":                    func(b []byte) { le.PutUint64(b[fileHeader+32:], 1<<20); le.PutUint64(b[fileHeader+40:], 1<<20) },
		"larger in the file":         func(b []byte) { le.PutUint64(b[fileHeader+40:], 1) },
		"too large":                  func(b []byte) { le.PutUint64(b[fileHeader+40:], 1<<40) },
		"too large with its address": func(b []byte) { le.PutUint64(b[fileHeader+segmentHeader+24:], most-50) },
		"too low":                    func(b []byte) { le.PutUint64(b[fileHeader+24:], 0) },
		"too high":                   func(b []byte) { le.PutUint64(b[fileHeader+24:], 1<<40) },
		"without page tables":        func(b []byte) { le.PutUint64(b[fileHeader+40:], 2*pageSize) },
		"with half of a table":       func(b []byte) { le.PutUint64(b[fileHeader+40:], 2*pageSize+tableBytes-8) },
		"an entry elsewhere":         func(b []byte) { le.PutUint64(b[24:], 0) },
	} {
		b := prepared()
		spoil(b)
		if _, err := Application(b); !errors.Is(err, ErrNotBootable) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// Application either converts a file or returns an error; it never panics.
func FuzzApplication(f *testing.F) {
	f.Add(prepared())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Application(b); err != nil && !errors.Is(err, ErrNotBootable) {
			t.Errorf("error %v", err)
		}
	})
}
