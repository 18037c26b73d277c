package kernel

import (
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/thread"
)

// Calls of drivers: interrupts, registers, memory for devices; and the calls of package kernel/user.

// Registers of an I/O APIC, as words of memory, and the lower half of the entry of an input (82093AA data sheet).
const (
	ioapicSelect = 0
	ioapicWindow = 4
	ioapicEntry  = 0x10
)

// poller makes the first thread wait for interrupts, and returns another thread that runs.
func (u user) poller() (waits, runs thread.ID) {
	u.t.Helper()
	u.t.Cleanup(func() { Rung = 0 })
	waits, runs = u.cpu.current, u.clone()
	u.call(CallPoll, ^uint64(0))
	u.current(runs)
	return waits, runs
}

// A line is connected to the first CPU and a vector of its own. It is masked when the interrupt is closed.
func TestLines(t *testing.T) {
	u := newUser(t)
	first, second := u.addIOAPIC(0, 24), u.addIOAPIC(24, 8)
	for _, c := range []struct {
		gsi, flags uint64
		number     int64
		chip       *[8]uint32
		input      uint32
		entry      uint32 // without the vector
	}{
		{4, 0, 0, first, 4, 0},
		{23, amd64.IOAPICLevel, 1, first, 23, amd64.IOAPICLevel},
		{24, amd64.IOAPICLow, 2, second, 0, amd64.IOAPICLow},
		{31, 1<<32 - 1, 3, second, 7, amd64.IOAPICLow | amd64.IOAPICLevel}, // other flags are not passed on
		{32, 0, -int64(linux.ENXIO), nil, 0, 0},
		{1 << 40, 0, -int64(linux.ENXIO), nil, 0, 0},
	} {
		u.want(c.number, CallLine, c.gsi, c.flags)
		if c.chip == nil {
			continue
		}
		vector := amd64.VectorDevice + uint32(c.number)
		check := func(what string, want uint32) {
			t.Helper()
			if c.chip[ioapicSelect] != ioapicEntry+2*c.input || c.chip[ioapicWindow] != want {
				t.Errorf("line %d is %s: register %#x has %#x, want %#x", c.gsi, what, c.chip[ioapicSelect], c.chip[ioapicWindow], want)
			}
		}
		check("open", c.entry|vector)
	}
	u.want(0, CallClose, 2)
	if got := second[ioapicWindow]; got&amd64.IOAPICMasked == 0 {
		t.Errorf("the closed line has the entry %#x", got)
	}
	u.want(2, CallMessage) // the number is free again
	u.want(0, CallDone, 2) // a message has no line
}

// A level-triggered line is masked from its interrupt until the driver has served the device. Otherwise it would interrupt
// again and again.
func TestLevelTriggered(t *testing.T) {
	for _, level := range []bool{true, false} {
		u := newUser(t)
		chip := u.addIOAPIC(0, 24)
		flags := uint64(0)
		if level {
			flags = amd64.IOAPICLevel
		}
		number := uint64(u.call(CallLine, 9, flags))
		waits, _ := u.poller()
		u.interrupt(amd64.VectorDevice + number)
		if masked := chip[ioapicWindow]&amd64.IOAPICMasked != 0; masked != level {
			t.Errorf("level %v: the line is masked: %v", level, masked)
		}
		if Rung != 1<<number {
			t.Errorf("bits %#x", Rung)
		}
		u.yields(1)
		u.resumed(waits, 0)
		u.want(0, CallDone, number)
		if chip[ioapicWindow]&amd64.IOAPICMasked != 0 {
			t.Errorf("level %v: the line stays masked", level)
		}
		Rung = 0
	}
}

