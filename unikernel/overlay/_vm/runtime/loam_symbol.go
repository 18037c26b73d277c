package runtime

import _ "unsafe" // for go:linkname

// loamCrashM is the M of the kernel's g during a crash. It is not m0: another CPU may run m0 at that time, and both
// would change its count of locks.
var loamCrashM m

// loamSymbol returns the function that contains pc, and its source position. They are empty if there is
// none. frameless means that the function has nothing on the stack at pc, so the top of the stack is its
// return address. It only reads tables of the executable, so the kernel can use it when nothing else works
// any more.
//
//go:linkname loamSymbol
func loamSymbol(pc uintptr) (name, file string, line int, frameless bool) {
	if gp := getg(); gp.m == nil {
		setMNoWB(&gp.m, &loamCrashM) // the kernel's g has no M, but symbol lookups use a cache in the M
	}
	f := findfunc(pc)
	if !f.valid() {
		return "", "", 0, false
	}
	file, n := funcline(f, pc)
	return funcname(f), file, int(n), funcspdelta(f, pc) == 0
}
