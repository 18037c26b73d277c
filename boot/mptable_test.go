package boot

import "testing"

// mpMemory returns the first MiB of memory with a table at 0xf1000 and a floating pointer to it at pointer.
func mpMemory(pointer int) []byte {
	m := make([]byte, 1<<20)
	var entries []byte
	processor := func(id, flags byte) {
		entries = append(entries, append([]byte{0, id, 0x14, flags}, make([]byte, 16)...)...)
	}
	processor(0, 3)
	processor(1, 1)
	processor(7, 0)
	entries = append(entries, 1, 0, 'P', 'C', 'I', ' ', ' ', ' ')
	entries = append(entries, 1, 1, 'I', 'S', 'A', ' ', ' ', ' ')
	entries = append(entries, 2, 9, 0x11, 1, 0, 0, 0xc0, 0xfe)
	entries = append(entries, 3, 3, 0, 0, 1, 4, 9, 0) // an interrupt of type ExtINT, which comes from the 8259
	entries = append(entries, 3, 0, 15, 0, 0, 4, 9, 11)
	entries = append(entries, 3, 0, 15, 0, 1, 4, 9, 5)
	entries = append(entries, 3, 0, 0, 0, 1, 8, 9, 8)
	entries = append(entries, 4, 0, 0, 0, 1, 0, 0xff, 1)

	table := m[0xf1000:][:mpHeaderSize+len(entries)]
	copy(table, "PCMP")
	le.PutUint16(table[4:], uint16(len(table)))
	copy(table[mpHeaderSize:], entries)
	table[7] = -checksum(table)

	p := m[pointer:][:mpPointerSize]
	copy(p, "_MP_")
	le.PutUint32(p[4:], 0xf1000)
	p[8] = 1
	p[10] = -checksum(p)
	return m
}

func seen(m []byte) func(address, size uint64) []byte {
	return func(address, size uint64) []byte {
		b, _ := window(m, address, size)
		return b
	}
}

func TestMPTable(t *testing.T) {
	extended := mpMemory(0x9f010)
	le.PutUint16(extended[0x40e:], 0x9f00)
	for place, m := range map[string][]byte{"ROM": mpMemory(0xf0800), "640 KiB": mpMemory(0x9fc00), "extended": extended} {
		table := FindMPTable(seen(m))
		if table == nil {
			t.Errorf("no table in %s", place)
			continue
		}
		var processors, chips []MPEntry
		for at := 0; ; {
			e, next, ok := table.Next(at)
			if !ok {
				break
			}
			switch e.Kind {
			case MPProcessor:
				processors = append(processors, e)
			case MPIOAPIC:
				chips = append(chips, e)
			}
			at = next
		}
		if len(processors) != 3 || !processors[1].Enabled || processors[2].Enabled || processors[2].ID != 7 {
			t.Errorf("processors %+v", processors)
		}
		if len(chips) != 1 || chips[0].ID != 9 || chips[0].Address != 0xfec0_0000 || !chips[0].Enabled {
			t.Errorf("I/O APICs %+v", chips)
		}
		if id, input, level, low, ok := table.Route(4); id != 9 || input != 5 || !level || !low || !ok {
			t.Errorf("IRQ 4 at %d of %d, %v, %v, %v", input, id, level, low, ok)
		}
		if _, input, level, low, ok := table.Route(8); input != 8 || level || low || !ok {
			t.Errorf("IRQ 8 at %d, %v, %v, %v", input, level, low, ok)
		}
		if _, _, _, _, ok := table.Route(12); ok {
			t.Error("IRQ 12 arrives")
		}
	}
}

// A table or pointer that is damaged is rejected.
func TestMPTableSpoilt(t *testing.T) {
	for name, spoil := range map[string]func(m []byte){
		"pointer":       func(m []byte) { m[0xf080f]++ },
		"table":         func(m []byte) { m[0xf1030]++ },
		"signature":     func(m []byte) { m[0xf1000]++; m[0xf1001]-- },
		"short":         func(m []byte) { le.PutUint16(m[0xf1004:], 4) },
		"beyond memory": func(m []byte) { le.PutUint16(m[0xf0804:], 0xffff); m[0xf080a] -= checksum(m[0xf0800:0xf0810]) },
	} {
		m := mpMemory(0xf0800)
		spoil(m)
		if table := FindMPTable(seen(m)); table != nil {
			t.Errorf("%s: % x", name, table)
		}
	}
}

// With any content of a table, reading it terminates.
func FuzzMPTable(f *testing.F) {
	f.Add(mpMemory(0xf0800)[0xf1000:0xf1200])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		table := MPTable(b)
		table.Route(4)
		for at := 0; ; {
			_, next, ok := table.Next(at)
			if !ok {
				return
			}
			if next <= at {
				t.Fatalf("from %d to %d", at, next)
			}
			at = next
		}
	})
}
