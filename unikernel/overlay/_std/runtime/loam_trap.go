package runtime

// System calls that assembly of the program's makes itself, and that trap: in a process
// by the seal (loam/unikernel/seal), in a virtual machine since the instruction is
// Loam's to serve (loam/kernel: trapped.go). The kernel, Linux's or ours, sends SIGSYS
// to the thread instead of making the call.
//
// If the goroutine is where it could be preempted, but for the fact that it is in
// assembly, it is made to call asyncPreempt, which saves all registers on the
// goroutine's stack and goes on to asyncPreempt2. There, what was a call is told from
// a preemption by marks in the two registers that a system call destroys anyway. The
// goroutine parks; a goroutine of Loam's serves the call, which may take as long as it
// likes, and no thread is held. While it is parked its stack does not move, and it is
// scanned conservatively, as that of every goroutine that was preempted: addresses in
// its registers stay right.
//
// Elsewhere (without a goroutine, without a P, inside the runtime, in assembly that
// is called by assembly, between entersyscall and exitsyscall) loamRest serves what can
// be served at once.
//
// Read runtime/preempt.go first.

import (
	"internal/abi"
	"internal/runtime/sys"
	"internal/stringslite"
	"unsafe" // and for go:linkname
)

// What the kernel says of a trap (sigaction(2)).
const (
	loamSeccomp   = 1          // SYS_SECCOMP
	loamArchAMD64 = 0xc000003e // AUDIT_ARCH_X86_64
	loamENOSYS    = 1<<64 - 38
)

// loamSigsys is siginfo_t of a trap.
type loamSigsys struct {
	siginfoFields // si_addr is the instruction after the call
	number        int32
	arch          uint32
}

// sighandler runs on the signal stack.
//
//go:nowritebarrierrec
func sighandler(sig uint32, info *siginfo, ctxt unsafe.Pointer, gp *g) {
	if sig == _SIGSYS && info.si_code == loamSeccomp {
		loamTrapped((*loamSigsys)(unsafe.Pointer(info)), &sigctxt{info, ctxt}, gp)
		return
	}
	if sig == sigPreempt {
		if getg().m.loam.state == loamAlarmOn {
			loamRing()
		}
		if info.si_code == _SI_TIMER { // the program is not told
			doSigPreempt(gp, &sigctxt{info, ctxt})
			return
		}
	}
	linuxSighandler(sig, info, ctxt, gp)
}

//go:nowritebarrierrec
func loamTrapped(info *loamSigsys, c *sigctxt, gp *g) {
	regs := c.regs()
	switch {
	case info.arch != loamArchAMD64:
		regs.rax = loamENOSYS
	case loamServesTraps && loamInterruptible(gp, c.sigpc(), c.sigsp()):
		regs.rcx, regs.r11 = loamMarkCX, loamMarkR11
		c.pushCall(abi.FuncPCABI0(asyncPreempt), c.sigpc())
	default:
		loamRest(c)
	}
}

// loamInterruptible reports whether a goroutine may be made to call asyncPreempt.
func loamInterruptible(gp *g, pc, sp uintptr) bool {
	mp := gp.m
	if mp == nil || gp != mp.curg || mp.p == 0 || !canPreemptM(mp) || gp.throwsplit {
		return false
	}
	if sp >= gp.stack.hi || sp < gp.stack.lo || sp-gp.stack.lo < asyncPreemptStack {
		return false
	}
	f := findfunc(pc)
	if !f.valid() || f.flag&abi.FuncFlagSPWrite != 0 || loamOfRuntime(funcname(f)) {
		return false
	}
	caller := findfunc(*(*uintptr)(unsafe.Pointer(sp + uintptr(funcspdelta(f, pc)))))
	return caller.valid() && caller.flag&abi.FuncFlagAsm == 0
}

func loamOfRuntime(name string) bool {
	return stringslite.HasPrefix(name, "runtime.") || stringslite.HasPrefix(name, "internal/runtime/")
}

// The marks; chance does not make them.
const (
	loamMarkCX  = 0x1d0a_57a9_c0de_9e37
	loamMarkR11 = 0xe2f5_a856_3f21_61c8
)

// loamRegisters is how asyncPreempt saves registers; rules.go checks it.
type loamRegisters struct {
	ax, cx, dx, bx, si, di, r8, r9, r10, r11 uintptr
}

