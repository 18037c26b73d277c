package runtime

// SYSCALL instructions in assembly that is not the standard library's. The kernel
// sends the thread SIGSYS for one, with the registers as the instruction found them
// (loam/kernel: trapped.go). The handler has the goroutine go on as if a call of
// loamServeTrap stood where the instruction is, in the way in which the runtime
// makes panics of faults. So the call is served on the goroutine's own stack, like
// every other: it may block, the stack may move, and may be looked at by the
// collector.
//
// Where that cannot be, on a thread's own stack, or if the assembly says too little
// of its frame for the stack to be walked, the kernel alone is asked, which does not
// know of files.

import (
	"internal/abi"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// sighandler is Go's, but for the signal that stands for an instruction.
//
//go:nowritebarrierrec
func sighandler(sig uint32, info *siginfo, ctxt unsafe.Pointer, gp *g) {
	c := &sigctxt{info, ctxt}
	if sig != _SIGSYS || !c.sigFromSeccomp() {
		linuxSighandler(sig, info, ctxt, gp)
		return
	}
	if loamMayCall(gp, c.sigpc(), c.sigsp()) {
		c.pushCall(abi.FuncPCABI0(loamServeTrap), c.sigpc())
		return
	}
	r := c.regs()
	result, _, errno := linux.Syscall6(uintptr(r.rax), uintptr(r.rdi), uintptr(r.rsi), uintptr(r.rdx), uintptr(r.r10), uintptr(r.r8), uintptr(r.r9))
	if errno != 0 {
		result = -errno
	}
	r.rax = uint64(result)
}

// loamTrapStack is how much of a stack loamServeTrap takes before it may grow, and
// some more.
const loamTrapStack = 560

// loamMayCall reports whether a call may be made at an instruction of a goroutine
// gp: see isAsyncSafePoint, which asks for more, since it is not asked by the
// goroutine itself.
func loamMayCall(gp *g, pc, sp uintptr) bool {
	mp := gp.m
	if mp.curg != gp || mp.p == 0 || !canPreemptM(mp) || gp.throwsplit || gp.syscallsp != 0 || mp.dying != 0 {
		return false
	}
	if sp < gp.stack.lo+loamTrapStack || sp > gp.stack.hi {
		return false
	}
	f := findfunc(pc)
	if !f.valid() || f.flag&abi.FuncFlagSPWrite != 0 {
		return false
	}
	return (f.args == 0 || funcdata(f, abi.FUNCDATA_ArgsPointerMaps) != nil) &&
		(funcspdelta(f, pc) == 0 || funcdata(f, abi.FUNCDATA_LocalsPointerMaps) != nil)
}

// loamServeTrap keeps all registers but AX, which has the result, serves the call
// and returns behind the instruction. The flags of arithmetic are lost.
func loamServeTrap()

// loamRegisters is what loamServeTrap keeps of them on the stack.
type loamRegisters struct {
	ax, bx, cx, dx, si, di, r8, r9, r10, r11, r12, r13, r14, r15 uintptr

	self uintptr // where this is, on a stack
	low  uintptr // from here
	high uintptr // to here

	vector [16][16]byte
}

// loamServeTrap has so much for them.
var _ [400 - 8]byte = [unsafe.Sizeof(loamRegisters{})]byte{}

// loamSyscall is syscall.RawSyscall6, the door in front of all calls.
//
//go:linkname loamSyscall syscall.RawSyscall6
func loamSyscall(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2, errno uintptr)

// loamServeRegisters serves the call that the registers ask for.
func loamServeRegisters(r *loamRegisters) {
	r.follow()
	result, _, errno := loamSyscall(r.ax, r.di, r.si, r.dx, r.r10, r.r8, r.r9)
	if errno != 0 {
		result = -errno
	}
	r.follow()
	r.ax = result
}

// follow corrects the registers if the stack has moved: those that point into it
// point to where the same thing is now. It is nosplit so that the stack does not
// move once more before they are used.
//
//go:nosplit
func (r *loamRegisters) follow() {
	moved := uintptr(unsafe.Pointer(r)) - r.self
	if moved == 0 {
		return
	}
	for _, p := range [...]*uintptr{
		&r.ax, &r.bx, &r.cx, &r.dx, &r.si, &r.di,
		&r.r8, &r.r9, &r.r10, &r.r11, &r.r12, &r.r13, &r.r14, &r.r15, &r.self,
	} {
		if *p-r.low < r.high-r.low {
			*p += moved
		}
	}
	gp := getg()
	r.low, r.high = gp.stack.lo, gp.stack.hi
}
