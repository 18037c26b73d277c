package kernel

import (
	"encoding/binary"
	"testing"

	"loam/arch/amd64"
	"loam/boot"
)

// isolatedImage returns a core whose CPUs are vulnerable to Meltdown, after the start of two CPUs. Its entry code is in two
// pages.
func isolatedImage(t *testing.T) *core {
	t.Helper()
	_, k := newImage(t, boot.Range{})
	before := entries
	t.Cleanup(func() { entries = before })
	entries.Vectors, entries.Trap = boot.Image+imageText+0x100, boot.Image+imageText+0x200
	entries.Fast, entries.Slow = boot.Image+imageText+0x340, boot.Image+imageText+0x300
	entries.Isolated = boot.Image + imageText + pageSize - 0x20
	k.have = amd64.Features{NoExecute: true, X2APIC: true, XSave: true, FSGSBase: true, Meltdown: true}
	k.findTable()
	k.addMemory(0, modelMemory)
	k.mapAll()
	k.isolate()
	k.fillIDT()
	for i := range int32(2) {
		c := &k.cpus[i]
		c.number = i
		if !k.mapStacks(c) {
			t.Fatal(noMemory)
		}
		k.prepare(c)
	}
	return k
}

// The page tables of ring 3 map the entry code, the interrupt descriptor table, and a page for each CPU, with the least rights. They map
// nothing else of the kernel.
func TestIsolatedTables(t *testing.T) {
	k := isolatedImage(t)
	second, _ := k.pages.Alloc()
	root := k.newRoot(second)
	if root <= 0 {
		t.Fatal(root)
	}
	const (
		flags      = amd64.PagePresent | amd64.PageWrite | amd64.PageUser | amd64.PageGlobal | amd64.PageBig | amd64.PageNoExecute
		code       = uint64(amd64.PagePresent)
		readOnly   = uint64(amd64.PagePresent) | amd64.PageNoExecute
		writable   = readOnly | amd64.PageWrite
		firstUpper = 0xffff_8000_0000_0000
		lastPage   = 1<<64 - pageSize
		codeAt     = boot.Image + imageText
	)
	want := map[uint64]uint64{
		codeAt: code, codeAt + pageSize: code,
		boot.Entry:            readOnly,
		boot.Entry + pageSize: writable, boot.Entry + 2*pageSize: writable,
	}
	tables := amd64.Tables{Root: second, Window: k.window}
	kernels := amd64.Tables{Root: uint64(root), Window: k.window}
	tables.Each(firstUpper, lastPage, func(va, entry, size uint64) uint64 {
		if size != pageSize || entry&flags != want[va] {
			t.Errorf("%#x: %#x of %d bytes, want the flags %#x", va, entry, size, want[va])
		}
		delete(want, va)
		if same, _ := kernels.Lookup(va); amd64.Physical(same) != amd64.Physical(entry) {
			t.Errorf("%#x: %#x, but %#x in the kernel's page tables", va, entry, same)
		}
		return entry
	})
	if len(want) > 0 {
		t.Errorf("pages are missing: %#x", want)
	}
	if entry, _ := tables.Lookup(lastPage); entry != 0 {
		t.Errorf("the last page: %#x", entry)
	}
	for i, b := range bytesAt(uint64(k.window)+second, pageSize/2) {
		if b != 0 {
			t.Fatalf("byte %d of the lower half is %d", i, b)
		}
	}
}

