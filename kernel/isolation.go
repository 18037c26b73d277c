package kernel

import (
	"encoding/binary"

	"loam/arch/amd64"
	"loam/boot"
)

// Page-table isolation. On a CPU that is vulnerable to Meltdown, ring 3 can read all memory that its page tables map. There,
// ring 3 runs on page tables of its own. They map the lower half, and of the kernel only what the processor and the first
// instructions of the entry code use:
//
//   - the pages with the entry code for such CPUs (loam_isolated_amd64.s), which other CPUs do not use
//   - a copy of the interrupt descriptor table, at boot.Entry
//   - an entryArea for each CPU, in the pages after it
//
// The kernel decides at the start, before other CPUs run. Then it replaces the entry points, and writes jumps over the first
// instructions of the two ways to ring 3. So the code for CPUs that are not vulnerable contains no test.
//
// An address space has two root tables. Their entries for the lower half are equal, so they share all other tables
// (amd64.Tables.Second). CR3 always has the kernel's table in ring 0, except in the code at entries.Isolated. Each write of CR3
// drops all translations, because no mapping is global: features clears CR4.PGE. So a CPU that enters ring 0 has no translation of
// the second table, and a flush only has to interrupt CPUs in ring 3.

// entryArea is the memory of a CPU that is mapped while ring 3 runs. GS points to it in the code at entries.Isolated. The entry
// code knows the offsets of its fields.
type entryArea struct {
	cpu     uintptr // address of the CPU's structure
	root    uint64  // value of CR3 for the kernel, while the CPU is in ring 3
	scratch uint64  // the entry code saves a register here
	exit    uintptr // address of the frame from which IRET returns to ring 3
	task    [amd64.TaskSize]byte
	gdt     amd64.GDT

	// Stacks. The processor stores its part of a frame there; then the entry code moves it to another stack. The frames of
	// exceptions that end the machine, and the words after their stacks, are for the function last of the entry code.
	trap      [amd64.FrameSize]byte // stack 1 of the interrupt stack table
	debug     [amd64.FrameSize]byte // stack 3
	debugSelf entrySelf
	last      [amd64.FrameSize]byte // stack 2
	lastSelf  entrySelf

	_ [amd64.PageSize - 752]byte
}

// entrySelf has the values for an exception that may occur while GS belongs to ring 3.
type entrySelf struct {
	cpu  uintptr
	root uint64 // value of CR3 for the kernel
}

// exitSize is the number of bytes that IRET pops.
const exitSize = 40

// Numbers of the pieces of the code at entries.Isolated, 16 bytes each. Those before belong to the vectors.
const (
	stubCall = amd64.VectorCount + iota // target of the SYSCALL instruction
	stubFast                            // replaces entries.Fast
	stubSlow                            // replaces entries.Slow

	stubSize = 16
)

// Isolated reports whether ring 3 runs on page tables of its own, because the CPU is vulnerable to Meltdown.
func Isolated() bool {
	k := &machineCore
	return k.ring3.Root != 0
}

// Meltdown returns the content of Linux's file /sys/devices/system/cpu/vulnerabilities/meltdown.
func Meltdown() string {
	k := &machineCore
	return k.meltdown()
}

func (k *core) meltdown() string {
	switch {
	case !k.have.Meltdown:
		return "Not affected"
	case k.ring3.Root == 0:
		return "Vulnerable" // but the CPU cannot run ring 3
	}
	return "Mitigation: PTI"
}

// isolate prepares page-table isolation if the CPU needs it. A CPU that cannot run ring 3 does not need it.
func (k *core) isolate() {
	if !k.have.Meltdown || !k.runsUser() {
		return
	}
	entries.Vectors, entries.Trap = entries.Isolated, entries.Isolated+stubCall*stubSize
	k.redirect(entries.Fast, entries.Isolated+stubFast*stubSize)
	k.redirect(entries.Slow, entries.Isolated+stubSlow*stubSize)
	root, ok := k.pages.Alloc()
	if !ok {
		k.must(noMemory)
	}
	k.ring3 = amd64.Tables{Root: root, Window: k.window}
	for va := uint64(entries.Isolated) &^ (amd64.PageSize - 1); va < uint64(entries.Isolated)+boot.IsolatedSize; va += amd64.PageSize {
		k.mustMapRing3(va, k.imagePhysical(va), 0)
	}
}

// redirect writes a jump to another address at the start of a function. Later, the page tables make the function read-only.
func (k *core) redirect(from, to uintptr) {
	const size = 5 // JMP with a relative address of 32 bits
	code := bytesAt(uint64(k.window)+k.imagePhysical(uint64(from)), size)
	code[0] = 0xe9
	binary.LittleEndian.PutUint32(code[1:], uint32(to-from-size))
}

// mustMapRing3 maps a page for ring 0 in the page tables of ring 3.
func (k *core) mustMapRing3(va, pa, flags uint64) {
	if !k.ring3.Map(va, pa, amd64.PageSize, flags, k.allocPage) {
		k.must(noMemory)
	}
}

// mapEntry allocates a page for the entry code, and maps it in the kernel's page tables and in those of ring 3. It returns the page's
// address in the window.
func (k *core) mapEntry(va, flags uint64) uintptr {
	pa, ok := k.pages.Alloc()
	if !ok {
		k.must(noMemory)
	}
	k.mustMap(va, pa, amd64.PageSize, flags|k.noExecute())
	k.mustMapRing3(va, pa, flags|k.noExecute())
	return k.window + uintptr(pa)
}

// prepareArea makes the entryArea of a CPU if ring 3 is isolated. The first CPU also makes the copy of the interrupt
// descriptor table.
func (k *core) prepareArea(c *cpu) {
	if k.ring3.Root == 0 || c.area != 0 {
		return
	}
	if c.number == 0 {
		k.copyIDT(k.mapEntry(boot.Entry, 0))
	}
	c.area = boot.Entry + uintptr(1+c.number)*amd64.PageSize
	a := areaAt(k.mapEntry(uint64(c.area), amd64.PageWrite))
	a.cpu = c.self
	a.debugSelf = entrySelf{c.self, k.tables.Root}
	a.lastSelf = a.debugSelf
	trap, debug, last := a.stackEnds(c.area)
	a.exit = trap - exitSize
	putAddress(a.task[amd64.TaskStacks:], trap)
	putAddress(a.task[amd64.TaskStacks+8:], last)
	putAddress(a.task[amd64.TaskStacks+16:], debug)
	a.task[amd64.TaskMapOffset] = amd64.TaskSize
	a.gdt = amd64.NewGDT(c.area + areaTask)
}

// copyIDT writes the interrupt descriptor table to a page.
func (k *core) copyIDT(page uintptr) {
	for i, gate := range k.idt {
		binary.LittleEndian.PutUint64(bytesAt(uint64(page)+uint64(i)*16, 8), gate[0])
		binary.LittleEndian.PutUint64(bytesAt(uint64(page)+uint64(i)*16+8, 8), gate[1])
	}
}

// descriptors returns the addresses of the descriptor tables that a CPU uses.
func (k *core) descriptors(c *cpu) (gdt, idt uintptr) {
	if c.area != 0 {
		return c.area + areaGDT, boot.Entry
	}
	return addressOf(&c.gdt), addressOf(&k.idt)
}
