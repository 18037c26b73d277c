package runtime

import _ "unsafe" // for go:linkname

// loamSymbol is the function that an instruction belongs to, and where its source
// is; empty if it is none. frameless: it has nothing on the stack there, so the stack
// begins with where it returns to. It only reads tables of the program's file, so that the
// kernel can ask when nothing else works any more.
//
//go:linkname loamSymbol
func loamSymbol(pc uintptr) (name, file string, line int, frameless bool) {
	if gp := getg(); gp.m == nil {
		setMNoWB(&gp.m, &m0) // the kernel's g has none, and the tables have a cache for each
	}
	f := findfunc(pc)
	if !f.valid() {
		return "", "", 0, false
	}
	file, n := funcline(f, pc)
	return funcname(f), file, int(n), funcspdelta(f, pc) == 0
}
