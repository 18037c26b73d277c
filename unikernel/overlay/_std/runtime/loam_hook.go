package runtime

import (
	"internal/abi"
	"internal/goarch"
	"internal/runtime/atomic"
	"internal/runtime/exithook"
	"internal/stringslite"
	"unsafe"
)

// loamEnter enters Loam from package syscall. It removes the calling goroutine from its bubble, which
// loamEnterBubble undoes (loam_bubble.go). ok is false if Loam cannot be entered at this point
// (loamOrdinary).
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

// loamEnterWith is loamEnter for a caller with a buffer whose stack may grow. Growing the stack throws in
// most of the states that loamOrdinary checks, so only two checks remain. onStack reports whether p points
// into the stack of the calling goroutine.
//
//go:linkname loamEnterWith
func loamEnterWith(p unsafe.Pointer) (bubble unsafe.Pointer, ok, onStack bool) {
	if gp := getg(); gp != gp.m.curg || gp.m.locks != 0 {
		return nil, false, false
	}
	return loamLeaveBubble(), true, loamOnStack(p)
}

// loamOrdinary reports whether a system call made right now may run as ordinary Go code. The goroutine must
// be on its own stack, with a P, outside every critical section of the runtime. That is not so in the child
// between fork and exec (BeforeFork raises m.locks), in signal handlers, on system stacks, and between
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

// loamStackBounds returns the bounds of the calling goroutine's stack. It is nosplit: the result would be
// stale if the stack moved before the return.
//
//go:linkname loamStackBounds
//go:nosplit
func loamStackBounds() (lo, hi uintptr) {
	gp := getg()
	return gp.stack.lo, gp.stack.hi
}

// loamAtExit registers f to run when the program exits by itself: when main returns or by os.Exit. A signal
// or a panic does not run it.
//
//go:linkname loamAtExit
func loamAtExit(f func()) { exithook.Add(exithook.Hook{F: f, RunOnFailure: true}) }

// isSystemGoroutine hides Loam's goroutines from the program, as the runtime hides its own. A program does
// not see them in its stack dumps, profiles, bubbles and NumGoroutine, and the deadlock detector ignores
// them. With GOTRACEBACK=system they are in stack dumps. They are recognised by their start function, so
// Loam's packages must start them with go statements of their own.
func isSystemGoroutine(gp *g, fixed bool) bool {
	return linuxIsSystemGoroutine(gp, fixed) || !fixed && loamStarted(gp)
}

// tracebacksomeothers prints the stacks of other goroutines. After a failure of the runtime itself, such as a stack
// overflow, Go's version also prints system goroutines. Loam's goroutines are left out unless GOTRACEBACK is system or
// crash, because the failure is almost always the program's own.
func tracebacksomeothers(me *g, showf func(*g) bool) {
	const single = 1
	if atomic.Load(&traceback_cache)>>tracebackShift > single {
		linuxTracebacksomeothers(me, showf)
		return
	}
	linuxTracebacksomeothers(me, func(gp *g) bool { return showf(gp) && !loamStarted(gp) })
}

// loamStarted reports whether one of Loam's functions started gp.
func loamStarted(gp *g) bool { return loamNamed(findfunc(gp.startpc)) }

// loamNamed reports whether f belongs to one of Loam's packages.
func loamNamed(f funcInfo) bool {
	return f.valid() && stringslite.HasPrefix(funcname(f), "loam/")
}

// doInit initialises Loam's packages and their imports before all other packages: a program's package may
// open a socket during its initialisation. The list ts is in an order that respects imports. Any subset
// that is closed under imports may therefore be initialised first; loamInitFirst is such a subset.
//
// A package that Loam imports may be under test. The init functions in its test files use Loam as any
// program does, so they are delayed until all of Loam's packages are initialised.
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

// States of an initTask, as far as doInit distinguishes them.
const (
	loamInitNone  = iota // none of the functions of the package has been called
	loamInitBegun        // some of the functions of the package have been called
	loamInitDone
)

// loamInitOwn calls the functions of t that are not in test files.
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

// loamInit returns function i of t, in call order. The first function sets the package's variables, if it
// has any to set. The init functions follow, by file.
func loamInit(t *initTask, i uint32) func() {
	p := add(unsafe.Pointer(t), 8+uintptr(i)*goarch.PtrSize)
	return *(*func())(unsafe.Pointer(&p))
}

// loamOwnInits returns how many functions of t precede the first init function of a test file.
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

// loamBorrowed names the original module if the program was built from a copy of it. The file that is added
// to the main package sets it. It is empty otherwise.
//
//go:linkname loamBorrowed
var loamBorrowed string

// loamBuildInfo replaces the build information that runtime/debug.ReadBuildInfo returns with the result of
// f.
//
//go:linkname loamBuildInfo
func loamBuildInfo(f func(info, borrowed string) string) { modinfo = f(modinfo, loamBorrowed) }
