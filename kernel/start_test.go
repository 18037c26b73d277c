package kernel

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"loam/arch/amd64"
	"loam/boot"
)

// The start of a machine: free memory, page tables, descriptors, stacks, and features of the processor.

// Parts of the program in the model, as physical addresses.
const (
	imageText   = boot.Load
	imageData   = boot.Load + 0x3000 // read-only data
	imageVars   = boot.Load + 0x5000
	imageZeroed = boot.Load + 0x7000
	imageTables = imageZeroed + 0x10000 // page tables of the entry code
	imageTop    = imageTables + boot.TablePages*pageSize
)

// newImage returns a core before its start, on the memory of a machine with the headers of a program.
func newImage(t *testing.T, files boot.Range) (*machine, *core) {
	t.Helper()
	m := newMachine(t, 1, 1)
	k := &core{window: m.core.window, serialInterrupt: none, have: amd64.Features{NoExecute: true, X2APIC: true}}
	k.machine.Usable[0] = boot.Range{Start: 0x1000, End: 0x9f000}
	k.machine.Usable[1] = boot.Range{Start: 0x10_0000, End: modelMemory}
	k.machine.Ranges = 2
	const loadable, headerSize, first = 1, 56, 64
	header := bytesAt(uint64(k.window)+boot.Load, pageSize)
	le := binary.LittleEndian
	le.PutUint16(header[32:], first)
	count := uint16(0)
	add := func(kind, flags uint32, virtual, physical, size uint64) {
		p := header[first+int(count)*headerSize:]
		le.PutUint32(p, kind)
		le.PutUint32(p[4:], flags)
		le.PutUint64(p[16:], virtual)
		le.PutUint64(p[24:], physical)
		le.PutUint64(p[40:], size)
		count++
		le.PutUint16(header[56:], count)
	}
	const execute, write, read = 1, 2, 4
	add(loadable, read|execute, boot.Image+imageText, imageText, imageData-imageText)
	add(loadable, read, boot.Image+imageData, imageData, imageVars-imageData)
	add(loadable, read|write, boot.Image+imageVars, imageVars, imageTop-imageVars)
	add(boot.ZeroSegment, read|write, boot.Image+imageZeroed, 0, imageTables-imageZeroed)
	if files.End != 0 {
		add(loadable, read, files.Start, files.Start, files.Size())
	}
	return m, k
}

// Memory is free unless the program, its files, its configuration or the command line are there. Pages that are free only
// in part are not free.
func TestFreeMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	place := func() boot.Range {
		start := uint64(imageTop) + rng.Uint64N(4<<20)
		return boot.Range{Start: start, End: start + 1 + rng.Uint64N(1<<20)}
	}
	for i := range 40 {
		files := boot.Range{}
		if i%2 == 1 {
			files = boot.Range{Start: imageTop, End: imageTop + rng.Uint64N(5<<20)}
		}
		_, k := newImage(t, files)
		k.machine.Module = place()
		for k.machine.CommandLine = place(); intersect(k.machine.Module, k.machine.CommandLine); {
			k.machine.CommandLine = place()
		}
		if i%3 == 0 {
			k.machine.CommandLine = boot.Range{}
		}
		free := map[uint64]bool{}
		for piece := range freePieces * k.machine.Ranges {
			r := k.freeMemory(piece)
			for pa := r.Start; pa < r.End && pa+pageSize <= r.End; pa += pageSize {
				if free[pa] {
					t.Fatalf("page %#x is in two pieces", pa)
				}
				free[pa] = true
			}
		}
		for pa := uint64(0); pa < modelMemory+1<<20; pa += pageSize {
			p := boot.Range{Start: pa, End: pa + pageSize}
			want := k.usable(pa, pageSize) && pa >= imageTop && pa >= files.End &&
				!intersect(p, k.machine.Module) && !intersect(p, k.machine.CommandLine)
			if free[pa] != want {
				t.Fatalf("page %#x is free: %v; files %#x, module %#x, command line %#x", pa, free[pa], files, k.machine.Module, k.machine.CommandLine)
			}
		}
	}
}

func intersect(a, b boot.Range) bool { return a.Start < b.End && b.Start < a.End }

