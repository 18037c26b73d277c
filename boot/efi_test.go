package boot

import (
	"encoding/binary"
	"testing"
)

// efiDescriptor is an entry of a memory map of UEFI firmware.
type efiDescriptor struct {
	kind         uint32
	start, pages uint64
}

// efiMemory returns physical memory with the structure of ParseEFI at 0x1000.
func efiMemory(program uint64, rsdp1, rsdp2 uint64, entries ...efiDescriptor) []byte {
	const entrySize = 48
	m := make([]byte, 4<<20)
	le := binary.LittleEndian
	head := m[0x1000:]
	le.PutUint64(head[EFIProgram:], program)
	le.PutUint64(head[EFIMap:], 0x3000)
	le.PutUint64(head[EFIMapSize:], uint64(len(entries))*entrySize)
	le.PutUint64(head[EFIEntrySize:], entrySize)
	le.PutUint64(head[EFITables:], 2)
	table := head[EFITable:]
	copy(table, guidACPI1)
	le.PutUint64(table[16:], rsdp1)
	copy(table[EFITableSize:], guidACPI2)
	le.PutUint64(table[EFITableSize+16:], rsdp2)
	for i, e := range entries {
		p := m[0x3000+i*entrySize:]
		le.PutUint32(p, e.kind)
		le.PutUint64(p[8:], e.start)
		le.PutUint64(p[24:], e.pages)
	}
	return m
}

// Memory of the boot services, of applications, and free memory is usable; memory of the runtime services and of ACPI is not.
// Neighbouring ranges are one range, in any order.
func TestParseEFI(t *testing.T) {
	m := efiMemory(Load, 0x111, 0x222,
		efiDescriptor{7, 0x10_0000, 0x10},
		efiDescriptor{3, 0x1000, 0x9f},
		efiDescriptor{4, 0x12_0000, 0x10},
		efiDescriptor{1, 0x11_0000, 0x8}, efiDescriptor{2, 0x11_8000, 0x8},
		efiDescriptor{5, 0x20_0000, 1}, efiDescriptor{6, 0x20_1000, 1}, efiDescriptor{9, 0x20_2000, 1}, efiDescriptor{10, 0x20_3000, 1},
		efiDescriptor{7, 4 << 30, 1 << 20},
		efiDescriptor{7, 1 << 52, 1}, efiDescriptor{7, 1 << 51, 1 << 60}, efiDescriptor{7, 1 << 60, 1},
		efiDescriptor{0, 0x10_1000, 1}, // overlaps usable memory
	)
	var info Info
	if p := ParseEFI(m, 0x1000, &info); p != "" {
		t.Fatal(p)
	}
	want := map[Range]bool{{0x1000, 0xa_0000}: true, {0x10_0000, 0x10_1000}: true, {0x10_2000, 0x13_0000}: true, {4 << 30, 8 << 30}: true}
	for _, r := range info.Usable[:info.Ranges] {
		if !want[r] {
			t.Errorf("range %#x", r)
		}
	}
	if info.Ranges != len(want) || info.RSDP != 0x222 || info.Offset != 0 {
		t.Errorf("%d ranges, RSDP %#x, offset %#x", info.Ranges, info.RSDP, info.Offset)
	}
}

// Without a root pointer of ACPI 2.0, the one of ACPI 1.0 is used.
func TestParseEFIOldACPI(t *testing.T) {
	var info Info
	if p := ParseEFI(efiMemory(Load, 0x111, 0, efiDescriptor{7, 0x10_0000, 0x10}), 0x1000, &info); p != "" || info.RSDP != 0x111 {
		t.Errorf("%q, RSDP %#x", p, info.RSDP)
	}
}

