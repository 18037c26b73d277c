// Package core writes core dumps (core(5)): ELF files from which a debugger shows the registers and the memory of a process that a
// signal has ended.
package core

import (
	"bytes"
	"encoding/binary"

	"loam/mem"
	"loam/task/signal"
)

// Dump describes a process. Its threads do not run any more. Another process that shares the memory (CLONE_VM) may run, and may
// change the map.
type Dump struct {
	PID, Parent, Group, Session int32
	UID, GID                    uint32
	Name, Program               string // the name of the process, and the path of its program
	Nice                        int
	Signal                      signal.Info // the signal that has ended the process
	Auxv                        []byte
	Arguments                   func() []byte // the arguments of the program, each with a NUL
	Threads                     []Thread      // the thread that has received the signal is the first; at most MostThreads
	Memory                      *mem.Map
	Limit, FileLimit            uint64        // RLIMIT_CORE: number of bytes without holes; RLIMIT_FSIZE: the last offset
	Aborted                     chan struct{} // closed by Abort
}

// MostThreads is the number of threads that a core dump describes: it bounds the kernel's memory.
const MostThreads = 1024

// Abort ends a dump early, so that the process can free its memory. The caller prevents two calls at a time. d may be nil.
func (d *Dump) Abort() {
	if d != nil && !d.aborted() {
		close(d.Aborted)
	}
}

func (d *Dump) aborted() bool {
	select {
	case <-d.Aborted:
		return true
	default:
		return false
	}
}

// Status returns the status of the process after Save, which has returned the parameter flag. The signal that has aborted the dump,
// SIGKILL, replaces the one that has caused it.
func (d *Dump) Status(flag int32) int32 {
	if d.aborted() {
		return int32(signal.Kill)
	}
	return int32(d.Signal.Signal) | flag
}

// Wait waits until a channel is closed or the dump is aborted. It reports whether the dump continues.
func (d *Dump) Wait(c <-chan struct{}) bool {
	select {
	case <-c:
	case <-d.Aborted:
	}
	return !d.aborted()
}

// Thread is the state of a thread.
type Thread struct {
	ID           int32
	Registers    []byte // struct user_regs_struct
	Float        []byte // the area of FXSAVE
	Vectors      []byte // the area of XSAVE
	Blocked      uint64 // the signal mask
	User, System int64  // CPU times in nanoseconds
}

// header is the header of an ELF file.
type header struct {
	Ident                          [16]byte
	Type, Machine                  uint16
	Version                        uint32
	Entry, Programs, Sections      uint64 // offsets of the headers
	Flags                          uint32
	Size, ProgramSize, Count       uint16 // sizes of this header and of a program header, and the number of program headers
	SectionSize, SectionCount, Tab uint16
}

// program is a program header.
type program struct {
	Type, Flags                     uint32
	Offset, Address, Physical       uint64
	FileSize, MemorySize, Alignment uint64
}

// Values of fields (elf(5)).
const (
	headerSize  = 64
	programSize = 56
	typeCore    = 4
	machineX86  = 62
	typeLoad    = 1
	typeNote    = 4
	mostHeaders = 0xffff // PN_XNUM: a file with this number of program headers or more has the number elsewhere
)

// write writes the file: headers, notes, memory. Nothing but the list of regions grows with the number of regions.
func (d *Dump) write(w *writer) {
	regions := d.Memory.Dump()
	regions = regions[:min(len(regions), mostHeaders-2)]
	notes := d.notes(regions)
	size := uint64(0)
	for _, n := range notes {
		size += n.length()
	}
	at := uint64(headerSize + programSize*(len(regions)+1))
	w.put(encode(header{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, // 64 bits, little-endian, version 1
		Type:  typeCore, Machine: machineX86, Version: 1,
		Programs: headerSize, Size: headerSize, ProgramSize: programSize, Count: uint16(len(regions) + 1),
	}, program{Type: typeNote, Offset: at, FileSize: size}))
	first := (at + size + mem.PageSize - 1) &^ (mem.PageSize - 1)
	gap := first - at - size
	at = first
	for _, r := range regions {
		w.put(encode(program{
			Type: typeLoad, Flags: permissions(r.Prot), Offset: at, Address: r.Start, FileSize: r.Size, MemorySize: r.End - r.Start, Alignment: mem.PageSize,
		}))
		at += r.Size
	}
	for _, n := range notes {
		n.write(w)
	}
	w.skip(gap)
	for _, r := range regions {
		d.region(w, r)
	}
}

// region writes the memory of a region. A page that was never accessed or cannot be read is a hole. Behind a page that is beyond the
// end of its file, or that cannot be read, only private copies are written.
func (d *Dump) region(w *writer, r mem.Dumped) {
	var page [mem.PageSize]byte
	end, copies := r.Start+r.Size, false
	for at := r.Start; at < end && !w.full; {
		next := d.Memory.Accessed(at, end)
		if copies {
			next = d.Memory.Copied(at, end)
		}
		w.skip(next - at)
		if next == end {
			return
		}
		if n, result := d.Memory.ReadForced(page[:], next); n == len(page) {
			w.put(page[:])
		} else {
			copies = copies || result == mem.BusError
			w.skip(mem.PageSize)
		}
		at = next + mem.PageSize
	}
}

// permissions returns the flags of a program header.
func permissions(p mem.Prot) (flags uint32) {
	for i, bit := range [...]mem.Prot{mem.Exec, mem.Write, mem.Read} {
		if p&bit != 0 {
			flags |= 1 << i
		}
	}
	return flags
}

// encode returns structures of fixed size in little-endian order.
func encode(parts ...any) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		binary.Write(&b, binary.LittleEndian, p) // it fails only for types without a fixed size
	}
	return b.Bytes()
}
