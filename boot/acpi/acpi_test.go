package acpi

import (
	"encoding/binary"
	"strings"
	"testing"

	"loam/boot"
)

// firmware builds tables in a piece of memory.
type firmware struct {
	memory []byte
	end    int // end of the used part
}

func newFirmware() *firmware { return &firmware{memory: make([]byte, 64<<10), end: 0x1000} }

func (f *firmware) read(address, size uint64) []byte {
	if address > uint64(len(f.memory)) || size > uint64(len(f.memory))-address {
		return nil
	}
	return f.memory[address : address+size]
}

// table adds a table with a correct checksum and returns its address.
func (f *firmware) table(signature string, body []byte) uint64 {
	b := make([]byte, headerLen, headerLen+len(body))
	copy(b, signature)
	b = append(b, body...)
	le.PutUint32(b[4:], uint32(len(b)))
	b[9] = -sum(b)
	return f.put(b)
}

func (f *firmware) put(b []byte) uint64 {
	at := f.end
	copy(f.memory[at:], b)
	f.end = (at + len(b) + 15) &^ 15
	return uint64(at)
}

// root adds the root tables and returns the address of the RSDP.
func (f *firmware) root(revision uint8, tables ...uint64) uint64 {
	var narrow, wide []byte
	for _, t := range tables {
		narrow = le.AppendUint32(narrow, uint32(t))
		wide = le.AppendUint64(wide, t)
	}
	b := make([]byte, rsdpLongLen)
	copy(b, "RSD PTR ")
	b[15] = revision
	le.PutUint32(b[16:], uint32(f.table("RSDT", narrow)))
	b[8] = -sum(b[:rsdpLen])
	if revision >= 2 {
		le.PutUint32(b[20:], rsdpLongLen)
		le.PutUint64(b[24:], f.table("XSDT", wide))
		b[32] = -sum(b)
	}
	return f.put(b)
}

func (f *firmware) open(t *testing.T, rsdp uint64) Tables {
	t.Helper()
	tables, problem := Open(f.read, rsdp)
	if problem != "" {
		t.Fatalf("Open: %s", problem)
	}
	return tables
}

func TestFind(t *testing.T) {
	for _, revision := range []uint8{0, 2} {
		f := newFirmware()
		first := f.table("AAAA", []byte("one"))
		second := f.table("BBBB", []byte("two"))
		tables := f.open(t, f.root(revision, first, second))
		if tables.Len() != 2 {
			t.Errorf("revision %d: Len = %d, want 2", revision, tables.Len())
		}
		if got := tables.Find("BBBB"); string(got[headerLen:]) != "two" {
			t.Errorf("revision %d: Find(BBBB) = %q", revision, got)
		}
		if got := tables.Find("CCCC"); got != nil {
			t.Errorf("revision %d: Find(CCCC) = %q, want nothing", revision, got)
		}
		f.memory[second+headerLen] ^= 1
		if got := tables.Find("BBBB"); got != nil {
			t.Errorf("revision %d: a damaged table is found: %q", revision, got)
		}
		if got := tables.At(2); got != nil {
			t.Errorf("revision %d: At(2) = %q, want nothing", revision, got)
		}
	}
}

// If the XSDT is damaged, the RSDT is used.
func TestRootFallback(t *testing.T) {
	f := newFirmware()
	rsdp := f.root(2, f.table("AAAA", nil))
	xsdt := le.Uint64(f.memory[rsdp+24:])
	f.memory[xsdt+headerLen] ^= 0xff
	tables := f.open(t, rsdp)
	if tables.width != 4 || tables.Find("AAAA") == nil {
		t.Error("the table is not found by the RSDT")
	}
}

func TestBadRoot(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(f *firmware, rsdp uint64) uint64
		want  boot.Problem
	}{
		"no address":   {func(*firmware, uint64) uint64 { return 0 }, NoRSDP},
		"out of reach": {func(*firmware, uint64) uint64 { return 1 << 40 }, NoRSDP},
		"at the end":   {func(f *firmware, _ uint64) uint64 { return uint64(len(f.memory)) - 1 }, NoRSDP},
		"signature":    {func(f *firmware, at uint64) uint64 { f.memory[at]++; return at }, NoRSDP},
		"checksum":     {func(f *firmware, at uint64) uint64 { f.memory[at+9]++; return at }, NoRSDP},
		"table":        {func(f *firmware, at uint64) uint64 { f.memory[le.Uint32(f.memory[at+16:])+5]++; return at }, BadRoot},
	} {
		f := newFirmware()
		if _, got := Open(f.read, test.spoil(f, f.root(0))); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestFindRSDP(t *testing.T) {
	low := make([]byte, 1<<20)
	memory := func(address, size uint64) []byte {
		if address+size > uint64(len(low)) {
			return nil
		}
		return low[address : address+size]
	}
	if got := FindRSDP(memory); got != 0 {
		t.Errorf("found at %#x in empty memory", got)
	}
	f := newFirmware()
	rsdp := f.root(0)
	copy(low[0xf5ad0:], f.memory[rsdp:rsdp+rsdpLen])
	if got := FindRSDP(memory); got != 0xf5ad0 {
		t.Errorf("found at %#x, want %#x", got, 0xf5ad0)
	}
	if got := FindRSDP(f.read); got != 0 { // the memory of this machine ends before 0xf5ad0, where the RSDP is
		t.Errorf("found at %#x where there is no memory", got)
	}
}

// madt returns the body of a MADT of a PC with two processors.
func madt() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xfee00000)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = append(b, 0, 8, 0, 0, 1, 0, 0, 0)                                           // processor 0
	b = append(b, 0, 8, 1, 1, 0, 0, 0, 0)                                           // processor 1 is not enabled
	b = append(b, 1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0)                        // the I/O APIC
	b = append(b, 2, 10, 0, 0, 2, 0, 0, 0, 0, 0)                                    // override: IRQ 0 is global interrupt 2
	b = append(b, 2, 10, 0, 5, 5, 0, 0, 0, 0x0d, 0)                                 // override: IRQ 5 is level-triggered and active high
	b = append(b, 4, 6, 255, 0, 0, 1)                                               // an NMI entry, which is skipped
	b = append(b, 9, 16, 0, 0, 0x2c, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)               // a processor with the x2APIC ID 300
	return append(b, 5, 12, 0, 0, 0, 0x10, 0xe0, 0xfe, 0, 0, 0, 0, 1, 2, 3, 9, 255) // the 64-bit address of the local APIC, and a truncated entry
}

