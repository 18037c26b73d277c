package boot

// PVH is the protocol by which QEMU, Firecracker and Cloud Hypervisor start a kernel whose ELF file has a note with the
// entry point. The processor is in 32-bit protected mode without paging, and EBX contains the address of a structure
// that describes the machine. Source: Xen, xen/include/public/arch-x86/hvm/start_info.h.

// Range is a range of physical memory; End is exclusive.
type Range struct{ Start, End uint64 }

// Size returns the size in bytes.
func (r Range) Size() uint64 { return r.End - r.Start }

// Without returns the parts of r outside taken: the part before it and the part after it. Each may be empty.
func (r Range) Without(taken Range) [2]Range {
	if taken.End <= r.Start || taken.Start >= r.End {
		return [2]Range{r, {}}
	}
	return [2]Range{{r.Start, max(r.Start, taken.Start)}, {min(r.End, taken.End), r.End}}
}

// MaxRanges is the number of memory ranges that Info can hold. Monitors report fewer than ten.
const MaxRanges = 32

// Info is the description of the machine that the monitor passes.
type Info struct {
	Usable      [MaxRanges]Range // usable memory: the first Ranges elements, all below 1<<52, not empty, and not overlapping
	Ranges      int              // number of elements in Usable
	Module      Range            // the first file that the monitor loaded with the program
	CommandLine Range
	RSDP        uint64 // address of ACPI's root pointer; 0: unknown
	Offset      uint64 // physical address of the program's file, minus Load: a multiple of 2 MiB. 0 except on UEFI
}

// Errors of ParsePVH.
const (
	NoStartInfo Problem = "the monitor did not say what the machine is (no PVH start info)"
	NoMemoryMap Problem = "the monitor did not say where memory is (PVH version 0, or an empty map)"
	BadModule   Problem = "the monitor put a module where no memory is"
)

const (
	pvhMagic      = 0x336ec578
	pvhSize       = 56
	pvhModuleSize = 32
	pvhRangeSize  = 24
	pvhMemory     = 1       // type of a memory map entry for ordinary memory
	maxPhysical   = 1 << 52 // largest physical address of all processors, plus one (SDM volume 3, 4.1.4)
)

// maxCommandLine is the maximum length of a command line, in bytes.
const maxCommandLine = 64 << 10

// ParsePVH reads the structure at a physical address (the parameter at) into info. memory is the mapped part of
// physical memory, from address 0. All parts of the structure must be in it.
func ParsePVH(memory []byte, at uint64, info *Info) Problem {
	head, ok := window(memory, at, pvhSize)
	if !ok || le.Uint32(head) != pvhMagic {
		return NoStartInfo
	}
	version := le.Uint32(head[4:])
	if version < 1 {
		return NoMemoryMap
	}
	info.RSDP = le.Uint64(head[32:])
	info.CommandLine = commandLine(memory, le.Uint64(head[24:]))
	if p := parseRanges(memory, le.Uint64(head[40:]), le.Uint32(head[48:]), info); p != "" {
		return p
	}
	if le.Uint32(head[12:]) == 0 {
		return ""
	}
	module, ok := window(memory, le.Uint64(head[16:]), pvhModuleSize)
	if !ok {
		return BadModule
	}
	start, size := le.Uint64(module), le.Uint64(module[8:])
	if _, ok := window(memory, start, size); !ok {
		return BadModule
	}
	info.Module = Range{start, start + size}
	return ""
}

// parseRanges reads the memory map.
func parseRanges(memory []byte, at uint64, count uint32, info *Info) Problem {
	const most = 1024 // far more than any monitor passes
	table, ok := window(memory, at, uint64(min(count, most))*pvhRangeSize)
	if !ok {
		return NoMemoryMap
	}
	info.takeRanges(table, pvhRangeSize)
	if info.Ranges == 0 {
		return NoMemoryMap
	}
	return ""
}

// takeRanges adds the memory ranges of a table. Each entry has a start, a size and a type, and may be longer. Some
// firmware reports overlapping ranges: memory that is listed twice is added once, and memory that any entry lists
// with another type is left out.
func (i *Info) takeRanges(table []byte, entry int) {
	for rest := table; len(rest) >= entry; rest = rest[entry:] {
		if r := mapRange(rest); le.Uint32(rest[16:]) == pvhMemory && r.End <= maxPhysical {
			i.exclude(r)
			i.add(r)
		}
	}
	for rest := table; len(rest) >= entry; rest = rest[entry:] {
		if le.Uint32(rest[16:]) != pvhMemory {
			i.exclude(mapRange(rest))
		}
	}
}

// mapRange returns the range of a memory map entry. Its end is limited to the largest 64-bit address.
func mapRange(entry []byte) Range {
	start, size := le.Uint64(entry), le.Uint64(entry[8:])
	return Range{start, start + min(size, ^start)}
}

// add records a range, unless it is empty. If Usable is full, the least important range is left out.
func (i *Info) add(r Range) {
	if r.Start >= r.End {
		return
	}
	if i.Ranges < MaxRanges {
		i.Usable[i.Ranges] = r
		i.Ranges++
		return
	}
	least := 0
	for n := range i.Usable {
		if i.Usable[n].importance() < i.Usable[least].importance() {
			least = n
		}
	}
	if r.importance() > i.Usable[least].importance() {
		i.Usable[least] = r
	}
}

// importance returns the size of a range in bytes. The range with StartPage is more important than all others, because
// without this page only one CPU starts.
func (r Range) importance() uint64 {
	if r.Start <= StartPage && r.End >= StartPage+startPageSize {
		return ^uint64(0)
	}
	return r.Size()
}

// exclude removes a range from all recorded ranges.
func (i *Info) exclude(taken Range) {
	if taken.Start >= taken.End {
		return
	}
	known, count := i.Usable, i.Ranges
	i.Ranges = 0
	for _, r := range known[:count] {
		for _, piece := range r.Without(taken) {
			i.add(piece)
		}
	}
}

// commandLine returns the range of the NUL-terminated text at a physical address.
func commandLine(memory []byte, at uint64) Range {
	if at == 0 || at >= uint64(len(memory)) {
		return Range{}
	}
	end := at
	for end < uint64(len(memory)) && end-at < maxCommandLine && memory[end] != 0 {
		end++
	}
	return Range{at, end}
}

// window returns size bytes of memory, beginning at an offset (the parameter at); false if they are out of range.
func window(memory []byte, at, size uint64) ([]byte, bool) {
	if at > uint64(len(memory)) || size > uint64(len(memory))-at {
		return nil, false
	}
	return memory[at : at+size], true
}
