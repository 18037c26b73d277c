package core

import (
	"bytes"
	"encoding/binary"
	"strings"

	"loam/mem"
	"loam/task/signal"
)

// The notes of a core dump, in Linux's order (Linux's fs/binfmt_elf.c, include/uapi/linux/elfcore.h).

// Types of notes (elf(5)).
const (
	noteStatus  = 1          // NT_PRSTATUS
	noteFloat   = 2          // NT_PRFPREG
	noteProcess = 3          // NT_PRPSINFO
	noteAuxv    = 6          // NT_AUXV
	noteVectors = 0x202      // NT_X86_XSTATE
	noteFiles   = 0x46494c45 // NT_FILE
	noteSignal  = 0x53494749 // NT_SIGINFO
)

// status is a struct elf_prstatus.
type status struct {
	Signal, Code, Errno         int32
	Current                     int16
	_                           [2]byte
	Pending, Blocked            uint64
	PID, Parent, Group, Session int32
	Times                       [4][2]int64 // of the thread in user and system mode, and of its children: seconds and microseconds
	Registers                   [216]byte
	Float                       int32 // 1: a note with floating-point registers follows
	_                           [4]byte
}

// process is a struct elf_prpsinfo.
type process struct {
	State, Letter, Zombie, Nice int8
	_                           [4]byte
	Flags                       uint64
	UID, GID                    uint32
	PID, Parent, Group, Session int32
	Name                        [16]byte
	Arguments                   [80]byte
}

// note is a note. put writes its content, which has a known size.
type note struct {
	name string
	kind uint32
	size int
	put  func(w *writer)
}

// length returns the size of the note in the file. Its name and its content are padded to a multiple of 4 bytes.
func (n note) length() uint64 { return uint64(12 + (len(n.name)+4)&^3 + (n.size+3)&^3) }

func (n note) write(w *writer) {
	w.put(encode(uint32(len(n.name)+1), uint32(n.size), n.kind))
	w.put(append([]byte(n.name), make([]byte, (len(n.name)+4)&^3-len(n.name))...))
	n.put(w)
	w.put(make([]byte, -n.size&3))
}

// contains returns a note with a content.
func contains(name string, kind uint32, content []byte) note {
	return note{name, kind, len(content), func(w *writer) { w.put(content) }}
}

// notes returns all notes.
func (d *Dump) notes(regions []mem.Dumped) (all []note) {
	for i, t := range d.Threads {
		all = append(all, note{"CORE", noteStatus, binary.Size(status{}), func(w *writer) { w.put(d.status(t)) }})
		if i == 0 {
			info := make([]byte, signal.InfoSize)
			d.Signal.Put(info)
			all = append(all, contains("CORE", noteProcess, d.process()), contains("CORE", noteSignal, info), contains("CORE", noteAuxv, d.Auxv))
			all = append(all, d.files(regions)...)
		}
		all = append(all, contains("CORE", noteFloat, t.Float), contains("LINUX", noteVectors, t.Vectors))
	}
	return all
}

// status returns the state of a thread.
func (d *Dump) status(t Thread) []byte {
	s := status{
		Signal: int32(d.Signal.Signal), Current: int16(d.Signal.Signal), Blocked: t.Blocked,
		PID: t.ID, Parent: d.Parent, Group: d.Group, Session: d.Session, Float: 1,
		Times: [4][2]int64{clock(t.User), clock(t.System)},
	}
	copy(s.Registers[:], t.Registers)
	return encode(s)
}

// clock converts nanoseconds to seconds and microseconds.
func clock(n int64) [2]int64 { return [2]int64{n / 1e9, n % 1e9 / 1e3} }

// process returns the description of the process.
func (d *Dump) process() []byte {
	p := process{
		Letter: 'R', Nice: int8(d.Nice), UID: d.UID, GID: d.GID, PID: d.PID, Parent: d.Parent, Group: d.Group, Session: d.Session,
	}
	copy(p.Name[:len(p.Name)-1], d.Name)
	arguments := bytes.TrimSuffix(d.Arguments(), []byte{0})
	copy(p.Arguments[:len(p.Arguments)-1], strings.ReplaceAll(string(arguments), "\x00", " "))
	return encode(p)
}

// mostFiles is the largest size of the list of files. If the list is larger, the dump has none (Linux's MAX_FILE_NOTE_SIZE).
const mostFiles = 4 << 20

// files returns the note with the mapped files: their number, the unit of offsets, three words for each, and their names. There is
// none if the list is too large.
func (d *Dump) files(regions []mem.Dumped) []note {
	var named []mem.Dumped
	size, names := 16, 0
	for _, r := range regions {
		if !r.Mapped {
			continue
		}
		if l := d.Memory.Label(r.Start); l.Inode != 0 && l.Path != "" {
			named = append(named, r)
			size, names = size+24+len(l.Path)+1, names+len(l.Path)+1
		}
		if size > mostFiles || d.aborted() {
			return nil
		}
	}
	return []note{{"CORE", noteFiles, size, func(w *writer) {
		w.put(encode(uint64(len(named)), uint64(mem.PageSize)))
		for _, r := range named {
			w.put(encode(r.Start, r.End, r.Offset/mem.PageSize))
		}
		d.names(w, named, names)
	}}}
}

// names writes the names of files in exactly size bytes. A file that was renamed since size was counted can have a longer name: what
// does not fit is left out.
func (d *Dump) names(w *writer, files []mem.Dumped, size int) {
	for _, r := range files {
		if w.full {
			return
		}
		b := append([]byte(d.Memory.Label(r.Start).Path), 0)
		b = b[:min(len(b), size)]
		w.put(b)
		size -= len(b)
	}
	w.put(make([]byte, size))
}
