package vdso

import (
	"encoding/binary"
	"slices"
)

const pageSize = 4096

// names are the functions of the image. Each is also exported as a weak symbol without the prefix __vdso_, as on Linux.
var names = []string{"__vdso_clock_gettime", "__vdso_getcpu", "__vdso_gettimeofday", "__vdso_time"}

// Layout of the image: sections one after the other in one page.
const (
	headers    = 64 + 2*56
	soname     = "linux-vdso.so.1"
	version    = "LINUX_2.6" // version of all symbols, as on Linux
	infoFunc   = 1<<4 | 2    // STB_GLOBAL, STT_FUNC
	infoWeak   = 2<<4 | 2
	textIndex  = 1 // section number of all symbols: any number but 0 (undefined) will do, because the image has no section table
	symbolSize = 24
)

// builder collects the bytes of the image.
type builder struct{ bytes []byte }

func (b *builder) align(n int) int {
	for len(b.bytes)%n != 0 {
		b.bytes = append(b.bytes, 0)
	}
	return len(b.bytes)
}

func (b *builder) words(all ...uint64) {
	for _, w := range all {
		b.bytes = binary.LittleEndian.AppendUint64(b.bytes, w)
	}
}

func (b *builder) halves(all ...uint32) {
	for _, w := range all {
		b.bytes = binary.LittleEndian.AppendUint32(b.bytes, w)
	}
}

// Image returns the ELF file, which is one page long. Its first byte has address 0; Data is at address -4096.
func Image() []byte {
	b := &builder{make([]byte, headers)}
	c := functions()
	text := b.align(16)
	c.Link(map[string]int{"data": -pageSize - text})
	b.bytes = append(b.bytes, c.Bytes...)

	strings, symbols := []byte{0}, &builder{make([]byte, symbolSize)}
	name := func(s string) uint32 {
		strings = append(append(strings, s...), 0)
		return uint32(len(strings) - len(s) - 1)
	}
	var exported []string
	for _, n := range names {
		for _, alias := range []struct {
			name string
			info uint32
		}{{n, infoFunc}, {n[len("__vdso_"):], infoWeak}} {
			exported = append(exported, alias.name)
			symbols.halves(name(alias.name), alias.info|textIndex<<16)
			symbols.words(uint64(text+c.Labels()[n]), uint64(c.size(n)))
		}
	}
	so, v := name(soname), name(version)
	hashAt := b.align(8)
	b.hash(exported)
	symbolsAt := b.align(8)
	b.bytes = append(b.bytes, symbols.bytes...)
	stringsAt := len(b.bytes)
	b.bytes = append(b.bytes, strings...)
	versionsAt := b.align(8)
	b.versions(len(exported))
	definitionsAt := b.align(8)
	b.definition(1, 1, soname, so, definitionSize) // VER_FLG_BASE: the entry that names the file itself
	b.definition(0, versionIndex, version, v, 0)
	dynamicAt := b.align(8)
	const hash, strtab, symtab, strsz, syment, sonameTag = 4, 5, 6, 10, 11, 14
	const versym, verdef, verdefNumber = 0x6ffffff0, 0x6ffffffc, 0x6ffffffd
	b.words(hash, uint64(hashAt), strtab, uint64(stringsAt), symtab, uint64(symbolsAt), strsz, uint64(len(strings)),
		syment, symbolSize, sonameTag, uint64(so), versym, uint64(versionsAt), verdef, uint64(definitionsAt), verdefNumber, 2, 0, 0)
	b.header(dynamicAt)
	if len(b.bytes) > pageSize {
		panic("vdso: image larger than a page")
	}
	return append(b.bytes, make([]byte, pageSize-len(b.bytes))...)
}

// Indices and sizes of versions (LSB Core, "Symbol Versioning").
const (
	versionIndex   = 2      // index of the constant version; index 1 is the file itself
	definitionSize = 20 + 8 // an Elfxx_Verdef with one Elfxx_Verdaux
)

// versions writes the version indices of n symbols, after the index of the null symbol.
func (b *builder) versions(n int) {
	b.bytes = append(b.bytes, 0, 0)
	for range n {
		b.bytes = append(b.bytes, versionIndex, 0)
	}
}

// definition writes the definition of a version. next is the distance in bytes to the next definition, 0 for the last.
func (b *builder) definition(flags, index uint32, text string, name, next uint32) {
	const revision, one, aux = 1, 1, 20
	b.halves(revision|flags<<16, index|one<<16, sysvHash(text), aux, next, name, 0)
}

// size returns the length of a function in bytes: the distance to the next function.
func (c *code) size(name string) int {
	end := len(c.Bytes)
	for _, other := range names {
		if at := c.Labels()[other]; at > c.Labels()[name] {
			end = min(end, at)
		}
	}
	return end - c.Labels()[name]
}

// hash writes a hash table (System V ABI, 5-21) with one bucket for each symbol.
func (b *builder) hash(exported []string) {
	count := uint32(len(exported))
	buckets, chain := make([]uint32, count), make([]uint32, count+1)
	for i, name := range slices.All(exported) {
		slot := &buckets[sysvHash(name)%count]
		chain[i+1], *slot = *slot, uint32(i+1)
	}
	b.halves(count, count+1)
	b.halves(buckets...)
	b.halves(chain...)
}

func sysvHash(name string) (h uint32) {
	for _, c := range []byte(name) {
		h = h<<4 + uint32(c)
		h = (h ^ h>>24&0xf0) & 0x0fffffff
	}
	return h
}

// header writes the ELF header and two program headers: one for the whole file, one for the dynamic section.
func (b *builder) header(dynamic int) {
	size := uint64(len(b.bytes))
	h := &builder{append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)}
	h.halves(3|62<<16, 1) // ET_DYN, EM_X86_64, EV_CURRENT
	h.words(0, 64, 0)     // entry, program headers, section headers
	h.halves(0, 64|56<<16, 2, 0)
	h.program(1, 5, 0, size, pageSize)
	h.program(2, 4, uint64(dynamic), size-uint64(dynamic), 8)
	copy(b.bytes, h.bytes)
}

func (b *builder) program(kind, flags uint32, at, size, align uint64) {
	b.halves(kind, flags)
	b.words(at, at, at, size, size, align)
}