// If the map has more ranges than Info can hold, the largest are kept, and the range with the page in which CPUs start.
func TestParseEFIManyRanges(t *testing.T) {
	var entries []efiDescriptor
	for i := range uint64(3 * MaxRanges) {
		entries = append(entries, efiDescriptor{7, (1 + i) << 24, 2 + i})
	}
	start := efiDescriptor{7, StartPage, 1}
	for name, entries := range map[string][]efiDescriptor{
		"first": append([]efiDescriptor{start}, entries...),
		"last":  append(entries, start),
	} {
		var info Info
		if p := ParseEFI(efiMemory(Load, 0, 0, entries...), 0x1000, &info); p != "" || info.Ranges != MaxRanges {
			t.Fatalf("%s: %q, %d ranges", name, p, info.Ranges)
		}
		found := false
		for _, r := range info.Usable {
			if r == (Range{StartPage, StartPage + 4096}) {
				found = true
			} else if r.Size()/4096 <= 2*MaxRanges+2 {
				t.Errorf("%s: range %#x", name, r)
			}
		}
		if !found {
			t.Errorf("%s: CPUs have no page to start in", name)
		}
	}
}

// Invalid information is refused with the problem that it has.
func TestParseEFIRefuses(t *testing.T) {
	usable := efiDescriptor{7, 0x10_0000, 0x10}
	for name, c := range map[string]struct {
		memory []byte
		at     uint64
		want   Problem
	}{
		"outside":         {efiMemory(Load, 0, 0, usable), 4<<20 - 8, NoEFIInfo},
		"far outside":     {efiMemory(Load, 0, 0, usable), ^uint64(0) - 8, NoEFIInfo},
		"not aligned":     {efiMemory(Load+4096, 0, 0, usable), 0x1000, BadEFILoad},
		"too low":         {efiMemory(0, 0, 0, usable), 0x1000, BadEFILoad},
		"too high":        {efiMemory(1<<40, 0, 0, usable), 0x1000, BadEFILoad},
		"nothing usable":  {efiMemory(Load, 0, 0, efiDescriptor{6, 0x10_0000, 0x10}), 0x1000, NoEFIMap},
		"an empty map":    {efiMemory(Load, 0, 0), 0x1000, NoEFIMap},
		"a map elsewhere": {spoilEFI(EFIMap, 1<<40), 0x1000, NoEFIMap},
		"small entries":   {spoilEFI(EFIEntrySize, 39), 0x1000, NoEFIMap},
		"no entry size":   {spoilEFI(EFIEntrySize, 0), 0x1000, NoEFIMap},
	} {
		var info Info
		if p := ParseEFI(c.memory, c.at, &info); p != c.want {
			t.Errorf("%s: %q, want %q", name, p, c.want)
		}
	}
}

// spoilEFI returns memory with one field of the structure replaced.
func spoilEFI(field int, value uint64) []byte {
	m := efiMemory(Load, 0, 0, efiDescriptor{7, 0x10_0000, 0x10})
	binary.LittleEndian.PutUint64(m[0x1000+field:], value)
	return m
}

// ParseEFI never panics, and returns only ranges as Info describes them.
func FuzzParseEFI(f *testing.F) {
	good := efiMemory(Load, 0x111, 0x222, efiDescriptor{7, 0x10_0000, 0x10}, efiDescriptor{7, 0x11_0000, 0x10}, efiDescriptor{0, 0x10_8000, 1})
	f.Add(good[0x1000:0x1000+EFITable+2*EFITableSize], good[0x3000:0x3000+3*48])
	m := make([]byte, 3<<20)
	f.Fuzz(func(t *testing.T, head, entries []byte) {
		defer clear(m[:min(len(m), 0x3000+len(entries))])
		copy(m[0x1000:0x3000], head)
		copy(m[0x3000:], entries)
		var info Info
		if p := ParseEFI(m, 0x1000, &info); p != "" {
			return
		}
		for i, r := range info.Usable[:info.Ranges] {
			if r.Start >= r.End || r.End > maxPhysical {
				t.Errorf("range %#x", r)
			}
			for _, other := range info.Usable[:i] {
				if r.Start < other.End && other.Start < r.End {
					t.Errorf("ranges %#x and %#x overlap", r, other)
				}
			}
		}
	})
}
