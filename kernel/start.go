package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/page"
)

// Addresses of functions and data of the entry code, which stores them here.
var entries struct {
	Trap    uintptr // target of the SYSCALL instruction
	Vectors uintptr
	Idle    uintptr
	Program uintptr // entry point of the Go runtime

	Sigreturn uintptr // return address of signal handlers
	CPU       uintptr // entry point of another CPU
	CrashG    uintptr // address of the g for code that runs during a crash; the stack of this g has no bounds

	Isolated uintptr // the entry code for CPUs that are vulnerable to Meltdown: isolation.go
	Fast     uintptr // two ways to ring 3, which jump to the code at Isolated on such CPUs
	Slow     uintptr
}

// Start is called by the entry code, once, on the first CPU. info is the physical address of the boot information
// of the monitor or boot loader; magic is the value of EAX at the start, which identifies its format. Start runs on
// a temporary stack without overflow detection. It returns as soon as the CPU's own stacks are mapped and
// exceptions can be reported.
func Start(info, magic uint64) {
	k := &machineCore
	k.window, k.serialInterrupt = boot.Window, none
	startConsole()
	k.findControl()
	switch magic {
	case boot.Multiboot2Magic:
		k.must(boot.ParseMultiboot2(physical(boot.WindowAtBoot), info, &k.machine))
	case boot.EFIMagic:
		k.must(boot.ParseEFI(physical(boot.WindowAtBoot), info, &k.machine))
	default:
		k.must(boot.ParsePVH(physical(boot.WindowAtBoot), info, &k.machine))
	}
	k.have = amd64.ReadFeatures()
	Emulated = amd64.Emulated()
	k.findTable()
	k.addMemory(0, boot.WindowAtBoot)
	k.mapAll()

	c := &k.cpus[0]
	k.cpuCount = 1
	if !k.mapStacks(c) {
		k.must(noMemory)
	}
	k.isolate()
	k.fillIDT()
	k.prepare(c)
	k.features(c)
	amd64.WriteCR3(k.tables.Root)
	k.addMemory(boot.WindowAtBoot, k.windowEnd)
	k.install(c)
}

// Begin is called by the entry code after Start, on the CPU's stack. It starts the clock and the other CPUs, loads
// the program, and returns the frame of the program's first thread, as Enter does.
func Begin() (frameAt, vector uintptr) {
	k := &machineCore
	c := &k.cpus[0]
	amd64.SilencePICs()
	k.startAPIC(c)
	k.calibrate()
	k.startRandom()
	k.readFirmware()

	k.lock(c)
	k.loadProgram(c)
	return k.leave(c)
}

// must ends the machine with the message p, unless p is empty.
func (k *core) must(p boot.Problem) {
	if p != "" {
		k.say("loam: ")
		k.say(string(p))
		k.say("\n")
		k.powerOff(statusFailed)
	}
}

// noMemory is the Problem of a machine with too little memory to start the kernel.
const noMemory boot.Problem = "the machine has too little memory to start; give it more (-m)"

// findTable sets windowEnd, the end of the mapped physical memory, and finds memory for the page allocator's table below it.
func (k *core) findTable() {
	const most = boot.DynamicLow - boot.Window
	k.windowEnd = boot.WindowAtBoot
	highest := uint64(0)
	for _, r := range k.machine.Usable[:k.machine.Ranges] {
		highest = max(highest, min(r.End, most))
	}
	k.windowEnd = max(k.windowEnd, highest)
	size := page.TableSize(highest)
	for i := range freePieces * k.machine.Ranges {
		r := k.freeMemory(i)
		if r.Start < r.End && r.End <= boot.WindowAtBoot && r.Size() >= size {
			k.allocatorTable = boot.Range{Start: r.Start, End: r.Start + size}
			k.pages.Init(k.window, r.Start, highest)
			return
		}
	}
	k.must(noMemory)
}

// addMemory adds the free memory between two physical addresses to the allocator.
func (k *core) addMemory(low, high uint64) {
	for i := range freePieces * k.machine.Ranges {
		r := k.freeMemory(i)
		if r.Start == k.allocatorTable.Start {
			r.Start = k.allocatorTable.End
		}
		r = boot.Range{Start: max(r.Start, low), End: min(r.End, high)}
		if r.Start < r.End {
			k.pages.Add(r.Start, r.End)
		}
	}
}

// freePieces is the maximum number of free pieces in a range of memory.
const freePieces = 8

// freeMemory returns the i-th piece of free memory; each range of the monitor's memory map has freePieces of them. The
// pieces do not contain the program, its files and configuration, the command line and the memory below boot.Load. A piece
// may be empty, with its end before its start.
func (k *core) freeMemory(i int) boot.Range {
	image := boot.Range{Start: boot.Load + k.machine.Offset, End: max(k.imageEnd(), k.files().End)}
	r := k.machine.Usable[i/freePieces].Without(image)[i/4%2].Without(k.machine.Module)[i/2%2].Without(k.machine.CommandLine)[i%2]
	start := max(r.Start, boot.Load)
	return boot.Range{Start: (start + amd64.PageSize - 1) &^ (amd64.PageSize - 1), End: r.End}
}

