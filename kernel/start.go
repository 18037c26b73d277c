package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/frame"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// The state of the kernel. The lock (lock.go) protects all of it, except for what is set once at the start.
var (
	frames  frame.Allocator
	tables  amd64.Tables
	dynamic space.Space // the program's memory between boot.DynamicLow and boot.DynamicHigh
	threads thread.Table
	actions [signal.Max + 1]signal.Action

	have      amd64.Features // features of the processor; set once
	apic      amd64.APIC     // access to the local APICs; set once
	machine   boot.Info      // boot information of the machine; set once
	windowEnd uint64         // end of the physical memory that is mapped in the window; set once
	zeroed    boot.Range     // range of the program's variables whose pages are populated on demand; set once
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
}

// Start is called by the entry code, once, on the first CPU. info is the physical address of the boot information
// of the monitor or boot loader; magic is the value of EAX at the start, which identifies its format. Start runs on
// a temporary stack without overflow detection. It returns as soon as the CPU's own stacks are mapped and
// exceptions can be reported.
func Start(info, magic uint64) {
	startConsole()
	findControl()
	if magic == boot.Multiboot2Magic {
		must(boot.ParseMultiboot2(physical(boot.WindowAtBoot), info, &machine))
	} else {
		must(boot.ParsePVH(physical(boot.WindowAtBoot), info, &machine))
	}
	have = amd64.ReadFeatures()
	Emulated = amd64.Emulated()
	findTable()
	addMemory(0, boot.WindowAtBoot)
	mapAll()

	c := &cpus[0]
	cpuCount = 1
	if !c.mapStacks() {
		must(noMemory)
	}
	fillIDT()
	c.prepare()
	c.features()
	amd64.WriteCR3(tables.Root)
	addMemory(boot.WindowAtBoot, windowEnd)
	c.install()
}

// Begin is called by the entry code after Start, on the CPU's stack. It starts the clock and the other CPUs, loads
// the program, and returns the frame of the program's first thread, as Enter does.
func Begin() (frameAt, vector uintptr) {
	c := &cpus[0]
	amd64.SilencePICs()
	c.startAPIC()
	calibrate()
	startRandom()
	readFirmware()

	lock(c)
	loadProgram(c)
	return leave(c)
}

// must ends the machine with the message p, unless p is empty.
func must(p boot.Problem) {
	if p != "" {
		say("loam: ")
		say(string(p))
		say("\n")
		powerOff(statusFailed)
	}
}

// noMemory is the Problem of a machine with too little memory to start the kernel.
const noMemory boot.Problem = "the machine has too little memory to start; give it more (-m)"

// frameTable is the memory that the page allocator uses for its own table; set once.
var frameTable boot.Range

// findTable sets windowEnd and finds memory for the allocator's table in the part of memory that is already mapped.
func findTable() {
	const most = boot.DynamicLow - boot.Window
	windowEnd = boot.WindowAtBoot
	highest := uint64(0)
	for _, r := range machine.Usable[:machine.Ranges] {
		highest = max(highest, min(r.End, most))
	}
	windowEnd = max(windowEnd, highest)
	size := frame.TableSize(highest)
	for i := range freePieces * machine.Ranges {
		r := freeMemory(i)
		if r.Start < r.End && r.End <= boot.WindowAtBoot && r.Size() >= size {
			frameTable = boot.Range{Start: r.Start, End: r.Start + size}
			frames.Init(windowAddress, r.Start, highest)
			return
		}
	}
	must(noMemory)
}

// addMemory adds the free memory between two physical addresses to the allocator.
func addMemory(low, high uint64) {
	for i := range freePieces * machine.Ranges {
		r := freeMemory(i)
		if r.Start == frameTable.Start {
			r.Start = frameTable.End
		}
		r = boot.Range{Start: max(r.Start, low), End: min(r.End, high)}
		if r.Start < r.End {
			frames.Add(r.Start, r.End)
		}
	}
}

// freePieces is the maximum number of free pieces in a range of memory.
const freePieces = 4

