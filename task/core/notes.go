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

// notes returns all notes.
func (d *Dump) notes(regions []mem.Dumped) (b []byte) {
	for i, t := range d.Threads {
		b = appendNote(b, "CORE", noteStatus, d.status(t))
		if i == 0 {
			info := make([]byte, signal.InfoSize)
			d.Signal.Put(info)
			b = appendNote(b, "CORE", noteProcess, d.process())
			b = appendNote(b, "CORE", noteSignal, info)
			b = appendNote(b, "CORE", noteAuxv, d.Auxv)
			b = appendNote(b, "CORE", noteFiles, files(regions))
		}
		b = appendNote(b, "CORE", noteFloat, t.Float)
		b = appendNote(b, "LINUX", noteVectors, t.Vectors)
	}
	return b
}

// appendNote appends a note. Its name and its content are padded to a multiple of 4 bytes.
func appendNote(b []byte, name string, kind uint32, content []byte) []byte {
	b = append(b, encode(uint32(len(name)+1), uint32(len(content)), kind)...)
	b = pad(append(append(b, name...), 0))
	return pad(append(b, content...))
}

func pad(b []byte) []byte { return append(b, make([]byte, -len(b)&3)...) }

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

// files returns the mapped files: their number, the unit of offsets, three words for each, and their names.
func files(regions []mem.Dumped) []byte {
	var words, names []byte
	n := uint64(0)
	for _, r := range regions {
		if r.File.Path == "" {
			continue
		}
		n++
		words = append(words, encode(r.Start, r.End, r.Offset/mem.PageSize)...)
		names = append(append(names, r.File.Path...), 0)
	}
	b := binary.LittleEndian.AppendUint64(nil, n)
	b = binary.LittleEndian.AppendUint64(b, mem.PageSize)
	return append(append(b, words...), names...)
}