// imageEnd returns the physical address of the first page after the program and the page tables of the entry code.
func (k *core) imageEnd() uint64 {
	end := uint64(boot.Image + boot.Load)
	for at := 0; ; {
		s, next, ok := boot.NextSegment(k.imageHeader(), at)
		if !ok {
			return k.imagePhysical((end + amd64.PageSize - 1) &^ (amd64.PageSize - 1))
		}
		end, at = max(end, s.End), next
	}
}

// imagePhysical returns the physical address of an address of the program at boot.Image.
func (k *core) imagePhysical(va uint64) uint64 { return va - boot.Image + k.machine.Offset }

// files returns the physical addresses of the program's files; an empty Range if it has none.
func (k *core) files() boot.Range {
	r := boot.Files(k.imageHeader())
	if r.End == 0 {
		return r
	}
	return boot.Range{Start: r.Start + k.machine.Offset, End: r.End + k.machine.Offset}
}

// Files returns the archives that are attached to the program (boot.Archive); empty if there are none.
func Files() []byte {
	k := &machineCore
	r := k.files()
	return k.physicalAt(r.Start, r.Size())
}

// imageHeader returns the first page of the program's file, with its ELF and program headers.
func (k *core) imageHeader() []byte {
	return bytesAt(uint64(k.window)+boot.Load+k.machine.Offset, amd64.PageSize)
}

// mapAll builds the permanent page tables. Physical memory is mapped at boot.Window without execute rights
// (mapWindow), and each segment of the program at boot.Image with its own rights. Nothing else is mapped: not page
// 0, nor any of the lower half.
func (k *core) mapAll() {
	k.dynamic.Init(boot.DynamicLow, boot.DynamicHigh)
	k.zeroed = boot.Zeroed(k.imageHeader())
	k.tables.Window = k.window
	root, ok := k.pages.Alloc()
	if !ok {
		k.must(noMemory)
	}
	k.tables.Root = root
	k.mapWindow()
	k.mapAPIC()
	for at := 0; ; {
		s, next, ok := boot.NextSegment(k.imageHeader(), at)
		if !ok {
			return
		}
		k.mapSegment(s)
		at = next
	}
}

// mapWindow maps all memory at boot.Window. Pages that are read-only at boot.Image are read-only in the window too.
func (k *core) mapWindow() {
	flags := amd64.PageGlobal | k.noExecute()
	start, end := boot.Load+k.machine.Offset, k.imageEnd()
	for pa := uint64(0); pa < k.windowEnd; pa += amd64.BigPageSize {
		if pa+amd64.BigPageSize <= start || pa >= end {
			k.mustMap(uint64(k.window)+pa, pa, amd64.BigPageSize, flags|amd64.PageWrite)
			continue
		}
		for at := pa; at < pa+amd64.BigPageSize; at += amd64.PageSize {
			write := uint64(amd64.PageWrite)
			if k.isReadOnly(boot.Image + at - k.machine.Offset) {
				write = 0
			}
			k.mustMap(uint64(k.window)+at, at, amd64.PageSize, flags|write)
		}
	}
}

// isReadOnly reports whether an address is in a read-only segment of the program.
func (k *core) isReadOnly(va uint64) bool {
	for at := 0; ; {
		s, next, ok := boot.NextSegment(k.imageHeader(), at)
		if !ok {
			return false
		}
		if va >= s.Start && va < s.End && !s.Writable {
			return true
		}
		at = next
	}
}

// mapSegment maps a segment of the program at boot.Image, with the segment's rights. Variables that are populated
// on demand are left out.
func (k *core) mapSegment(s boot.Segment) {
	flags := uint64(amd64.PageGlobal)
	if s.Writable {
		flags |= amd64.PageWrite
	}
	if !s.Program {
		flags |= k.noExecute()
	}
	end := s.End
	if k.zeroed.Start > s.Start && k.zeroed.Start < end {
		end = k.zeroed.Start // the page tables of the entry code follow, which the program must not access
	}
	for va := s.Start &^ (amd64.PageSize - 1); va < end; va += amd64.PageSize {
		k.mustMap(va, k.imagePhysical(va), amd64.PageSize, flags)
	}
}

// mustMap maps a page and ends the machine if there is no memory for the tables.
func (k *core) mustMap(va, pa, size, flags uint64) {
	if !k.tables.Map(va, pa, size, flags, k.allocPage) {
		k.must(noMemory)
	}
}

func (k *core) allocPage() (uint64, bool) { return k.pages.Alloc() }

// noExecute returns the page flag for memory without code; 0 if the CPU does not support it.
func (k *core) noExecute() uint64 {
	if k.have.NoExecute {
		return amd64.PageNoExecute
	}
	return 0
}
