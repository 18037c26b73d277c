#include "textflag.h"

// thread starts a thread that ends at once, and returns the result of the system call. The call is
//
//	clone(CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_CHILD_CLEARTID)
//
// The new thread calls exit(0) and does not use its stack, so stack need not be writable. The kernel
// stores 0 at tid when the thread ends.
//
//	func thread(stack, tid uintptr) uintptr
TEXT ·thread(SB), NOSPLIT, $0-24
	MOVQ $0x250f00, DI
	MOVQ stack+0(FP), SI
	MOVQ $0, DX
	MOVQ tid+8(FP), R10
	MOVQ $0, R8
	MOVQ $56, AX
	SYSCALL
	TESTQ AX, AX
	JNE parent
	XORQ DI, DI
	MOVQ $60, AX
	SYSCALL
	INT $3
parent:
	MOVQ AX, ret+16(FP)
	RET