// Interrupts that arrive together are all recorded. One of another vector is ignored.
func TestSeveralInterrupts(t *testing.T) {
	u := newUser(t)
	for i := range 5 {
		u.want(int64(i), CallMessage)
	}
	waits, _ := u.poller()
	u.cpu.rung = 1<<1 | 1<<4
	u.interrupt(amd64.VectorDevice + 3)
	if Rung != 1<<1|1<<3|1<<4 || u.cpu.rung != 0 {
		t.Errorf("bits %#x, not served: %#x", Rung, u.cpu.rung)
	}
	u.yields(1)
	u.resumed(waits, 0)
	Rung = 0
	u.interrupt(amd64.VectorLegacy + 7)
	u.interrupt(amd64.VectorSpurious)
	if Rung != 0 {
		t.Errorf("a spurious interrupt sets %#x", Rung)
	}
}

// A message names the first CPU and the vector of its interrupt (SDM volume 3, 11.11).
func TestMessageOf(t *testing.T) {
	machineCore.cpus[0].apic = 3
	defer func() { machineCore.cpus[0].apic = 0 }()
	if address, data := MessageOf(5); address != 0xfee0_3000 || data != amd64.VectorDevice+5 {
		t.Errorf("%#x, %#x", address, data)
	}
}

// Registers are mapped uncached, with the offset in their page. Memory of the machine cannot be mapped in this way, and a
// program cannot unmap registers with its memory.
func TestMapRegisters(t *testing.T) {
	m := newMachine(t, 1, 1) // registers are not pages of memory, which a check of pages would expect
	u := user{m.cpus[0], t}
	k := m.core
	for _, c := range []struct{ pa, size uint64 }{{0xfee0_0000, 4096}, {0xfec0_0010, 4}, {0xe000_0ffc, 8}, {1 << 40, 64 << 10}} {
		at := uint64(u.call(CallMapRegisters, c.pa, c.size))
		for _, offset := range []uint64{0, c.size - 1} {
			entry, size := k.tables.Lookup(at + offset)
			const flags = amd64.PagePresent | amd64.PageWrite | amd64.PageUncached | amd64.PageNoExecute
			if pa := amd64.Physical(entry) + (at+offset)%size; pa != c.pa+offset || entry&flags != flags {
				t.Errorf("%#x is mapped to %#x with the entry %#x", c.pa+offset, pa, entry)
			}
		}
		u.fails(linux.EFAULT, linux.SYS_GETRANDOM, at, 4, 0)
	}
	for _, c := range []struct {
		pa, size uint64
		want     linux.Errno
	}{
		{0x1000, 4096, linux.EBUSY}, {modelMemory - 1, 1, linux.EBUSY}, {modelMemory - 4096, 1 << 20, linux.EBUSY},
		{1 << 40, 0, linux.EINVAL}, {1 << 40, 1<<30 + 1, linux.EINVAL}, {1 << 52, 1, linux.EINVAL}, {^uint64(0), 8, linux.EINVAL},
	} {
		u.fails(c.want, CallMapRegisters, c.pa, c.size)
	}
}

// Memory for devices is contiguous and zeroed.
func TestDeviceMemory(t *testing.T) {
	m := newMachine(t, 1, 1) // the pages belong to no owner that a check of pages knows
	u := user{m.cpus[0], t}
	for _, count := range []uint64{1, 3, 512, 700} {
		pa := uint64(u.call(CallAllocate, count))
		b := m.core.physicalAt(pa, count*pageSize)
		if pa%pageSize != 0 || b == nil {
			t.Fatalf("%d pages at %#x", count, pa)
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("byte %d of %d pages is %d", i, count, b[i])
			}
		}
		for i := range b {
			b[i] = 0xaa
		}
	}
	for _, count := range []uint64{0, modelMemory / pageSize, 1 << 52, ^uint64(0)} {
		u.fails(linux.ENOMEM, CallAllocate, count)
	}
}

