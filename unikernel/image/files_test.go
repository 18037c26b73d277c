package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"testing"

	"loam/boot"
)

// Files lie page-aligned after the program, and nothing else has moved.
func TestAddFiles(t *testing.T) {
	before := prepared(t, built(t))
	files := bytes.Repeat([]byte("file"), 3000)
	end := End(before)
	after, err := AddFiles(append([]byte(nil), before...), files)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(after))
	if err != nil {
		t.Fatal(err)
	}
	r := boot.Files(after[:pageSize])
	if r.Start < end || r.Start%pageSize != 0 || r.Size() != uint64(len(files)) || End(after) != r.End {
		t.Errorf("files at %x, the program ends at %#x", r, end)
	}
	found := false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Paddr == r.Start {
			got, err := io.ReadAll(p.Open())
			found = err == nil && bytes.Equal(got, files)
		}
	}
	if !found {
		t.Error("no segment holds the files")
	}
	if !bytes.Equal(before[pageSize:], after[pageSize:len(before)]) {
		t.Error("the program has changed")
	}
	if _, err := AddFiles(after, files); !errors.Is(err, ErrNotProgram) {
		t.Errorf("a second time: %v", err)
	}
	if _, err := AddFiles(before, make([]byte, most)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("1 GiB: %v", err)
	}
}