// loamTrap is a goroutine whose call is being served. It lies on its stack.
type loamTrap struct {
	regs   uintptr // *loamRegisters, further up
	gp     guintptr
	bubble *synctestBubble
	next   uintptr // *loamTrap
}

// asyncPreempt2 is nosplit, like the function whose place it takes: the stack must
// not move under asyncPreempt.
//
//go:nosplit
//go:nowritebarrierrec
func asyncPreempt2() {
	regs := (*loamRegisters)(unsafe.Pointer(sys.GetCallerSP()))
	if regs.cx != loamMarkCX || regs.r11 != loamMarkR11 {
		linuxAsyncPreempt2()
		return
	}
	var t loamTrap
	t.regs = uintptr(unsafe.Pointer(regs))
	getg().m.libcallpc = uintptr(unsafe.Pointer(&t))
	mcall(loamPark)
	gp := getg()
	xRegRestore(gp)
	gp.asyncSafePoint = false
	KeepAlive(&t)
}

// loamTraps are the calls that nobody has taken yet.
var loamTraps struct {
	lock    mutex
	first   uintptr  // *loamTrap
	waiting guintptr // the goroutine in loamNextTrap, if it waits
}

// loamServesTraps is set before there is a goroutine that does: until it runs, calls
// wait for it.
var loamServesTraps bool

// loamServeTraps says that there will be a goroutine that takes calls. It adds to what
// the runtime knows of the stack that asyncPreempt takes: asyncPreempt2 here calls the
// one that was there before. Until then there is room enough in what the runtime adds
// for return addresses.
//
//go:linkname loamServeTraps
func loamServeTraps() {
	loamServesTraps = true
	asyncPreemptStack += uintptr(funcMaxSPDelta(findfunc(abi.FuncPCABIInternal(linuxAsyncPreempt2)))) + 8
}

// loamPark parks a goroutine until its call has been served. It runs on g0, and finds
// the loamTrap in a word that only systems with a C library use.
func loamPark(gp *g) {
	t := (*loamTrap)(unsafe.Pointer(gp.m.libcallpc))
	gp.asyncSafePoint = true
	xRegSave(gp)
	t.gp.set(gp)
	t.bubble, gp.bubble = gp.bubble, nil
	trace := traceAcquire()
	if trace.ok() {
		trace.GoPark(traceBlockGeneric, 0)
	}
	casGToWaiting(gp, _Grunning, waitReasonIOWait)
	if trace.ok() {
		traceRelease(trace)
	}
	dropg()
	lock(&loamTraps.lock)
	t.next, loamTraps.first = loamTraps.first, uintptr(unsafe.Pointer(t))
	server := loamTraps.waiting.ptr()
	loamTraps.waiting = 0
	unlock(&loamTraps.lock)
	if server != nil {
		ready(server, 0, true)
	}
	schedule()
}

// loamNextTrap waits for a call and returns it. One goroutine may call it.
//
//go:linkname loamNextTrap
func loamNextTrap() (trap uintptr) {
	for {
		lock(&loamTraps.lock)
		if t := (*loamTrap)(unsafe.Pointer(loamTraps.first)); t != nil {
			loamTraps.first = t.next
			unlock(&loamTraps.lock)
			return uintptr(unsafe.Pointer(t))
		}
		loamTraps.waiting.set(getg())
		goparkunlock(&loamTraps.lock, waitReasonIOWait, traceBlockGeneric, 1)
	}
}

// loamTrapCall is the number and the arguments of a call.
//
//go:linkname loamTrapCall
func loamTrapCall(trap uintptr) (number, a1, a2, a3, a4, a5, a6 uintptr) {
	r := (*loamRegisters)(unsafe.Pointer((*loamTrap)(unsafe.Pointer(trap)).regs))
	return r.ax, r.di, r.si, r.dx, r.r10, r.r8, r.r9
}

// loamTrapReturn has a call return, with what the kernel would leave in RAX.
//
//go:linkname loamTrapReturn
func loamTrapReturn(trap, result uintptr) {
	t := (*loamTrap)(unsafe.Pointer(trap))
	r := (*loamRegisters)(unsafe.Pointer(t.regs))
	r.ax, r.cx, r.r11 = result, 0, 0
	gp := t.gp.ptr()
	gp.bubble = t.bubble
	goready(gp, 1)
}