// Bytes in the window have a physical address if all of them are in the window.
func TestInWindow(t *testing.T) {
	machineCore.windowEnd = modelMemory
	defer func() { machineCore.windowEnd = 0 }()
	for _, c := range []struct {
		va   uint64
		n    int
		want bool
	}{
		{boot.Window, 1, true}, {boot.Window, modelMemory, true}, {boot.Window + modelMemory - 1, 1, true}, {boot.Window + 123, 4096, true},
		{boot.Window - 1, 1, false}, {0, 1, false}, {boot.Window, modelMemory + 1, false}, {boot.Window + modelMemory, 1, false}, {^uint64(0), 1, false},
	} {
		pa, ok := InWindow(c.va, c.n)
		if ok != c.want || ok && pa != c.va-boot.Window {
			t.Errorf("%d bytes at %#x: %#x, %v; want %v", c.n, c.va, pa, ok, c.want)
		}
	}
}

// A byte has a physical address if its page is mapped, also in a big page.
func TestPhysical(t *testing.T) {
	u := newUser(t)
	tables := machineCore.tables
	machineCore.tables = u.kernel().tables
	defer func() { machineCore.tables = tables }()
	const size = 4 * amd64.BigPageSize
	at := u.memory(size/pageSize, protRead|protWrite)
	if pa, ok := Physical(at); ok {
		t.Errorf("memory that was not used is at %#x", pa)
	}
	for va := at; va < at+size; va += pageSize {
		u.write(va+16, va)
		pa, ok := Physical(va + 16)
		if !ok || *word(uint64(u.kernel().window) + pa) != va {
			t.Fatalf("%#x is at %#x, %v", va, pa, ok)
		}
	}
}

// Memory at a physical address can be read if the window maps it.
func TestPhysicalAt(t *testing.T) {
	k := newMachine(t, 1, 1).core
	for _, c := range []struct {
		pa, size uint64
		ok       bool
	}{
		{0, 1, true}, {0, modelMemory, true}, {modelMemory - 8, 8, true}, {modelMemory - 8, 9, false},
		{modelMemory, 0, true}, {modelMemory + 1, 0, false}, {1 << 63, 1 << 63, false}, {8, ^uint64(0), false},
	} {
		if b := k.physicalAt(c.pa, c.size); (b != nil) != c.ok || c.ok && uint64(len(b)) != c.size {
			t.Errorf("%d bytes at %#x: %d bytes", c.size, c.pa, len(b))
		}
	}
	k.machine.Usable[1], k.machine.Ranges = boot.Range{Start: 1 << 32, End: 1<<32 + 8192}, 2
	for _, c := range []struct {
		pa, size uint64
		ok       bool
	}{
		{0, modelMemory, true}, {0, modelMemory + 1, false}, {modelMemory, 1, false}, {1 << 32, 8192, true}, {1<<32 + 1, 8192, false},
		{1<<32 - 1, 2, false}, {1 << 32, ^uint64(0), false},
	} {
		if got := k.usable(c.pa, c.size); got != c.ok {
			t.Errorf("%d bytes at %#x are memory: %v", c.size, c.pa, got)
		}
	}
}

