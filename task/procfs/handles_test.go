package procfs

import (
	"fmt"
	"testing"

	"loam/fs"
)

// many is a process with regions regions, each a line of smaps. It counts the lines that it generates.
type many struct {
	Process
	regions   uint64
	generated int
	measured  int // calls of Sizes
	inspected int // calls of MayInspect
}

func (m *many) PID() int              { return 7 }
func (m *many) Stat(int) (Stat, bool) { return *sample(), true }

func (m *many) MayInspect(fs.Caller) bool { m.inspected++; return true }
func (m *many) Sizes(*Stat)               { m.measured++ }

func (m *many) Smaps(from uint64, size int) (text []byte, next uint64) {
	for ; from < m.regions; from++ {
		if len(text) >= size {
			return text, from
		}
		m.generated++
		text = fmt.Appendf(text, "%07d\n", from)
	}
	return text, 0
}

// lone is a Source with one process.
type lone struct {
	Source
	process Process
}

func (l lone) Process(int) Process { return l.process }

// open returns the open file with a name.
func (m *many) open(name string) *textHandle {
	n := node{in: New(Config{Source: lone{process: m}}), pid: 7, tid: 7}
	for _, e := range entries {
		if e.name == name {
			n.what = e
		}
	}
	return &textHandle{handle: handle{node: n}}
}

// The sizes of the memory, for which all pages are visited, are computed only for the files that contain them.
func TestSizesOnDemand(t *testing.T) {
	for name, want := range map[string]int{"smaps": 0, "comm": 0, "limits": 0, "status": 1, "stat": 1, "statm": 1} {
		p := &many{regions: 1000}
		h := p.open(name)
		for i := range 10 {
			if _, err := h.ReadAt(make([]byte, 8), int64(8*i)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p.measured != want {
			t.Errorf("ten reads of %s compute the sizes %d times, want %d", name, p.measured, want)
		}
		if (name == "status" || name == "statm") && p.inspected != 0 {
			t.Errorf("reads of %s, which is the same for all readers, check %d times whether the reader may trace the process", name, p.inspected)
		}
	}
}

// A read of smaps generates only the text that it returns: programs with thousands of mappings would otherwise wait for
// each other, because the map is locked meanwhile.
func TestSmapsInParts(t *testing.T) {
	p := &many{regions: 1000}
	h := p.open("smaps")
	b := make([]byte, 16)
	for range 2 { // the second time, the file is rewound
		p.generated = 0
		if got, err := h.ReadAt(b, 0); got != len(b) || err != nil || string(b) != "0000000\n0000001\n" {
			t.Fatalf("read returns %d, %v: %q", got, err, b)
		}
		if p.generated > 3 {
			t.Errorf("a read of two lines generates %d", p.generated)
		}
	}
	if n, err := h.ReadAt(b, 16); n != len(b) || err != nil || string(b) != "0000002\n0000003\n" {
		t.Errorf("the next read returns %d, %v: %q", n, err, b)
	}
	if n, err := h.ReadAt(b, 8*998+4); n != 12 || err != nil || string(b[:n]) != "998\n0000999\n" {
		t.Errorf("the read at the end returns %d, %v: %q", n, err, b[:n])
	}
	if n, err := h.ReadAt(b, 8000); n != 0 || err != nil {
		t.Errorf("the read after the end returns %d, %v", n, err)
	}
	p.generated = 0
	var whole []byte
	for n := len(b); n == len(b); { // a size that is no multiple of a line
		n, _ = h.ReadAt(b[:13], int64(len(whole)))
		whole = append(whole, b[:n]...)
		n += len(b) - 13
		if len(h.text) > 32 {
			t.Fatalf("%d bytes of text are kept", len(h.text))
		}
	}
	if want, _ := (&many{regions: 1000}).Smaps(0, 1<<20); string(whole) != string(want) || p.generated != 1000 {
		t.Errorf("%d bytes are read, want %d; %d lines were generated", len(whole), len(want), p.generated)
	}
	if n, err := h.ReadAt(b, 16); n != len(b) || err != nil || string(b) != "0000002\n0000003\n" {
		t.Errorf("a read of an earlier offset returns %d, %v: %q", n, err, b)
	}
}
