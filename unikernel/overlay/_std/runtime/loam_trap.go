package runtime

// Serving system calls that trap: those in a program's own assembly code. In a process the seal traps them
// (loam/unikernel/seal). In a virtual machine the SYSCALL instruction enters Loam's kernel (loam/kernel:
// trapped.go). Either kernel sends SIGSYS to the thread instead of serving the call.
//
// If the goroutine could be preempted at this point, except that it is in assembly, the handler makes it
// call asyncPreempt. asyncPreempt saves all registers on the goroutine's stack and calls asyncPreempt2.
// Marks in the two registers that a system call destroys anyway (RCX, R11) distinguish a trapped call from
// a preemption. The goroutine parks, and a goroutine of Loam serves the call. The call may block without
// holding a thread. While the goroutine is parked its stack does not move and is scanned conservatively, as
// for every preempted goroutine. So addresses in its registers stay valid.
//
// At other points loamRest serves what can be served at once. These are: no goroutine, no P, inside the
// runtime, in assembly called by assembly, and between entersyscall and exitsyscall.
//
// Read runtime/preempt.go first.

import (
	"internal/abi"
	"internal/runtime/sys"
	"internal/stringslite"
	"unsafe" // go:linkname requires this import too
)

// Values in the kernel's report of a trap (sigaction(2)).
const (
	loamSeccomp   = 1          // si_code of SIGSYS: SYS_SECCOMP
	loamArchAMD64 = 0xc000003e // si_arch of SIGSYS: AUDIT_ARCH_X86_64
	loamENOSYS    = 1<<64 - 38
)

// loamSigsys is the siginfo_t of a trapped call.
type loamSigsys struct {
	siginfoFields // si_addr in it is the address after the instruction
	number        int32
	arch          uint32
}

// sighandler handles trapped calls and alarms (loam_deferred.go), and passes other signals to Go's handler. It runs on the
// signal stack.
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
		if info.si_code == _SI_TIMER { // an alarm of this thread: the signal is not delivered to the program
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

// loamInterruptible reports whether a goroutine at pc and sp may be made to call asyncPreempt.
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

// loamOfRuntime reports whether a function belongs to the runtime, where a goroutine must not be preempted.
func loamOfRuntime(name string) bool {
	return stringslite.HasPrefix(name, "runtime.") || stringslite.HasPrefix(name, "internal/runtime/")
}

// The marks in RCX and R11. They are random values that are very unlikely to occur by chance.
const (
	loamMarkCX  = 0x1d0a_57a9_c0de_9e37
	loamMarkR11 = 0xe2f5_a856_3f21_61c8
)

// loamRegisters is the layout in which asyncPreempt saves registers. A rule in overlay/rules.go checks the layout.
type loamRegisters struct {
	ax, cx, dx, bx, si, di, r8, r9, r10, r11 uintptr
}

// loamTrap describes a goroutine whose call is being served. It lies on that goroutine's stack.
type loamTrap struct {
	regs   uintptr // address of a loamRegisters, further up the stack
	gp     guintptr
	bubble *synctestBubble
	next   uintptr // address of the next loamTrap in the list
}

// asyncPreempt2 replaces the runtime's function. It is nosplit like that function: the stack must not move
// under asyncPreempt.
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

// loamTraps are the trapped calls that loamNextTrap has not returned yet.
var loamTraps struct {
	lock    mutex
	first   uintptr  // address of the first loamTrap; 0: none
	waiting guintptr // the goroutine parked in loamNextTrap, or 0
}

// loamServesTraps is set before the serving goroutine starts. Calls that trap in between wait for it.
var loamServesTraps bool

// loamServeTraps enables the serving of trapped calls. It also raises asyncPreemptStack, the stack space
// that asyncPreempt needs, because asyncPreempt2 here calls the original one. Before that, the space that
// the runtime reserves for return addresses is enough.
//
//go:linkname loamServeTraps
func loamServeTraps() {
	loamServesTraps = true
	asyncPreemptStack += uintptr(funcMaxSPDelta(findfunc(abi.FuncPCABIInternal(linuxAsyncPreempt2)))) + 8
}

// loamPark parks a goroutine until its call has been served. It runs on g0. It receives the loamTrap in
// m.libcallpc, which only systems with a C library use otherwise.
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

// loamNextTrap waits for a trapped call and returns it. Only one goroutine may call it.
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

// loamTrapCall returns the number and the arguments of a trapped call.
//
//go:linkname loamTrapCall
func loamTrapCall(trap uintptr) (number, a1, a2, a3, a4, a5, a6 uintptr) {
	r := (*loamRegisters)(unsafe.Pointer((*loamTrap)(unsafe.Pointer(trap)).regs))
	return r.ax, r.di, r.si, r.dx, r.r10, r.r8, r.r9
}

// loamTrapReturn makes a trapped call return result, the value that the kernel would leave in RAX.
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