// Ring 3 gets pages until only a reserve is left, and can give them back.
func TestTakeAndGive(t *testing.T) {
	u := newUser(t)
	const most = 1 << 16
	at := u.memory(most*8/pageSize, protRead|protWrite)
	u.write(at, 0)
	u.want(3, CallTake, at, 3)
	seen := map[uint64]bool{}
	for i := range uint64(3) {
		pa := u.read(at + 8*i)
		if pa%pageSize != 0 || pa == 0 || seen[pa] {
			t.Errorf("page %#x", pa)
		}
		seen[pa] = true
	}
	u.want(0, CallTake, at, 0)
	u.want(0, CallGive, at, 3)
	u.fails(linux.EFAULT, CallTake, at, most+1)
	u.fails(linux.EFAULT, CallGive, at, 1<<62)

	taken := u.call(CallTake, at, most)
	free, total := u.kernel().pages.Pages()
	if taken <= 0 || free != total/reserved {
		t.Errorf("%d pages were taken, and %d of %d are left", taken, free, total)
	}
	u.want(0, CallTake, at, 1)
	u.fails(linux.ENOMEM, CallTakeBlock)
	if u.kernel().short.Load() {
		t.Error("the heap is short while it has its reserve")
	}
	const heap = 1 << 10 // pages of the heap, which grows into the reserve
	for page, i := u.memory(heap, protRead|protWrite), uint64(0); !u.kernel().short.Load(); i++ {
		if free, _ := u.kernel().pages.Pages(); free < total/reserved/2 || i == heap {
			t.Fatalf("%d of %d pages are free, and the heap is not short", free, total)
		}
		u.write(page+i*pageSize, 1)
	}
	free, _ = u.kernel().pages.Pages()
	tables := []uint64(nil)
	for pa := u.call(CallTakeTable); pa > 0; pa = u.call(CallTakeTable) {
		tables = append(tables, uint64(pa))
	}
	if left, _ := u.kernel().pages.Pages(); left != total/(2*reserved) {
		t.Errorf("tables leave %d of %d pages", left, total)
	}
	for _, pa := range tables {
		u.kernel().pages.Free(pa)
	}
	u.want(0, CallGive, at, uint64(taken))
	if now, _ := u.kernel().pages.Pages(); now != free+uint64(taken) {
		t.Errorf("%d pages are free, want %d", now, free+uint64(taken))
	}
}

// Ring 3 gets whole blocks while memory is ample, and can give them back as a whole or page by page.
func TestTakeBlock(t *testing.T) {
	u := newUser(t)
	k := u.kernel()
	before, total := k.pages.Pages()
	seen := map[uint64]bool{}
	var last uint64
	for {
		pa := u.call(CallTakeBlock)
		if pa < 0 {
			if pa != -int64(linux.ENOMEM) {
				t.Errorf("the call returns %d", pa)
			}
			break
		}
		last = uint64(pa)
		if last%amd64.BigPageSize != 0 || seen[last] {
			t.Errorf("block %#x", last)
		}
		seen[last] = true
	}
	const each = amd64.BigPageSize / pageSize
	free, _ := k.pages.Pages()
	if len(seen) == 0 || free != before-uint64(len(seen))*each || free < total/8 {
		t.Errorf("%d blocks were taken, and %d of %d pages are left", len(seen), free, total)
	}
	at := u.memory(each*8, protRead|protWrite)
	for i := range uint64(each) {
		u.write(at+i*8, last+i*pageSize)
	}
	u.want(0, CallGive, at, each)
	delete(seen, last)
	for pa := range seen {
		u.want(0, CallGiveBlock, pa)
	}
	if pa := u.call(CallTakeBlock); pa < 0 {
		t.Errorf("after all were given back: %d", pa)
	} else {
		u.want(0, CallGiveBlock, uint64(pa))
	}
}

// A new address space has an empty lower half and the kernel's upper half, which later changes reach, too.
func TestNewAddressSpace(t *testing.T) {
	m := newMachine(t, 1, 1) // the root is a page of no owner that a check of pages knows
	u := user{m.cpus[0], t}
	k := m.core
	root := uint64(u.call(CallSpace))
	entries := func(pa uint64) []byte { return bytesAt(uint64(k.window)+pa, pageSize) }
	for i, b := range entries(root)[:pageSize/2] {
		if b != 0 {
			t.Fatalf("byte %d of the lower half is %d", i, b)
		}
	}
	if string(entries(root)[pageSize/2:]) != string(entries(k.tables.Root)[pageSize/2:]) {
		t.Error("the upper half is not the kernel's")
	}
	if !k.tables.Pinned {
		t.Error("the kernel's root table may change")
	}
	k.tables.Map(boot.DynamicHigh-pageSize, 0x5000, pageSize, amd64.PageWrite, k.allocPage)
	copyOf := k.tables
	copyOf.Root = root
	if entry, _ := copyOf.Lookup(boot.DynamicHigh - pageSize); amd64.Physical(entry) != 0x5000 {
		t.Errorf("a page that was mapped later has the entry %#x", entry)
	}
	if again := u.call(CallSpace); again <= 0 || uint64(again) == root {
		t.Errorf("another root: %#x", again)
	}
}

