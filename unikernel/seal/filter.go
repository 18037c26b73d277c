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

// Place is where a function makes a call: the address after the instruction.
type Place struct {
	Name  string
	After uint64
}

// Filter makes the filter for a process whose code lies at places, among which
// all functions of the table must be.
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
	a.result(retAllow)
	a.place(no)
	return nil
}

// test goes to no if an argument is not as it must be.
func (a *assembler) test(t Test, pid uint32, no label) {
	a.load(offArgs + 8*uint32(t.Arg))
	values := t.Values
	switch t.Kind {
	case Set:
		a.and(values[0])
	case Self:
		values = append([]uint32{pid}, values...)
	}
	holds := a.newLabel()
	for _, v := range values {
		a.branch(opEqual, v, holds, next)
	}
	a.jump(no)
	a.place(holds)
}

// from goes to yes if the call is made there.
func (a *assembler) from(after uint64, yes label) {
	no := a.newLabel()
	a.load(offPlace + 4)
	a.branch(opEqual, uint32(after>>32), next, no)
	a.load(offPlace)
	a.branch(opEqual, uint32(after), yes, no)
	a.place(no)
}
