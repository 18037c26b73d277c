package procfs

import (
	"fmt"
	"strings"
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
	return &textHandle{handle: handle{node: n, memory: m}}
}

// busy is a process with one open file. It counts how often the lines of fdinfo that depend on the kind of the file are generated.
type busy struct {
	many
	extra int
}

func (b *busy) Owner() (uid, gid uint32, dumpable bool) { return 0, 0, true }

func (b *busy) Descriptors() []int { return []int{3} }

func (b *busy) Descriptor(int) (Descriptor, bool) {
	return Descriptor{Name: "/file", Extra: func() string { b.extra++; return "lock:\t1\n" }}, true
}

func (b *busy) AccessOf(int) (int, bool) { return 0, true }

// The lines of fdinfo that depend on the kind of the file, such as its locks, are generated only by a read of that file.
func TestExtraOnDemand(t *testing.T) {
	p := &busy{}
	n := node{in: New(Config{Source: lone{process: p}}), pid: 7, tid: 7, fd: -1}
	for _, what := range []*entry{descriptors, descriptions} {
		n.what = what
		d := dirNode{n}
		f, err := d.Lookup("3")
		if err != nil {
			t.Fatal(err)
		}
		f.Attr()
		if link, ok := f.(magicNode); ok {
			if to, err := link.TargetFor(&fs.View{}); to != "/file" || err != nil {
				t.Errorf("the link leads to %q, %v", to, err)
			}
		}
	}
	if p.extra != 0 {
		t.Errorf("the lines were generated %d times", p.extra)
	}
	n.what, n.fd = description, 3
	b := make([]byte, 100)
	if size, err := (&textHandle{handle: handle{node: n, memory: p}}).ReadAt(b, 0); err != nil || !strings.HasSuffix(string(b[:size]), "\nlock:\t1\n") || p.extra != 1 {
		t.Errorf("fdinfo: %q, %v, generated %d times", b[:size], err, p.extra)
	}
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