// The allocator gets all free memory except its own table, below and above the memory that is mapped at the start.
func TestAllocatorMemory(t *testing.T) {
	_, k := newImage(t, boot.Range{})
	k.findTable()
	if k.windowEnd != boot.WindowAtBoot {
		t.Errorf("the window ends at %#x", k.windowEnd)
	}
	k.addMemory(0, 8<<20)
	free, total := k.pages.Pages()
	table := k.allocatorTable.Size()
	if want := (8<<20 - imageTop - table) / pageSize; free != want || total != want {
		t.Errorf("%d of %d pages are free, want %d", free, total, want)
	}
	k.addMemory(8<<20, modelMemory)
	if free, _ := k.pages.Pages(); free != (modelMemory-imageTop-table)/pageSize {
		t.Errorf("%d pages are free", free)
	}
	for {
		pa, ok := k.pages.Take()
		if !ok {
			break
		}
		if pa >= k.allocatorTable.Start && pa < k.allocatorTable.End || pa < imageTop {
			t.Fatalf("page %#x is not free", pa)
		}
	}
}

// A machine without memory for the allocator's table cannot start, and says so.
func TestTooLittleMemory(t *testing.T) {
	m, k := newImage(t, boot.Range{})
	k.machine.Usable[1].End = imageTop + pageSize/2
	if status := m.ends(k.findTable); status != statusFailed || !strings.Contains(string(m.output), string(noMemory)) {
		t.Errorf("status %d, output %q", status, m.output)
	}
}

// The page tables give each part of the program its rights, and all memory without the right to execute. The lower half, the
// zeroed variables and the page tables of the entry code are not mapped.
func TestKernelTables(t *testing.T) {
	_, k := newImage(t, boot.Range{})
	k.findTable()
	k.addMemory(0, modelMemory)
	k.mapAll()
	const present, write, global, noExecute = amd64.PagePresent, amd64.PageWrite, amd64.PageGlobal, uint64(amd64.PageNoExecute)
	window := uint64(k.window)
	for _, c := range []struct {
		what  string
		va    uint64
		pa    uint64
		flags uint64 // 0: not mapped
		size  uint64
	}{
		{"code", boot.Image + imageText, imageText, present | global, pageSize},
		{"the end of the code", boot.Image + imageData - 1, imageData - 1, present | global, pageSize},
		{"data", boot.Image + imageData, imageData, present | global | noExecute, pageSize},
		{"variables", boot.Image + imageVars + 8, imageVars + 8, present | write | global | noExecute, pageSize},
		{"zeroed variables", boot.Image + imageZeroed, 0, 0, 0},
		{"page tables", boot.Image + imageTables, 0, 0, 0},
		{"before the code", boot.Image + imageText - 1, 0, 0, 0},
		{"code in the window", window + imageText, imageText, present | global | noExecute, pageSize},
		{"data in the window", window + imageData, imageData, present | global | noExecute, pageSize},
		{"variables in the window", window + imageVars, imageVars, present | write | global | noExecute, pageSize},
		{"the first page in the window", window, 0, present | write | global | noExecute, amd64.BigPageSize},
		{"memory in the window", window + 32<<20 + 5, 32<<20 + 5, present | write | global | noExecute, amd64.BigPageSize},
		{"the end of the window", window + boot.WindowAtBoot - 1, boot.WindowAtBoot - 1, present | write | global | noExecute, amd64.BigPageSize},
		{"behind the window", window + boot.WindowAtBoot, 0, 0, 0},
		{"page 0", 0, 0, 0, 0},
		{"the program's memory", boot.DynamicLow, 0, 0, 0},
	} {
		entry, size := k.tables.Lookup(c.va)
		const flags = present | write | global | noExecute
		if entry&flags != c.flags || c.flags != 0 && (size != c.size || amd64.Physical(entry)+c.va%size != c.pa) {
			t.Errorf("%s at %#x: entry %#x of %d bytes, want %#x with the flags %#x", c.what, c.va, entry, size, c.pa, c.flags)
		}
	}
}

// The program may access its own file as its segments allow, and the zeroed variables. They are populated on demand.
func TestImageAccess(t *testing.T) {
	_, k := newImage(t, boot.Range{})
	k.findTable()
	k.addMemory(0, modelMemory)
	k.mapAll()
	for _, c := range []struct {
		addr, size     uint64
		mapped, writes bool
	}{
		{boot.Image + imageText, 8, true, false},
		{boot.Image + imageData, imageVars - imageData, true, false},
		{boot.Image + imageData, imageVars - imageData + 1, false, false}, // two segments
		{boot.Image + imageVars, 8, true, true},
		{boot.Image + imageZeroed, imageTables - imageZeroed, true, true},
		{boot.Image + imageVars, imageTables - imageVars, true, true},
		{boot.Image + imageTables, 8, false, false},
		{boot.Image + imageTables - 4, 8, false, false},
		{boot.Image + imageText - 8, 8, false, false},
		{^uint64(0) - 3, 8, false, false},
	} {
		if got := k.mapped(c.addr, c.size); got != c.mapped {
			t.Errorf("%d bytes at %#x are mapped: %v", c.size, c.addr, got)
		}
		const write = 2
		if got := c.mapped && k.inImage(c.addr, c.addr+c.size, write); got != c.writes {
			t.Errorf("%d bytes at %#x are writable: %v", c.size, c.addr, got)
		}
	}
	region, ok := k.regionAt(boot.Image + imageZeroed + 8)
	if !ok || !k.mapPage(boot.Image+imageZeroed, region) {
		t.Fatal("a zeroed variable is not populated")
	}
	if entry, _ := k.tables.Lookup(boot.Image + imageZeroed); entry&amd64.PageWrite == 0 || entry&amd64.PageNoExecute == 0 {
		t.Errorf("entry %#x", entry)
	}
	if _, ok := k.regionAt(boot.Image + imageTables); ok {
		t.Error("the page tables of the entry code are populated on demand")
	}
}

