package boot

import "testing"

// tags returns physical memory with a list of tags at 0x1000. Each tag is its type and its words.
func tags(list ...[]uint32) []byte {
	m := make([]byte, 0x5000)
	b := make([]byte, 8)
	for _, t := range append(list, []uint32{tagEnd}) {
		b = le.AppendUint32(b, t[0])
		b = le.AppendUint32(b, uint32(4+4*len(t)))
		for _, v := range t[1:] {
			b = le.AppendUint32(b, v)
		}
		b = append(b, make([]byte, -len(b)&7)...)
	}
	le.PutUint32(b, uint32(len(b)))
	copy(m[0x1000:], b)
	return m
}

// memoryTag describes 4 MiB; a part of it is reserved.
var memoryTag = []uint32{tagMemory, 24, 0, 0, 0, 0x9fc00, 0, 1, 0, 0x9fc00, 0, 0x400, 0, 2, 0, 0x100000, 0, 0x300000, 0, 1, 0}

func TestParseMultiboot2(t *testing.T) {
	m := tags([]uint32{tagCommandLine, 0x6f632076, 0x006c6f}, []uint32{99, 1}, memoryTag, []uint32{tagModule, 0x2000, 0x2005, 0}, []uint32{tagModule, 0x3000, 0x3001, 0})
	var info Info
	if p := ParseMultiboot2(m, 0x1000, &info); p != "" {
		t.Fatal(p)
	}
	if want := (Range{0x100000, 0x400000}); info.Ranges != 2 || info.Usable[1] != want {
		t.Errorf("memory %x", info.Usable[:info.Ranges])
	}
	if want := (Range{0x2000, 0x2005}); info.Module != want {
		t.Errorf("module %x", info.Module)
	}
	if c := info.CommandLine; string(m[c.Start:c.End]) != "v cool" {
		t.Errorf("command line %q", m[c.Start:c.End])
	}
	if n := testing.AllocsPerRun(10, func() { info = Info{}; ParseMultiboot2(m, 0x1000, &info) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Each kind of invalid data from a boot loader returns its Problem.
func TestParseMultiboot2Problems(t *testing.T) {
	short := tags(memoryTag)
	le.PutUint32(short[0x100c:], 7)
	for want, m := range map[Problem][]byte{
		NoTags:       short,
		NoMapInTags:  tags([]uint32{tagModule, 0x2000, 0x2005, 0}),
		BadTagModule: tags(memoryTag, []uint32{tagModule, 0x2000, 0x1fff, 0}),
	} {
		var info Info
		if got := ParseMultiboot2(m, 0x1000, &info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzParseMultiboot2(f *testing.F) {
	f.Add(tags(memoryTag, []uint32{tagCommandLine, 'a'}), uint64(0x1000))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, m []byte, at uint64) {
		var info Info
		if ParseMultiboot2(m, at, &info) == "" {
			checkInfo(t, m, &info)
		}
	})
}

// The words of a header sum to zero: section 3.1.2.
func TestMultiboot2Header(t *testing.T) {
	b := Multiboot2Header(0x200123)
	sum := uint32(0)
	for i := range 4 {
		sum += le.Uint32(b[4*i:])
	}
	if len(b) != Multiboot2HeaderSize || sum != 0 || le.Uint32(b[24:]) != 0x200123 {
		t.Errorf("% x", b)
	}
}
