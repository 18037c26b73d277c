#include "funcdata.h"
#include "textflag.h"

// call makes a system call by a SYSCALL instruction.
//
//	func call(number, a1, a2, a3, a4, a5, a6 uintptr) (result int)
TEXT ·call(SB),NOSPLIT,$0-64
	MOVQ	number+0(FP), AX
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	a4+32(FP), R10
	MOVQ	a5+40(FP), R8
	MOVQ	a6+48(FP), R9
	SYSCALL
	MOVQ	AX, result+56(FP)
	RET

// call32 makes a system call of 32-bit programs, by INT 0x80.
//
//	func call32(number uintptr) (result int32)
TEXT ·call32(SB),NOSPLIT,$0-12
	MOVQ	number+0(FP), AX
	XORL	BX, BX
	INT	$0x80
	MOVL	AX, result+8(FP)
	RET

// readByte reads a byte into a buffer in its stack frame. It returns 0 if the call has changed a register
// that a system call preserves, or the address of the buffer.
//
//	func readByte(fd int) byte
TEXT ·readByte(SB),NOSPLIT,$8-9
	NO_LOCAL_POINTERS
	MOVB	$0, buf-8(SP)
	MOVQ	fd+0(FP), DI
	LEAQ	buf-8(SP), SI
	MOVQ	$1, DX
	MOVQ	SI, R12
	MOVQ	$12345, BX
	MOVQ	BX, X7
	XORL	AX, AX // the number of read(2)
	SYSCALL
	CMPQ	AX, $1
	JNE	bad
	CMPQ	SI, R12
	JNE	bad
	LEAQ	buf-8(SP), R8
	CMPQ	SI, R8
	JNE	bad
	MOVQ	X7, AX
	CMPQ	AX, BX
	JNE	bad
	MOVB	(SI), AX
	MOVB	AX, ret+8(FP)
	RET
bad:
	MOVB	$0, ret+8(FP)
	RET