// freeMemory returns the i-th piece of free memory; each range of the monitor's memory map has freePieces of them. The
// pieces do not contain the program, its files and configuration, the command line and the first MiB. A piece may be empty,
// with its end before its start.
func freeMemory(i int) boot.Range {
	r := machine.Usable[i/freePieces].Without(machine.Module)[i/2%2].Without(machine.CommandLine)[i%2]
	start := max(r.Start, imageEnd(), boot.Files(imageHeader()).End)
	return boot.Range{Start: (start + amd64.PageSize - 1) &^ (amd64.PageSize - 1), End: r.End}
}

// imageEnd returns the physical address of the first page after the program and the page tables of the entry code.
func imageEnd() uint64 {
	end := uint64(boot.Load)
	for at := 0; ; {
		s, next, ok := boot.NextSegment(imageHeader(), at)
		if !ok {
			return (end + amd64.PageSize - 1) &^ (amd64.PageSize - 1)
		}
		end, at = max(end, s.End-boot.Image), next
	}
}

// Files returns the archives that are attached to the program (boot.Archive); empty if there are none.
func Files() []byte {
	r := boot.Files(imageHeader())
	return physicalAt(r.Start, r.Size())
}

// imageHeader returns the first page of the program's file, with its ELF and program headers.
func imageHeader() []byte { return bytesAt(boot.Window+boot.Load, amd64.PageSize) }

// mapAll builds the permanent page tables. Physical memory is mapped at boot.Window without execute rights
// (mapWindow), and each segment of the program at boot.Image with its own rights. Nothing else is mapped: not page
// 0, nor any of the lower half.
func mapAll() {
	dynamic.Init(boot.DynamicLow, boot.DynamicHigh)
	zeroed = boot.Zeroed(imageHeader())
	tables.Window = boot.Window
	root, ok := frames.Alloc()
	if !ok {
		must(noMemory)
	}
	tables.Root = root
	mapWindow()
	mapAPIC()
	for at := 0; ; {
		s, next, ok := boot.NextSegment(imageHeader(), at)
		if !ok {
			return
		}
		mapSegment(s)
		at = next
	}
}

// mapWindow maps all memory at boot.Window. Pages that are read-only at boot.Image are read-only in the window too.
func mapWindow() {
	flags := amd64.PageGlobal | noExecute()
	end := imageEnd()
	for pa := uint64(0); pa < windowEnd; pa += amd64.BigPageSize {
		if pa+amd64.BigPageSize <= boot.Load || pa >= end {
			mustMap(boot.Window+pa, pa, amd64.BigPageSize, flags|amd64.PageWrite)
			continue
		}
		for at := pa; at < pa+amd64.BigPageSize; at += amd64.PageSize {
			write := uint64(amd64.PageWrite)
			if isReadOnly(boot.Image + at) {
				write = 0
			}
			mustMap(boot.Window+at, at, amd64.PageSize, flags|write)
		}
	}
}

// isReadOnly reports whether an address is in a read-only segment of the program.
func isReadOnly(va uint64) bool {
	for at := 0; ; {
		s, next, ok := boot.NextSegment(imageHeader(), at)
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
func mapSegment(s boot.Segment) {
	flags := uint64(amd64.PageGlobal)
	if s.Writable {
		flags |= amd64.PageWrite
	}
	if !s.Program {
		flags |= noExecute()
	}
	end := s.End
	if zeroed.Start > s.Start && zeroed.Start < end {
		end = zeroed.Start // the page tables of the entry code follow, which the program must not access
	}
	for va := s.Start &^ (amd64.PageSize - 1); va < end; va += amd64.PageSize {
		mustMap(va, va-boot.Image, amd64.PageSize, flags)
	}
}

// mustMap maps a page and ends the machine if there is no memory for the tables.
func mustMap(va, pa, size, flags uint64) {
	if !tables.Map(va, pa, size, flags, allocFrame) {
		must(noMemory)
	}
}

func allocFrame() (uint64, bool) { return frames.Alloc() }

// noExecute returns the page flag for memory without code; 0 if the CPU does not support it.
func noExecute() uint64 {
	if have.NoExecute {
		return amd64.PageNoExecute
	}
	return 0
}
