package runtime

import (
	"internal/abi"
	"internal/goarch"
	"internal/runtime/exithook"
	"internal/stringslite"
	"unsafe"
)

// loamEnter is the way from the door into Loam: it takes the calling goroutine
// out of its bubble, which loamEnterBubble undoes (loam_bubble.go), or says that
// it cannot be entered from here.
//
// It is nosplit because its callers in package syscall are.
//
//go:linkname loamEnter syscall.loamEnter
//go:nosplit
func loamEnter() (bubble unsafe.Pointer, ok bool) {
	if !loamOrdinary() {
		return nil, false
	}
	return loamLeaveBubble(), true
}

// loamEnterWith is loamEnter for a caller with a buffer, whose stack may grow: that
// leaves less of loamOrdinary to be asked, since elsewhere it would have thrown. onStack
// reports whether p points into the stack of the calling goroutine.
//
//go:linkname loamEnterWith
func loamEnterWith(p unsafe.Pointer) (bubble unsafe.Pointer, ok, onStack bool) {
	if gp := getg(); gp != gp.m.curg || gp.m.locks != 0 {
		return nil, false, false
	}
	return loamLeaveBubble(), true, loamOnStack(p)
}

// loamOrdinary reports whether a system call made right now may run as ordinary
// Go code: on a goroutine's own stack, with a P, outside every critical section
// of the runtime. It is false in the child between fork and exec (BeforeFork
// raises m.locks), in signal handlers, on system stacks and between
// entersyscall and exitsyscall.
//
// It is nosplit because loamEnter is.
//
//go:nosplit
func loamOrdinary() bool {
	gp := getg()
	mp := gp.m
	return gp == mp.curg && mp.p != 0 && !gp.throwsplit &&
		mp.locks == 0 && mp.mallocing == 0 && mp.dying == 0
}

// loamOnStack reports whether p points into the stack of the calling goroutine.
//
//go:linkname loamOnStack
func loamOnStack(p unsafe.Pointer) bool {
	gp := getg()
	return uintptr(p)-gp.stack.lo < gp.stack.hi-gp.stack.lo
}

// loamAtExit has f called when the program ends by itself: when main returns or
// by os.Exit, and not by a signal or a panic.
//
//go:linkname loamAtExit
func loamAtExit(f func()) { exithook.Add(exithook.Hook{F: f, RunOnFailure: true}) }

// isSystemGoroutine makes the runtime keep Loam's goroutines to itself, like its
// own: a program does not find the kernel's in its stack dumps, profiles, bubbles
// and NumGoroutine, and the deadlock detector does not take them for its. With
// GOTRACEBACK=system they are in dumps. They are known by the function with which
// they begin, so Loam's packages start them by go statements of their own.
func isSystemGoroutine(gp *g, fixed bool) bool {
	return linuxIsSystemGoroutine(gp, fixed) || !fixed && loamStarted(gp)
}

func loamStarted(gp *g) bool { return loamNamed(findfunc(gp.startpc)) }

// loamNamed reports whether f is a function of Loam's.
func loamNamed(f funcInfo) bool {
	return f.valid() && stringslite.HasPrefix(funcname(f), "loam/")
}

// doInit runs the initialisation of Loam's packages, and of what they import,
// before that of all others: a program's package may open a socket while it is
// initialised. The list is in an order that respects imports, so any subset
// that is closed under imports may go first; loamInitFirst is one.
//
// A package that Loam imports may be under test, and functions init of its tests use
// Loam as any program does: they wait until all of Loam's packages are initialised.
func doInit(ts []*initTask) {
	for _, t := range ts {
		if t.state == loamInitNone && loamGoesFirst(t) {
			loamInitOwn(t)
		}
	}
	for _, t := range ts {
		if t.state == loamInitBegun {
			for i := loamOwnInits(t); i < t.nfns; i++ {
				loamInit(t, i)()
			}
			t.state = loamInitDone
		}
	}
	linuxDoInit(ts)
}

// States of an initTask.
const (
	loamInitNone  = iota // none of its functions has been called
	loamInitBegun        // not all have
	loamInitDone
)

// loamInitOwn calls the functions of t that are not of tests.
func loamInitOwn(t *initTask) {
	all, own := t.nfns, loamOwnInits(t)
	if own == 0 {
		return
	}
	t.nfns = own
	doInit1(t)
	t.nfns = all
	if own < all {
		t.state = loamInitBegun
	}
}

// loamInit is function i of t, in the order in which they are called: first, if there is
// one, that which sets the package's variables, then the functions init by their files.
func loamInit(t *initTask, i uint32) func() {
	p := add(unsafe.Pointer(t), 8+uintptr(i)*goarch.PtrSize)
	return *(*func())(unsafe.Pointer(&p))
}

// loamOwnInits is how many functions of t come before the first function init of a test.
func loamOwnInits(t *initTask) uint32 {
	for i := range t.nfns {
		pc := abi.FuncPCABIInternal(loamInit(t, i))
		f := findfunc(pc)
		file, _ := funcline(f, pc)
		if stringslite.HasSuffix(file, "_test.go") && !stringslite.HasSuffix(funcname(f), ".init") {
			return i
		}
	}
	return t.nfns
}

// loamGoesFirst reports whether t belongs to a package of loamInitFirst.
func loamGoesFirst(t *initTask) bool {
	if t.nfns == 0 {
		return false
	}
	pkg := funcpkgpath(findfunc(abi.FuncPCABIInternal(loamInit(t, 0))))
	lo, hi := 0, len(loamInitFirst)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if loamInitFirst[mid] < pkg {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(loamInitFirst) && loamInitFirst[lo] == pkg
}

// loamBorrowed names the module whose copy the program was built from, as the file
// that is added to the main package sets it; empty: none.
//
//go:linkname loamBorrowed
var loamBorrowed string

// loamBuildInfo has f correct what runtime/debug.ReadBuildInfo reads.
//
//go:linkname loamBuildInfo
func loamBuildInfo(f func(info, borrowed string) string) { modinfo = f(modinfo, loamBorrowed) }
