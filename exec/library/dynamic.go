package library

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
)

// maxDynamic and maxStrings are the maximum sizes, in bytes, of the dynamic section and of its string table.
const (
	maxDynamic = 1 << 20
	maxStrings = 64 << 20
)

// read evaluates the program headers PT_INTERP and PT_DYNAMIC. It does not use section headers: ld.so does not use them
// either, and a program may have none.
func (o *object) read(e *elf.File) error {
	for _, p := range e.Progs {
		switch p.Type {
		case elf.PT_INTERP:
			if p.Filesz > 4096 {
				return errDamaged
			}
			o.interp = cString(content(p, 0, p.Filesz))
		case elf.PT_DYNAMIC:
			if p.Filesz > maxDynamic {
				return errDamaged
			}
			if err := o.dynamic(e, content(p, 0, p.Filesz)); err != nil {
				return err
			}
		}
	}
	return nil
}

// content returns size bytes of a segment, starting at an offset (the parameter from), or
// fewer if the file ends earlier.
func content(p *elf.Prog, from, size uint64) []byte {
	b := make([]byte, size)
	n, _ := p.ReadAt(b, int64(from)) // an error is ignored: a missing entry is reported when it is needed
	return b[:n]
}

func cString(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// dynamic reads the entries of the dynamic section.
func (o *object) dynamic(e *elf.File, section []byte) error {
	var needed []uint64
	value := map[elf.DynTag]uint64{}
	for ; len(section) >= 16; section = section[16:] {
		tag := elf.DynTag(binary.LittleEndian.Uint64(section))
		v := binary.LittleEndian.Uint64(section[8:])
		if tag == elf.DT_NULL {
			break
		}
		if tag == elf.DT_NEEDED {
			needed = append(needed, v)
		} else {
			value[tag] = v
		}
	}
	strings := stringTable(e, value[elf.DT_STRTAB], value[elf.DT_STRSZ])
	text := func(offset uint64) string { return cString(strings[min(offset, uint64(len(strings))):]) }
	for _, n := range needed {
		if text(n) == "" {
			return errDamaged
		}
		o.needed = append(o.needed, text(n))
	}
	if v, ok := value[elf.DT_SONAME]; ok {
		o.soname = text(v)
	}
	if v, ok := value[elf.DT_RPATH]; ok {
		o.rpath = o.folders(text(v))
	}
	if v, ok := value[elf.DT_RUNPATH]; ok {
		o.runpath = o.folders(text(v))
	}
	return nil
}

// stringTable returns size bytes of strings at a virtual address, which must be in a PT_LOAD segment.
func stringTable(e *elf.File, addr, size uint64) []byte {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && p.Vaddr <= addr && addr-p.Vaddr < p.Filesz {
			return content(p, addr-p.Vaddr, min(size, p.Filesz-(addr-p.Vaddr), maxStrings))
		}
	}
	return nil
}

// folders splits a search path. It omits empty elements, which mean the current folder: no program should depend on it.
func (o *object) folders(list string) (all []string) {
	for f := range strings.SplitSeq(list, ":") {
		if f != "" {
			all = append(all, o.expand(f))
		}
	}
	return all
}
