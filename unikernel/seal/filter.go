package seal

import (
	"fmt"
	"slices"
)

// The filter checks the rows of the table one after another. A row matches a call if the number is equal, all tests
// of the arguments pass, and the call comes from one of the row's places (addresses of instructions). A call that
// matches no row traps.

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offPlace  = 8  // address after the instruction that makes the call
	offArgs   = 16 // six arguments of eight bytes each, the lower half first
)

// Constants that Linux defines for seccomp filters.
const (
	archAMD64 = 0xc000003e // AUDIT_ARCH_X86_64
	retTrap   = 0x00030000 // SECCOMP_RET_TRAP
	retErrno  = 0x00050000 // SECCOMP_RET_ERRNO; the lower half contains the errno
	retNotify = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	retAllow  = 0x7fff0000 // SECCOMP_RET_ALLOW
)

// endHanded is above all descriptors of the host: the guest adds this number to them (unikernel/rt.HostFD).
const endHanded = 1 << 24

// Place is a system call instruction of a function, given by the address of the next instruction.
type Place struct {
	Name  string
	After uint64
}

// Process describes the process that a filter is generated for. Its process ID is not known at that time: see
// Program.PID.
type Process struct {
	Socket int // descriptor of the socket for handed-over connections; -1: none
	First  int // lowest descriptor of a handed-over connection; -1: none
	// Disk is the first descriptor of a disk image, and DiskSizes are the sizes of the images in bytes, by descriptor.
	Disk      int
	DiskSizes []int64
	// Memory is the first descriptor of memory that is shared with the server of a folder, and Memories their number.
	Memory, Memories int
}

// disks returns one Process for each check that a row of the table needs. A row that depends on the size of a disk
// image is checked once for each image; any other row is checked once.
func (p Process) disks(c Call) []Process {
	if !slices.ContainsFunc(c.If, func(t Test) bool { return t.Kind == Within }) {
		return []Process{p}
	}
	each := make([]Process, len(p.DiskSizes))
	for i := range each {
		each[i] = p
		each[i].Disk, each[i].DiskSizes = p.Disk+i, p.DiskSizes[i:i+1]
	}
	return each
}

// Program is a filter of system calls.
type Program struct {
	Code []Instruction
	PID  []int // indices of instructions whose field K must be set to the process ID
}

// Filter generates the filter for a process. It returns an error if places lacks a function that a row of calls names.
func Filter(calls []Call, places []Place, p Process) (Program, error) {
	var a assembler
	a.load(offArch)
	// 32-bit calls (int 0x80) have another architecture. Numbers of the x32 ABI have bit 30 set, so no row of the table
	// matches them.
	other, start := a.newLabel(), a.newLabel()
	a.branch(opEqual, archAMD64, start, other)
	a.place(other)
	a.result(retTrap)
	a.place(start)
	for _, c := range calls {
		if !p.has(c) {
			continue
		}
		for _, own := range p.disks(c) {
			if err := a.call(c, places, own); err != nil {
				return Program{}, err
			}
		}
	}
	a.result(retTrap)
	code, err := a.assemble()
	return Program{code, a.pid}, err
}

// has reports whether the process has the descriptors that a row of the table needs: handed-over connections,
// or disk images.
func (p Process) has(c Call) bool {
	for _, t := range c.If {
		if t.Kind == Socket && p.Socket < 0 || t.Kind == Handed && p.First < 0 || t.Kind == Disk && len(p.DiskSizes) == 0 ||
			t.Kind == Memory && p.Memories == 0 {
			return false
		}
	}
	return true
}

// call emits the check of one row: the filter returns the row's action, or continues with the next row.
func (a *assembler) call(c Call, places []Place, own Process) error {
	no, yes := a.newLabel(), a.newLabel()
	a.load(offNumber)
	a.branch(opEqual, c.Number, next, no)
	for _, t := range c.If {
		a.test(t, own, no)
	}
	for _, name := range c.From {
		found := false
		for _, p := range places {
			if p.Name == name {
				found = true
				a.from(p.After, yes)
			}
		}
		if !found {
			return fmt.Errorf("seal: no call is known in %s", name)
		}
	}
	if c.From != nil {
		a.jump(no)
	}
	a.place(yes)
	a.result(c.Do.result())
	a.place(no)
	return nil
}

