package boot

// PVH: how QEMU, Firecracker and Cloud Hypervisor start a kernel that has a
// certain note in its ELF file. The processor is in 32-bit protected mode
// without paging, and EBX has the address of a structure that describes the
// machine. Xen, xen/include/public/arch-x86/hvm/start_info.h.

// Range is a piece of physical memory.
type Range struct{ Start, End uint64 }

// Size is in bytes.
func (r Range) Size() uint64 { return r.End - r.Start }

// Without is what of a range is not taken by another: one piece or two, of which any
// may be empty.
func (r Range) Without(taken Range) [2]Range {
	if taken.End <= r.Start || taken.Start >= r.End {
		return [2]Range{r, {}}
	}
	return [2]Range{{r.Start, max(r.Start, taken.Start)}, {min(r.End, taken.End), r.End}}
}

// MaxRanges is how many pieces of memory are taken note of. Monitors make less
// than ten.
const MaxRanges = 32

// Info is what the monitor says.
type Info struct {
	Usable      [MaxRanges]Range // of memory; all are below 1<<52, none is empty, and none overlaps another
	Ranges      int              // how many there are
	Module      Range            // the first file that came with the program
	CommandLine Range
	RSDP        uint64 // where ACPI begins; 0: it has to be looked for
}

// Problems.
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
	pvhMemory     = 1       // the type of a range that is memory
	maxPhysical   = 1 << 52 // SDM volume 3, 4.1.4: no processor has more
)

// maxCommandLine bounds the search for its end.
const maxCommandLine = 64 << 10

// ParsePVH reads the structure at an address. memory is physical memory from 0
// on, as far as it can be seen; the parts of the structure must lie there.
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

// parseRanges takes the ranges that are memory.
func parseRanges(memory []byte, at uint64, count uint32, info *Info) Problem {
	const most = 1024 // far more than any monitor writes
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

// takeRanges takes the ranges of a table that are memory. Each entry has a start, a
// size and a type, and may have more. Maps that overlap are known of firmware: what is
// named twice is taken once, and what any entry says is something else is not memory.
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

// mapRange is where an entry is. One without an end ends with the address space.
func mapRange(entry []byte) Range {
	start, size := le.Uint64(entry), le.Uint64(entry[8:])
	return Range{start, start + min(size, ^start)}
}

// add takes note of a range, if there is something in it and room for it.
func (i *Info) add(r Range) {
	if r.Start < r.End && i.Ranges < MaxRanges {
		i.Usable[i.Ranges] = r
		i.Ranges++
	}
}

// exclude takes a range out of all that are known.
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

// commandLine finds the end of the text at an address.
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

// window is size bytes of memory, if they are there.
func window(memory []byte, at, size uint64) ([]byte, bool) {
	if at > uint64(len(memory)) || size > uint64(len(memory))-at {
		return nil, false
	}
	return memory[at : at+size], true
}
