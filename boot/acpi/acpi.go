// Package acpi reads the tables in which firmware describes the machine. Sources: Advanced Configuration and Power
// Interface Specification ("ACPI") 6.5; PCI Firmware Specification 3.3 for table MCFG; IA-PC HPET specification 1.0a
// for table HPET.
//
// Reading order: acpi.go (finding a table), madt.go (processors and interrupt controllers), mcfg.go, hpet.go,
// fadt.go (power), aml.go (the parts of the DSDT that can be read without an interpreter).
//
// The kernel uses this package before there is a heap. So nothing in it allocates, panics or needs package
// initialisation, and its errors are values of boot.Problem. Firmware is not trusted: the length and the checksum of a
// table are verified when it is read, and every loop is bounded by its table.
package acpi

import (
	"encoding/binary"

	"loam/boot"
)

// Memory returns size bytes of physical memory at an address, or nil if some of them are not accessible. The memory
// must stay valid while a Tables uses it.
type Memory func(address, size uint64) []byte

// Errors of Open.
const (
	NoRSDP    boot.Problem = "firmware has no ACPI tables (no RSDP)"
	BadRoot   boot.Problem = "the root of the ACPI tables is damaged"
	noProblem boot.Problem = ""
)

var le = binary.LittleEndian

const (
	headerLen = 36      // size in bytes of the header of every table: section 5.2.6
	maxTable  = 4 << 20 // bytes; for comparison, the DSDT of a large server has less than 1 MiB
	maxRoot   = 64 << 10
)

// Tables is the root table (RSDT or XSDT), which lists all other tables.
type Tables struct {
	memory Memory
	list   []byte // addresses of the tables, width bytes each
	width  int    // size of each address in bytes: 4 (RSDT) or 8 (XSDT)
}

// FindRSDP searches for the root pointer (RSDP) in the memory areas where PC firmware stores it (section 5.2.5.1). It
// is needed if the virtual machine monitor does not pass the address. It returns 0 if there is no RSDP.
func FindRSDP(memory Memory) uint64 {
	for _, area := range [...]boot.Range{{Start: 0x9_fc00, End: 0xa_0000}, {Start: 0xe_0000, End: 0x10_0000}} {
		b := memory(area.Start, area.Size())
		for at := 0; at+rsdpLen <= len(b); at += 16 {
			if isRSDP(b[at:]) {
				return area.Start + uint64(at)
			}
		}
	}
	return 0
}

const (
	rsdpLen     = 20 // length of revision 0 of the root pointer, in bytes
	rsdpLongLen = 36
)

func isRSDP(b []byte) bool { return string(b[:8]) == "RSD PTR " && sum(b[:rsdpLen]) == 0 }

// Open reads the root pointer at address rsdp and the root table that it refers to. If the root pointer refers to both
// an XSDT (64-bit addresses) and an RSDT, Open uses the XSDT. It returns NoRSDP or BadRoot on failure.
func Open(memory Memory, rsdp uint64) (Tables, boot.Problem) {
	b := memory(rsdp, rsdpLen)
	if rsdp == 0 || b == nil || !isRSDP(b) {
		return Tables{}, NoRSDP
	}
	t := Tables{memory: memory}
	if b[15] >= 2 { // the revision; from 2 on, the root pointer has an XSDT
		if long := memory(rsdp, rsdpLongLen); long != nil && sum(long) == 0 {
			if root := t.table(le.Uint64(long[24:]), maxRoot); root != nil && string(root[:4]) == "XSDT" {
				t.list, t.width = root[headerLen:], 8
				return t, noProblem
			}
		}
	}
	root := t.table(uint64(le.Uint32(b[16:])), maxRoot)
	if root == nil || string(root[:4]) != "RSDT" {
		return Tables{}, BadRoot
	}
	t.list, t.width = root[headerLen:], 4
	return t, noProblem
}

// Len returns the number of tables that the root table lists.
func (t *Tables) Len() int {
	if t.width == 0 {
		return 0
	}
	return len(t.list) / t.width
}

// At returns the i-th table with its header; nil if the table is damaged or i is out of range.
func (t *Tables) At(i int) []byte {
	if i < 0 || i >= t.Len() {
		return nil
	}
	if t.width == 8 {
		return t.table(le.Uint64(t.list[i*8:]), maxTable)
	}
	return t.table(uint64(le.Uint32(t.list[i*4:])), maxTable)
}

// Find returns the first table with a signature, including its header; nil if there is none.
func (t *Tables) Find(signature string) []byte {
	for i := range t.Len() {
		if b := t.At(i); b != nil && string(b[:4]) == signature {
			return b
		}
	}
	return nil
}

// table returns the whole table at an address; nil if it is longer than most, in bytes, or its checksum is wrong.
func (t *Tables) table(address uint64, most uint32) []byte {
	if address == 0 {
		return nil
	}
	header := t.memory(address, headerLen)
	if header == nil {
		return nil
	}
	length := le.Uint32(header[4:])
	if length < headerLen || length > most {
		return nil
	}
	b := t.memory(address, uint64(length))
	if b == nil || sum(b) != 0 {
		return nil
	}
	return b
}

// sum returns the sum of all bytes modulo 256; it is 0 for an intact table.
func sum(b []byte) (s uint8) {
	for _, v := range b {
		s += v
	}
	return s
}
