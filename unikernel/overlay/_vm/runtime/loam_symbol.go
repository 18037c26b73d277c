package runtime

import _ "unsafe" // for go:linkname

// loamSymbol is the function that an instruction belongs to, and where its source
// is; empty if it is none. It only reads tables of the program's file, so that the
// kernel can ask when nothing else works any more.
//
//go:linkname loamSymbol
func loamSymbol(pc uintptr) (name, file string, line int) {
	if gp := getg(); gp.m == nil {
		setMNoWB(&gp.m, &m0) // the kernel's g has none, and the tables have a cache for each
	}
	f := findfunc(pc)
	if !f.valid() {
		return "", "", 0
	}
	file, n := funcline(f, pc)
	return funcname(f), file, int(n)
}
