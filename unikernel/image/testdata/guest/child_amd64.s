#include "textflag.h"

// SYSCALL instructions are written as bytes, because a build for Loam replaces those that the assembler knows.
#define SYSCALL_INSTRUCTION BYTE $0x0f; BYTE $0x05

// controlOfChild starts a thread with the given stack. The thread stores its MXCSR at result, and 1 after
// it, and ends.
//
//	func controlOfChild(result, stack uintptr)
TEXT ·controlOfChild(SB),NOSPLIT,$0-16
	MOVQ	result+0(FP), R12
	MOVQ	stack+8(FP), SI
	MOVL	$56, AX	// the number of clone(2)
	MOVL	$0x50f00, DI	// CLONE_VM and the other flags of a thread
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYSCALL_INSTRUCTION
	TESTQ	AX, AX
	JEQ	child
	RET
child:
	STMXCSR	(R12)
	MOVL	$1, 4(R12)
	MOVL	$60, AX	// the number of exit(2)
	XORL	DI, DI
	SYSCALL_INSTRUCTION
	UNDEF