func TestMADT(t *testing.T) {
	f := newFirmware()
	tables := f.open(t, f.root(2, f.table("APIC", madt())))
	m := tables.MADT()
	want := []Entry{
		{Kind: Processor, Enabled: true},
		{Kind: Processor, APIC: 1},
		{Kind: IOAPIC, Address: 0xfec00000},
		{Kind: Override, GSI: 2},
		{Kind: Override, Source: 5, GSI: 5, Flags: 0x0d},
		{Kind: ProcessorX2, APIC: 300, Enabled: true},
		{Kind: LocalAPICAddress, Address: 0xfee01000},
	}
	at := 0
	for i, w := range want {
		e, next, ok := m.Next(at)
		if !ok || e != w {
			t.Fatalf("entry %d: got %+v, %v, want %+v", i, e, ok, w)
		}
		at = next
	}
	if e, _, ok := m.Next(at); ok {
		t.Errorf("one entry too many: %+v", e)
	}
	if got := m.LocalAPIC(); got != 0xfee01000 {
		t.Errorf("LocalAPIC = %#x", got)
	}
	if !m.HasPIC() {
		t.Error("HasPIC is false")
	}
	for irq, want := range map[uint8][3]any{0: {uint32(2), false, false}, 4: {uint32(4), false, false}, 5: {uint32(5), true, false}} {
		if gsi, level, low := m.Route(irq); gsi != want[0] || level != want[1] || low != want[2] {
			t.Errorf("Route(%d) = %d, %v, %v; want %v", irq, gsi, level, low, want)
		}
	}
}

func TestECAM(t *testing.T) {
	body := make([]byte, mcfgLen-headerLen)
	body = le.AppendUint64(body, 0xb0000000)
	body = append(body, 0, 0, 0, 255, 0, 0, 0, 0)
	body = le.AppendUint64(body, 0xb0000001) // an address that is not a multiple of 1 MiB, the size of a bus
	body = append(body, 0, 0, 0, 255, 0, 0, 0, 0)
	f := newFirmware()
	tables := f.open(t, f.root(2, f.table("MCFG", body)))
	want := ECAM{Address: 0xb0000000, Last: 255}
	if got, ok := tables.ECAM(0); !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
	for _, i := range []int{-1, 1, 2} {
		if got, ok := tables.ECAM(i); ok {
			t.Errorf("ECAM(%d) = %+v", i, got)
		}
	}
}

func TestHPET(t *testing.T) {
	body := make([]byte, 20)
	le.PutUint64(body[8:], 0xfed00000)
	f := newFirmware()
	tables := f.open(t, f.root(2, f.table("HPET", body)))
	if got := tables.HPET(); got != 0xfed00000 {
		t.Errorf("HPET = %#x", got)
	}
}

// Reading the tables does not allocate, since the kernel reads them before there is a heap.
func TestAllocations(t *testing.T) {
	f := newFirmware()
	rsdp := f.root(2, f.table("APIC", madt()), f.table("FACP", fadt(f)))
	read := Memory(f.read)
	if n := testing.AllocsPerRun(10, func() {
		tables, _ := Open(read, rsdp)
		m := tables.MADT()
		m.LocalAPIC()
		m.Route(3)
		tables.Power()
		tables.ECAM(0)
		tables.HPET()
		dsdt := tables.DSDT()
		SleepTypes(dsdt)
		NextVirtioMMIO(dsdt, 0)
		FindButton(dsdt)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzTables(f *testing.F) {
	fw := newFirmware()
	rsdp := fw.root(2, fw.table("APIC", madt()), fw.table("FACP", fadt(fw)))
	f.Add(fw.memory[:fw.end], rsdp)
	f.Add([]byte(strings.Repeat("RSD PTR ", 8)), uint64(8))
	f.Fuzz(func(t *testing.T, memory []byte, rsdp uint64) {
		fw := &firmware{memory: memory}
		tables, problem := Open(fw.read, rsdp)
		if problem != "" {
			return
		}
		if m := tables.MADT(); m != nil {
			m.LocalAPIC()
			m.Route(0)
		}
		tables.Power()
		tables.ECAM(0)
		tables.HPET()
		walkAML(tables.DSDT())
	})
}

// Entries of any kind and length are read to the end of the table.
func FuzzMADT(f *testing.F) {
	f.Add(madt())
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		m := MADT(append(make([]byte, headerLen), body...))
		if len(m) < madtLen {
			return
		}
		m.LocalAPIC()
		m.HasPIC()
		m.Route(4)
		for at := 0; ; {
			_, next, ok := m.Next(at)
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