// test emits the check of one argument of a call: a jump to the label no, unless the argument passes the test
// t.
func (a *assembler) test(t Test, own Process, no label) {
	a.load(offArgs + 8*uint32(t.Arg))
	values := t.Values
	holds := a.newLabel()
	switch t.Kind {
	case Set:
		a.and(values[0])
	case Clear:
		a.and(values[0])
		values = []uint32{0}
	case Self:
		a.pid = append(a.pid, len(a.code))
		values = append([]uint32{0}, values...)
	case Socket:
		values = []uint32{uint32(own.Socket)}
	case Handed:
		a.branch(opAtLeast, uint32(own.First), next, no)
		a.branch(opAtLeast, endHanded, no, next)
		return
	case Disk:
		a.between(own.Disk, len(own.DiskSizes), no)
		return
	case Memory:
		a.between(own.Memory, own.Memories, no)
		return
	case NoDisk:
		if len(own.DiskSizes) == 0 {
			return
		}
		a.branch(opAtLeast, uint32(own.Disk), next, holds)
		a.branch(opAtLeast, uint32(own.Disk+len(own.DiskSizes)), next, no)
		a.place(holds)
		return
	case Within:
		a.within(t.Arg, own.DiskSizes[0], no)
		return
	case Below:
		a.branch(opAtLeast, values[0], no, next)
		return
	case AtLeast:
		a.branch(opAtLeast, values[0], next, no)
		return
	case Unequal:
		a.branch(opEqual, values[0], no, next)
		return
	}
	for _, v := range values {
		a.branch(opEqual, v, holds, next)
	}
	a.jump(no)
	a.place(holds)
}

// between emits a jump to no unless the loaded word is one of n descriptors from first on.
func (a *assembler) between(first, n int, no label) {
	a.branch(opAtLeast, uint32(first), next, no)
	a.branch(opAtLeast, uint32(first+n), no, next)
}

// within emits a jump to the label no if a range of bytes ends beyond size. Argument count is the number of bytes,
// and the next argument is its position. The sum has 64 bits, but BPF computes with 32. A carry from the lower
// halves therefore counts as an upper half that is greater by one.
func (a *assembler) within(count int, size int64, no label) {
	const most = 1 << 31 // Linux transfers less than this number of bytes in one call (MAX_RW_COUNT)
	low, high := uint32(size), size>>32
	position := uint32(offArgs + 8*(count+1))
	noCarry, done := a.newLabel(), a.newLabel()
	a.load(offArgs + 8*uint32(count) + 4)
	a.branch(opEqual, 0, next, no)
	a.load(offArgs + 8*uint32(count))
	a.branch(opAtLeast, most, no, next)
	a.keep()
	a.load(position)
	a.addKept()
	a.branch(opAtLeastX, 0, noCarry, next)
	a.notAbove(low, high-1, position+4, done, no)
	a.place(noCarry)
	a.notAbove(low, high, position+4, done, no)
	a.place(done)
}

// notAbove emits a comparison of a 64-bit number with high and low. Its upper half is the word at offset upper, and its
// lower half was loaded last. It jumps to the label yes if the number is at most that limit, and to the label no
// otherwise.
func (a *assembler) notAbove(low uint32, high int64, upper uint32, yes, no label) {
	const all = 1<<32 - 1
	above := a.newLabel()
	if low < all {
		a.branch(opAtLeast, low+1, above, next)
	}
	a.atMost(high, upper, yes, no)
	a.place(above)
	a.atMost(high-1, upper, yes, no)
}

// atMost emits a jump to the label yes if the word at an offset is at most high, and to the label no otherwise.
func (a *assembler) atMost(high int64, offset uint32, yes, no label) {
	if high < 0 {
		a.jump(no)
		return
	}
	a.load(offset)
	a.branch(opAtLeast, uint32(high)+1, no, yes)
}

// from emits a jump to the label yes if the instruction that makes the call ends at the address after.
func (a *assembler) from(after uint64, yes label) {
	no := a.newLabel()
	a.load(offPlace + 4)
	a.branch(opEqual, uint32(after>>32), next, no)
	a.load(offPlace)
	a.branch(opEqual, uint32(after), yes, no)
	a.place(no)
}