// A CPU's tables refer only to memory that is mapped in ring 3. Exceptions of different kinds have stacks of their own.
func TestIsolatedArea(t *testing.T) {
	k := isolatedImage(t)
	for i := range 2 {
		c := &k.cpus[i]
		entry, _ := k.tables.Lookup(uint64(c.area))
		a := areaAt(k.window + uintptr(amd64.Physical(entry)))
		if a.cpu != c.self || a.debugSelf != (entrySelf{c.self, k.tables.Root}) || a.lastSelf != a.debugSelf {
			t.Errorf("CPU %d: %#x, %#x, %#x", i, a.cpu, a.debugSelf, a.lastSelf)
		}
		gdt, idt := k.descriptors(c)
		if gdt != c.area+areaGDT || idt != boot.Entry || a.gdt != amd64.NewGDT(c.area+areaTask) {
			t.Errorf("CPU %d: descriptors at %#x and %#x", i, gdt, idt)
		}
		trap, debug, last := a.stackEnds(c.area)
		for n, end := range []uintptr{trap, last, debug} {
			got := uintptr(binary.LittleEndian.Uint64(a.task[amd64.TaskStacks+8*n:]))
			if got != end || end%16 != 0 || end-amd64.FrameSize < c.area || end+16 > c.area+pageSize {
				t.Errorf("CPU %d: stack %d ends at %#x, want %#x", i, n+1, got, end)
			}
		}
		if debug-trap < amd64.FrameSize || last-debug < amd64.FrameSize+16 || a.exit != trap-40 {
			t.Errorf("CPU %d: stacks end at %#x, %#x and %#x", i, trap, debug, last)
		}
	}
	idt, _ := k.tables.Lookup(boot.Entry)
	for v, gate := range k.idt {
		b := bytesAt(uint64(k.window)+amd64.Physical(idt)+uint64(v)*16, 16)
		if got := (amd64.Gate{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}); got != gate {
			t.Errorf("vector %d: %#x, want %#x", v, got, gate)
		}
	}
	stub := func(n uintptr) uintptr { return boot.Image + imageText + pageSize - 0x20 + n*16 }
	if entries.Vectors != stub(0) || entries.Trap != stub(128) || k.idt[3] != amd64.NewGate(stub(3), 1).ForUser() {
		t.Errorf("entry points at %#x and %#x", entries.Vectors, entries.Trap)
	}
	if got := k.meltdown(); got != "Mitigation: PTI" {
		t.Errorf("Meltdown: %q", got)
	}
	for from, to := range map[uintptr]uintptr{entries.Fast: stub(129), entries.Slow: stub(130)} {
		b := bytesAt(uint64(k.window)+uint64(from)-boot.Image, 5)
		if got := from + 5 + uintptr(int32(binary.LittleEndian.Uint32(b[1:]))); b[0] != 0xe9 || got != to {
			t.Errorf("at %#x: % x, a jump to %#x, want %#x", from, b, got, to)
		}
	}
}

// A CPU that is not vulnerable, or cannot run ring 3, keeps one root table and the ordinary entry code.
func TestNotIsolated(t *testing.T) {
	all := amd64.Features{NoExecute: true, X2APIC: true, XSave: true, FSGSBase: true, Meltdown: true}
	for _, c := range []struct {
		remove func(f *amd64.Features)
		text   string
	}{
		{func(f *amd64.Features) { f.Meltdown = false }, "Not affected"},
		{func(f *amd64.Features) { f.XSave = false }, "Vulnerable"},
		{func(f *amd64.Features) { f.FSGSBase = false }, "Vulnerable"},
	} {
		_, k := newImage(t, boot.Range{})
		before := entries
		k.have = all
		c.remove(&k.have)
		k.findTable()
		k.addMemory(0, modelMemory)
		k.mapAll()
		k.isolate()
		first := &k.cpus[0]
		if !k.mapStacks(first) {
			t.Fatal(noMemory)
		}
		k.prepare(first)
		gdt, idt := k.descriptors(first)
		if entries != before || k.ring3.Root != 0 || first.area != 0 || gdt != addressOf(&first.gdt) || idt != addressOf(&k.idt) {
			t.Errorf("%+v: isolated", k.have)
		}
		if got := k.meltdown(); got != c.text {
			t.Errorf("%+v: %q", k.have, got)
		}
		if entry, _ := k.tables.Lookup(boot.Entry); entry != 0 {
			t.Errorf("%+v: the entry area is mapped", k.have)
		}
	}
}
