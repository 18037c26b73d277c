package boot

// UEFI firmware starts an application: a PE file, which package unikernel/image/efi writes around the program. The
// application copies the program to memory, ends the firmware's boot services, and enters the program in 64-bit mode with
// the page tables that layout.go describes. ESI contains EFIMagic, and EBX the address of the structure whose fields are
// defined here. Source: Unified Extensible Firmware Interface Specification ("UEFI") 2.10.

// EFIMagic is the value of ESI at the start under this protocol. It is not defined by UEFI.
const EFIMagic = 0x4945_464c

// Offsets in the structure that the application passes. All fields have 64 bits.
const (
	EFIProgram   = 0  // physical address of the program's file
	EFIMap       = 8  // address of the firmware's memory map
	EFIMapSize   = 16 // size of the map in bytes
	EFIEntrySize = 24 // size in bytes of an entry of the map
	EFITables    = 32 // number of entries of the configuration table: at most EFIMaxTables
	EFITable     = 40 // the firmware's configuration table, EFITableSize bytes for each entry
)

// Limits of the configuration table, which lists the addresses of other tables (UEFI, 4.6).
const (
	EFIMaxTables = 64
	EFITableSize = 24
)

// Errors of ParseEFI.
const (
	NoEFIInfo  Problem = "the firmware did not say what the machine is (no UEFI information)"
	NoEFIMap   Problem = "the firmware did not say where memory is (no UEFI memory map)"
	BadEFILoad Problem = "the program was loaded where it cannot run"
)

// GUIDs of ACPI's root pointer in the configuration table: with an XSDT, and of the first version.
const (
	guidACPI2 = "\x71\xe8\x68\x88\xf1\xe4\xd3\x11\xbc\x22\x00\x80\xc7\x3c\x88\x81"
	guidACPI1 = "\x30\x2d\x9d\xeb\x88\x2d\xd3\x11\x9a\x16\x00\x90\x27\x3f\xc1\x4d"
)

// ParseEFI reads the structure at a physical address (the parameter at) into info. memory is the mapped part of physical
// memory, from address 0. The map and the program must be in it.
func ParseEFI(memory []byte, at uint64, info *Info) Problem {
	head, ok := window(memory, at, EFITable)
	if !ok {
		return NoEFIInfo
	}
	program, tables := le.Uint64(head[EFIProgram:]), le.Uint64(head[EFITables:])
	const bigPage = 2 << 20
	if program < Load || program%bigPage != 0 || program >= uint64(len(memory)) {
		return BadEFILoad
	}
	info.Offset = program - Load
	list, ok := window(memory, at+EFITable, min(tables, EFIMaxTables)*EFITableSize)
	if !ok {
		return NoEFIInfo
	}
	info.RSDP = efiTable(list, guidACPI2)
	if info.RSDP == 0 {
		info.RSDP = efiTable(list, guidACPI1)
	}
	entries, ok := window(memory, le.Uint64(head[EFIMap:]), le.Uint64(head[EFIMapSize:]))
	if !ok {
		return NoEFIMap
	}
	info.takeEFIMap(entries, le.Uint64(head[EFIEntrySize:]))
	if info.Ranges == 0 {
		return NoEFIMap
	}
	return ""
}

// efiTable returns the address of the first table with a GUID; 0 if there is none.
func efiTable(list []byte, guid string) uint64 {
	for ; len(list) >= EFITableSize; list = list[EFITableSize:] {
		if string(list[:len(guid)]) == guid {
			return le.Uint64(list[len(guid):])
		}
	}
	return 0
}

const (
	efiEntry    = 40 // size in bytes of the defined fields of an entry of the memory map
	efiPageSize = 4096
)

// takeEFIMap adds the usable ranges of a memory map (UEFI, 7.2). Memory that any entry lists with another type is left
// out. Neighbouring ranges become one, because firmware divides memory into many.
func (i *Info) takeEFIMap(entries []byte, size uint64) {
	if size < efiEntry {
		return
	}
	for rest := entries; uint64(len(rest)) >= size; rest = rest[size:] {
		if r, usable := efiRange(rest); usable && r.End <= maxPhysical {
			i.exclude(r)
			i.join(r)
		}
	}
	for rest := entries; uint64(len(rest)) >= size; rest = rest[size:] {
		if r, usable := efiRange(rest); !usable {
			i.exclude(r)
		}
	}
}

// efiRange returns the range of an entry, and whether the range is free after the end of the boot services. Its end is at
// most one page above maxPhysical.
func efiRange(entry []byte) (r Range, usable bool) {
	const loaderCode, loaderData, bootCode, bootData, conventional = 1, 2, 3, 4, 7
	start, pages := le.Uint64(entry[8:]), le.Uint64(entry[24:])
	if start > maxPhysical {
		return Range{}, false
	}
	r = Range{start, start + min(pages, (maxPhysical-start)/efiPageSize+1)*efiPageSize}
	switch le.Uint32(entry) {
	case loaderCode, loaderData, bootCode, bootData, conventional:
		return r, true
	}
	return r, false
}

// join adds a range that overlaps no recorded one, together with the recorded ranges next to it.
func (i *Info) join(r Range) {
	for n := 0; n < i.Ranges; {
		switch other := i.Usable[n]; {
		case other.End == r.Start:
			r.Start = other.Start
		case other.Start == r.End:
			r.End = other.End
		default:
			n++
			continue
		}
		i.Ranges--
		i.Usable[n] = i.Usable[i.Ranges]
		n = 0
	}
	i.add(r)
}