// Without x2APIC mode, the registers of the local APIC are mapped where firmware has left them, uncached.
func TestMapAPIC(t *testing.T) {
	m, k := newImage(t, boot.Range{})
	k.have.X2APIC = false
	m.cpus[0].msrs[amd64.MSRAPICBase] = 0xfee0_0900
	k.findTable()
	k.addMemory(0, modelMemory)
	k.mapAll()
	if uintptr(k.apic) != k.window+0xfee0_0000 {
		t.Errorf("the APIC is at %#x", k.apic)
	}
	if entry, _ := k.tables.Lookup(uint64(k.apic)); entry&amd64.PageUncached != amd64.PageUncached {
		t.Errorf("entry %#x", entry)
	}
}

// Each CPU has two stacks, with addresses below them that are not mapped, so that an overflow faults.
func TestStacks(t *testing.T) {
	k := newMachine(t, 1, 1).core
	mapped := func(va uint64) bool {
		entry, _ := k.tables.Lookup(va)
		return entry&amd64.PagePresent != 0
	}
	seen := map[uint64]bool{}
	for number := range int32(3) {
		c := &cpu{number: number}
		if !k.mapStacks(c) {
			t.Fatal("no memory")
		}
		if c.debugEnd-c.crashEnd != debugRoom+crashRoom || c.crashEnd%16 != 0 || c.debugEnd%16 != 0 {
			t.Errorf("the stacks for faults and for debug exceptions end at %#x and %#x", c.crashEnd, c.debugEnd)
		}
		for _, s := range []struct{ top, pages uint64 }{{uint64(c.stack) + spillRoom, stackPages}, {uint64(c.debugEnd) + crashRoom, crashPages}} {
			if s.top%pageSize != 0 || !isStack(s.top-8) {
				t.Errorf("a stack ends at %#x", s.top)
			}
			for va := s.top - s.pages*pageSize; va < s.top; va += pageSize {
				if !mapped(va) || seen[va] {
					t.Errorf("CPU %d: the page at %#x is mapped: %v, in use: %v", number, va, mapped(va), seen[va])
				}
				seen[va] = true
			}
			if guard := s.top - s.pages*pageSize - 8; mapped(guard) || mapped(s.top) || !isStack(guard) {
				t.Errorf("CPU %d: the stack that ends at %#x has no guard", number, s.top)
			}
		}
	}
	if isStack(boot.Stacks-8) || isStack(boot.Stacks+maxCPUs*2*stackSpan) {
		t.Error("an address outside of the stacks is in a stack")
	}
}

// Each vector has its own entry. Exceptions that may come at any instruction use a stack of their own, and only the breakpoint
// can be raised in ring 3.
func TestGates(t *testing.T) {
	entries.Vectors = 0xffff_ffff_8030_0000
	defer func() { entries.Vectors = 0 }()
	var k core
	k.fillIDT()
	for v, gate := range k.idt {
		want := amd64.NewGate(entries.Vectors+uintptr(v)*16, 1)
		switch v {
		case amd64.VectorNMI, amd64.VectorDouble, amd64.VectorMachine:
			want = amd64.NewGate(entries.Vectors+uintptr(v)*16, 2)
		case amd64.VectorDebug:
			want = amd64.NewGate(entries.Vectors+uintptr(v)*16, 3)
		case amd64.VectorBreakpoint:
			want = want.ForUser()
		}
		if gate != want {
			t.Errorf("vector %d: %#x, want %#x", v, gate, want)
		}
	}
}

