// Package acpi reads the tables in which firmware describes the machine:
// Advanced Configuration and Power Interface Specification ("ACPI") 6.5, and the
// PCI Firmware Specification 3.3 for MCFG, the HPET specification 1.0a for HPET.
//
// Read in this order: acpi.go (finding a table), madt.go (processors and interrupt
// controllers), mcfg.go, hpet.go, fadt.go (power), aml.go (the little that can be
// had of the DSDT without an interpreter).
//
// The kernel calls this before there is a heap: nothing here allocates, panics or
// needs package initialisation, and what is wrong is a boot.Problem. Firmware is
// not believed: lengths are checked where a table comes in, checksums too, and
// every loop ends with the table that it goes through.
package acpi

import (
	"encoding/binary"

	"loam/boot"
)

// Memory shows size bytes of physical memory at an address, or nil if they are
// not all there. What it returns is read for as long as a Tables is used.
type Memory func(address, size uint64) []byte

// Problems.
const (
	NoRSDP    boot.Problem = "firmware has no ACPI tables (no RSDP)"
	BadRoot   boot.Problem = "the root of the ACPI tables is damaged"
	noProblem boot.Problem = ""
)

var le = binary.LittleEndian

const (
	headerLen = 36      // of every table: section 5.2.6
	maxTable  = 4 << 20 // bytes; a DSDT of a large server has less than 1 MiB
	maxRoot   = 64 << 10
)

// Tables is the root of the tables, which lists the others.
type Tables struct {
	memory Memory
	list   []byte // addresses
	width  int    // of each, in bytes: 4 (RSDT) or 8 (XSDT)
}

// FindRSDP looks for the root pointer where firmware of PCs leaves it (section
// 5.2.5.1): for monitors that do not say where it is. 0: it is not there.
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
	rsdpLen     = 20 // of revision 0
	rsdpLongLen = 36
)

func isRSDP(b []byte) bool { return string(b[:8]) == "RSD PTR " && sum(b[:rsdpLen]) == 0 }

// Open reads the root pointer at an address and the table that it points to. The
// XSDT, of 64-bit addresses, goes before the RSDT.
func Open(memory Memory, rsdp uint64) (Tables, boot.Problem) {
	b := memory(rsdp, rsdpLen)
	if rsdp == 0 || b == nil || !isRSDP(b) {
		return Tables{}, NoRSDP
	}
	t := Tables{memory: memory}
	if b[15] >= 2 { // the revision
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

// Len is how many tables the root lists.
func (t *Tables) Len() int {
	if t.width == 0 {
		return 0
	}
	return len(t.list) / t.width
}

// At is the i-th table with its header; nil if it is damaged or i is too large.
func (t *Tables) At(i int) []byte {
	if i < 0 || i >= t.Len() {
		return nil
	}
	if t.width == 8 {
		return t.table(le.Uint64(t.list[i*8:]), maxTable)
	}
	return t.table(uint64(le.Uint32(t.list[i*4:])), maxTable)
}

// Find is the first table of a signature, with its header; nil if there is none.
func (t *Tables) Find(signature string) []byte {
	for i := range t.Len() {
		if b := t.At(i); b != nil && string(b[:4]) == signature {
			return b
		}
	}
	return nil
}

// table is the whole table at an address, if it is no longer than most and its
// checksum is right.
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

// sum of all bytes, which is 0 for a table that is intact.
func sum(b []byte) (s uint8) {
	for _, v := range b {
		s += v
	}
	return s
}