// The CPUs that use an address space which is retired switch to the kernel's. Other CPUs are not disturbed.
func TestRetire(t *testing.T) {
	const root = 0x7000
	for uses := range uint64(4) { // the set of the CPUs that use it
		all := newUsers(t, 2)
		u, other := all[0].on(), all[1]
		k, kicks := u.kernel(), u.machine.kicks
		before := [2]int{u.flushes, other.flushes}
		for n, p := range []user{u, other} {
			if uses>>n&1 != 0 {
				p.cpu.root, p.cpu.active, p.cr3 = root, 1, root
			}
		}
		u.machine.later(1, func() { other.on(); k.flushIfAsked(other.cpu); u.on() }) // when this CPU waits
		u.want(0, CallRetire, root, uses)
		for n, p := range []user{u, other} {
			if p.cpu.root != k.tables.Root || p.cr3 != k.tables.Root || p.cpu.active&1 != 0 {
				t.Errorf("set %b, CPU %d: root %#x, CR3 %#x, want %#x", uses, n, p.cpu.root, p.cr3, k.tables.Root)
			}
			if flushed := p.flushes != before[n]; flushed != (uses>>n&1 != 0) {
				t.Errorf("set %b, CPU %d: it drops its translations: %v", uses, n, flushed)
			}
		}
		if kicked := u.machine.kicks != kicks; kicked != (uses&2 != 0) || k.retired != 0 {
			t.Errorf("set %b: the other CPU is interrupted: %v; %#x is being retired", uses, kicked, k.retired)
		}
	}
}

// CallFlush flushes the CPUs of its set, and reports whether an idle CPU has not done so. CallKick and CallSave ignore CPUs that do not exist.
func TestUserRequests(t *testing.T) {
	all := newUsers(t, 2)
	u, other := all[0].on(), all[1]
	before := u.flushes
	u.want(1, CallFlush, 2, 0) // the other CPU is idle
	if u.flushes != before || !other.cpu.flush.open() {
		t.Error("the set names the other CPU")
	}
	u.want(0, CallFlush, 1, 0)
	if u.flushes == before {
		t.Error("the set names this CPU")
	}
	kicks := u.machine.kicks
	u.want(0, CallKick, 1)
	u.want(0, CallKick, 2)
	u.want(0, CallKick, ^uint64(0))
	if u.machine.kicks != kicks+1 {
		t.Errorf("%d interrupts", u.machine.kicks-kicks)
	}
	u.want(0, CallSave, 0)
	u.want(0, CallSave, 9)
	u.fails(linux.ENOSYS, CallStandIn+1)
}

// The state of the x87 unit stays in the processor until another CPU needs it. Saving it stores the base of GS, too.
func TestSaveContext(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	u.write(at+ContextGSBase, 0)
	u.write(at+ContextLive, 1)
	const msrKernelGS = 0xc000_0102
	u.msrs[msrKernelGS] = 0x1234
	u.cpu.user = uintptr(at)
	u.want(0, CallSave, 0)
	if base, live := u.read(at+ContextGSBase), u.read(at+ContextLive); base != 0x1234 || live != 0 || u.cpu.user != 0 {
		t.Errorf("base %#x, live %d, context %#x", base, live, u.cpu.user)
	}
	u.write(at+ContextLive, 1)
	u.want(0, CallSave, 0) // there is nothing to save
	if u.read(at+ContextLive) != 1 {
		t.Error("a context is saved that is not in the processor")
	}
}
