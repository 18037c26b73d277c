package boot

// Multiboot 2 is the protocol by which GRUB and similar boot loaders start a kernel that has a Multiboot 2 header in
// the first 32 KiB of its file. The state of the processor is the same as with PVH (pvh.go). EAX contains
// Multiboot2Magic, and EBX the address of a list of tags that describe the machine. Source: GNU, Multiboot2
// Specification version 2.0, chapter 3.
//
// Rejected: Multiboot version 1. QEMU supports it, and would then use it instead of PVH.

// Multiboot2Magic is the value of EAX at the start under this protocol.
const Multiboot2Magic = 0x36d7_6289

// Multiboot2HeaderSize is the size in bytes of the header that Multiboot2Header returns.
const Multiboot2HeaderSize = 40

// Multiboot2Header returns the header of a kernel whose entry point is at the physical address entry. The header must
// be at a multiple of 8 in the file.
func Multiboot2Header(entry uint32) []byte {
	const magic = 0xe852_50d6
	const entryTag, entrySize, endTag, endSize = 3, 12, 0, 8
	var b []byte
	var sum uint32
	for _, v := range [...]uint32{magic, 0, Multiboot2HeaderSize} {
		b, sum = le.AppendUint32(b, v), sum+v
	}
	for _, v := range [...]uint32{-sum, entryTag, entrySize, entry, 0, endTag, endSize} {
		b = le.AppendUint32(b, v)
	}
	return b
}

// Errors of ParseMultiboot2.
const (
	NoTags       Problem = "the boot loader did not say what the machine is (no Multiboot 2 information)"
	NoMapInTags  Problem = "the boot loader did not say where memory is (no Multiboot 2 memory map)"
	BadTagModule Problem = "the boot loader put a module where no memory is"
)

// Supported tags: section 3.6.
const (
	tagEnd         = 0
	tagCommandLine = 1
	tagModule      = 3
	tagMemory      = 6

	tagHead = 8 // size in bytes of a tag's type and size fields
)

// ParseMultiboot2 reads the tags at a physical address (the parameter at) into info.
// memory is the mapped part of physical memory, from address 0.
func ParseMultiboot2(memory []byte, at uint64, info *Info) Problem {
	const fixed = 8 // size in bytes of the fields before the tags: total size, and a reserved word
	head, ok := window(memory, at, fixed)
	if !ok || at%8 != 0 {
		return NoTags
	}
	all, ok := window(memory, at, uint64(le.Uint32(head)))
	if !ok || len(all) < fixed {
		return NoTags
	}
	for n := fixed; n+tagHead <= len(all); {
		size := int(le.Uint32(all[n+4:]))
		if size < tagHead || size > len(all)-n {
			return NoTags
		}
		kind := le.Uint32(all[n:])
		if kind == tagEnd {
			break
		}
		if p := info.takeTag(memory, kind, all[n+tagHead:n+size], at+uint64(n)+tagHead); p != "" {
			return p
		}
		n += (size + 7) &^ 7
	}
	if info.Ranges == 0 {
		return NoMapInTags
	}
	return ""
}

// takeTag stores the information of one tag in i; at is the physical address of the tag's content.
func (i *Info) takeTag(memory []byte, kind uint32, tag []byte, at uint64) Problem {
	switch kind {
	case tagCommandLine:
		i.CommandLine = commandLine(memory[:at+uint64(len(tag))], at)
	case tagModule:
		if len(tag) < 8 || i.Module.End != 0 {
			return ""
		}
		start, end := uint64(le.Uint32(tag)), uint64(le.Uint32(tag[4:]))
		if end < start || end > uint64(len(memory)) {
			return BadTagModule
		}
		i.Module = Range{start, end}
	case tagMemory:
		const fixed = 8 // size in bytes of the fields before the entries: size of an entry, version
		if len(tag) < fixed {
			return ""
		}
		if size := int(le.Uint32(tag)); size >= pvhRangeSize {
			i.takeRanges(tag[fixed:], size)
		}
	}
	return ""
}
