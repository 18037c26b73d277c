package seal

import "fmt"

// The filter: for each call of the table in turn, is this its number, do its tests
// hold, and is it made from one of its places? What fits none of them traps.

// Offsets in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offPlace  = 8  // the instruction after the one that makes the call
	offArgs   = 16 // eight bytes each, the lower half first
)

// Values of the kernel's.
const (
	archAMD64 = 0xc000003e // AUDIT_ARCH_X86_64
	retTrap   = 0x00030000 // SECCOMP_RET_TRAP
	retAllow  = 0x7fff0000 // SECCOMP_RET_ALLOW
)

// Place is memory from which a call may be made: Start is the first address after
// such an instruction, End that behind the last.
type Place struct {
	Name       string
	Start, End uint64
}

// Filter makes the filter for a process whose code lies at places. A function that
// is in no place makes no call: the linker has left it out.
func Filter(calls []Call, places []Place, pid uint32) ([]Instruction, error) {
	var a assembler
	a.load(offArch)
	// 32-bit calls (int 0x80) have another architecture. The numbers of x32 have
	// bit 30 set, and so are in no table.
	other, start := a.newLabel(), a.newLabel()
	a.branch(opEqual, archAMD64, start, other)
	a.place(other)
	a.result(retTrap)
	a.place(start)
	for _, c := range calls {
		if err := a.call(c, places, pid); err != nil {
			return nil, err
		}
	}
	a.result(retTrap)
	return a.assemble()
}

// call lets one call through, or goes on.
func (a *assembler) call(c Call, places []Place, pid uint32) error {
	no, yes := a.newLabel(), a.newLabel()
	a.load(offNumber)
	a.branch(opEqual, c.Number, next, no)
	for _, t := range c.If {
		a.test(t, pid, no)
	}
	for _, name := range c.From {
		for _, p := range places {
			if p.Name != name {
				continue
			}
			if p.Start>>32 != (p.End-1)>>32 {
				return fmt.Errorf("seal: %s lies across 4 GiB", name)
			}
			a.from(p, yes)
		}
	}
	a.branch(opEqual, 0, no, no) // whatever it says
	a.place(yes)
	a.result(retAllow)
	a.place(no)
	return nil
}

// test goes to no if an argument is not as it must be.
func (a *assembler) test(t Test, pid uint32, no label) {
	a.load(offArgs + 8*uint32(t.Arg))
	switch t.Kind {
	case Self:
		a.branch(opEqual, pid, next, no)
	case Clear:
		a.branch(opAnySet, t.Values[0], no, next)
	case Set:
		a.and(t.Values[0])
		a.branch(opEqual, t.Values[0], next, no)
	case Equal:
		holds := a.newLabel()
		for _, v := range t.Values[:len(t.Values)-1] {
			a.branch(opEqual, v, holds, next)
		}
		a.branch(opEqual, t.Values[len(t.Values)-1], holds, no)
		a.place(holds)
	}
}

// from goes to yes if the call is made from p.
func (a *assembler) from(p Place, yes label) {
	no := a.newLabel()
	a.load(offPlace + 4)
	a.branch(opEqual, uint32(p.Start>>32), next, no)
	a.load(offPlace)
	if p.End == p.Start+1 {
		a.branch(opEqual, uint32(p.Start), yes, no)
	} else {
		a.branch(opAtLeast, uint32(p.Start), next, no)
		a.branch(opAtLeast, uint32(p.End-1)+1, no, yes)
	}
	a.place(no)
}