// The kernel enables the protections that the processor has, and saves the registers that it can. No translation survives a write of
// CR3, whatever a boot loader has enabled.
func TestProcessorFeatures(t *testing.T) {
	defer func() { haveXSave, userVectors = false, vectorsAll }()
	const sse, avx, avx512 = 0b11, 0b111, 0b1110_0111
	for _, c := range []struct {
		have       amd64.Features
		components uint32
		cr4        uint64
		vectors    uint8
		size       uint64
	}{
		{amd64.Features{}, 0, 0, vectorsAll, fxsaveSize},
		{amd64.Features{SMEP: true, SMAP: true, UMIP: true}, 0, amd64.CR4SMEP | amd64.CR4SMAP | amd64.CR4UMIP, vectorsAll, fxsaveSize},
		{amd64.Features{Machine: true, FSGSBase: true}, 0, amd64.CR4Machine | amd64.CR4FSGSBase, vectorsAll, fxsaveSize},
		{amd64.Features{XSave: true}, sse, amd64.CR4XSave, vectorsSSE, 832},
		{amd64.Features{XSave: true}, avx, amd64.CR4XSave, vectorsAVX, 832},
		{amd64.Features{XSave: true}, avx512, amd64.CR4XSave, vectorsAll, 832},
		{amd64.Features{XSave: true}, 1<<9 | 1<<17 | avx, amd64.CR4XSave, vectorsAVX, 832}, // components that the core does not save
	} {
		userVectors = vectorsAll
		m := newMachine(t, 1, 1)
		p := m.cpus[0]
		p.cr4 = amd64.CR4PageGlobal | amd64.CR4ProcessContext
		m.cpuid = map[uint32][4]uint32{0xd: {c.components, 832}}
		k := &core{have: c.have}
		k.features(p.cpu)
		if p.cr4 != c.cr4 || userVectors != c.vectors || k.xsaveSize != c.size || haveXSave != c.have.XSave {
			t.Errorf("%+v: CR4 %#x, vectors %d, %d bytes", c.have, p.cr4, userVectors, k.xsaveSize)
		}
	}
}

// The processor's number and the no-execute bit are enabled if they exist.
func TestProcessorRegisters(t *testing.T) {
	m := newMachine(t, 1, 1)
	p := m.cpus[0]
	k := &core{have: amd64.Features{CPUNumber: true, NoExecute: true}}
	p.cpu.number = 5
	k.features(p.cpu)
	p.cpu.number = 0
	if got := p.msrs[amd64.MSRTSCAux]; got != 5 {
		t.Errorf("IA32_TSC_AUX is %d", got)
	}
	if got := p.msrs[amd64.MSREFER]; got != amd64.EFERNoExecute {
		t.Errorf("IA32_EFER is %#x", got)
	}
}

// UEFI firmware loads the program at another physical address. The addresses of the program stay the same, its pages are
// elsewhere, and the memory at boot.Load is free.
func TestMovedImage(t *testing.T) {
	const offset = 4 << 20
	_, k := newImage(t, boot.Range{Start: imageTop, End: imageTop + 100})
	window := uint64(k.window)
	copy(bytesAt(window+boot.Load+offset, pageSize), bytesAt(window+boot.Load, pageSize))
	clear(bytesAt(window+boot.Load, pageSize))
	k.machine.Offset = offset
	k.findTable()
	k.addMemory(0, modelMemory)
	k.mapAll()
	if files := k.files(); files != (boot.Range{Start: imageTop + offset, End: imageTop + offset + 100}) || k.imageEnd() != imageTop+offset {
		t.Errorf("files at %#x, the program ends at %#x", files, k.imageEnd())
	}
	const flags = amd64.PagePresent | amd64.PageWrite
	for _, c := range []struct{ va, pa, flags uint64 }{
		{boot.Image + imageText, imageText + offset, amd64.PagePresent},
		{boot.Image + imageVars, imageVars + offset, flags},
		{window + imageText + offset, imageText + offset, amd64.PagePresent},
		{window + imageVars + offset, imageVars + offset, flags},
		{window + imageText, imageText, flags},
	} {
		entry, size := k.tables.Lookup(c.va)
		if entry&flags != c.flags || amd64.Physical(entry)+c.va%size != c.pa {
			t.Errorf("%#x: entry %#x of %d bytes, want %#x with the flags %#x", c.va, entry, size, c.pa, c.flags)
		}
	}
	free := map[uint64]bool{}
	for i := range freePieces * k.machine.Ranges {
		for r := k.freeMemory(i); r.Start+pageSize <= r.End; r.Start += pageSize {
			free[r.Start] = true
		}
	}
	end := uint64(imageTop+offset+100+pageSize-1) &^ (pageSize - 1)
	for pa := uint64(0); pa < modelMemory; pa += pageSize {
		if want := pa >= boot.Load && (pa < boot.Load+offset || pa >= end); free[pa] != want {
			t.Fatalf("page %#x is free: %v", pa, free[pa])
		}
	}
}
