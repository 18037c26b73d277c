package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/frame"
	"loam/kernel/signal"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// The state of the kernel. All of it is under the lock (lock.go), but for what is
// set here once and never changed.
var (
	frames  frame.Allocator
	tables  amd64.Tables
	dynamic space.Space // from boot.DynamicLow to boot.DynamicHigh
	threads thread.Table
	actions [signal.Max + 1]signal.Action

	have      amd64.Features // set once
	apic      amd64.APIC     // set once
	machine   boot.Info      // set once
	windowEnd uint64         // what of physical memory is seen; set once
	zeroed    boot.Range     // variables of the program for which pages appear; set once
)

// Addresses in the entry code, which it fills in.
var entries struct {
	Trap    uintptr // of the SYSCALL instruction
	Vectors uintptr
	Idle    uintptr
	Program uintptr // where the Go runtime begins

	Sigreturn uintptr // where signal handlers return to
	CPU       uintptr // where another CPU begins
	CrashG    uintptr // a g whose stack has no bounds
}

// Start is called by the entry code, once, with the physical address of what the
// monitor or boot loader says, and what EAX said of it. It runs on a stack that nothing
// watches, and ends as soon as there are others, and faults can be told of.
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

// Begin is called by the entry code after Start, on the CPU's stack. What it returns is
// gone on with: the first thread.
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

// must ends the machine if something is wrong with it.
func must(p boot.Problem) {
	if p != "" {
		say("loam: ")
		say(string(p))
		say("\n")
		powerOff(statusFailed)
	}
}

// noMemory is the Problem of a machine in which not even the kernel has room.
const noMemory boot.Problem = "the machine has too little memory to start; give it more (-m)"

// frameTable is the memory that the allocator needs for itself; set once.
var frameTable boot.Range

// findTable sets how much of physical memory there is to see, and finds room for the
// allocator's table in the part that is seen already.
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

// addMemory gives the allocator the free memory between two addresses.
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

// freePieces is how many pieces a range of memory has at most.
const freePieces = 4

// freeMemory is one of the pieces of memory that the monitor says is free, freePieces
// for each of its ranges, without what the program, its files and configuration, the
// command line and the first MiB are in. It may be empty, with its end before its start.
func freeMemory(i int) boot.Range {
	r := machine.Usable[i/freePieces].Without(machine.Module)[i/2%2].Without(machine.CommandLine)[i%2]
	start := max(r.Start, imageEnd(), boot.Files(imageHeader()).End)
	return boot.Range{Start: (start + amd64.PageSize - 1) &^ (amd64.PageSize - 1), End: r.End}
}

// imageEnd is the physical address behind the program and the page tables of the
// entry code.
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

// Files are the archives that the program was given (boot.Archive); there may be none.
func Files() []byte {
	r := boot.Files(imageHeader())
	return physicalAt(r.Start, r.Size())
}

func imageHeader() []byte { return bytesAt(boot.Window+boot.Load, amd64.PageSize) }

// mapAll makes the page tables that stay: physical memory at boot.Window, without
// the right to execute (mapWindow); the program at boot.Image, each part with its own rights;
// nothing else. Page 0 and the whole lower half are not there.
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

// mapWindow shows all memory at boot.Window. What cannot be written at boot.Image
// cannot be written there either.
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

// isReadOnly reports whether an address is in a part of the program that must not be
// written.
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
		end = zeroed.Start // the page tables of the entry code follow, which are not the program's
	}
	for va := s.Start &^ (amd64.PageSize - 1); va < end; va += amd64.PageSize {
		mustMap(va, va-boot.Image, amd64.PageSize, flags)
	}
}

func mustMap(va, pa, size, flags uint64) {
	if !tables.Map(va, pa, size, flags, allocFrame) {
		must(noMemory)
	}
}

func allocFrame() (uint64, bool) { return frames.Alloc() }

// noExecute is the flag of pages without code, where the CPU knows it.
func noExecute() uint64 {
	if have.NoExecute {
		return amd64.PageNoExecute
	}
	return 0
}
